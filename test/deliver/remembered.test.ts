// What a crash repeats: what was answered is remembered by the next position, whatever else still waits.
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { decodeState } from '../../src/deliver/position-state.ts'
import type { Pool } from '../../src/postgres/sql.ts'
import { aDestination, aLive, to } from '../support/configuration.ts'
import { until } from '../support/until.ts'
import { useRig } from './rig.ts'

const { receiver, open, drained, database } = await useRig()

/** Offsets that the position of partition 0 remembers as settled. */
const remembered = async (): Promise<number> => {
  const { rows } = await database.pool.query<{ next: bigint; state: Buffer | null }>(
    "select next, state from position where reader = 'deliver' and topic = 'calls'",
  )
  const [row] = rows
  if (!row) return 0
  const { settled } = decodeState(row.state, Number(row.next))
  let ones = 0
  for (let at = 0; at < settled.length; at += 1)
    ones += ((settled.bits[at >> 3] as number) >> (at & 7)) & 1
  return settled.next + ones
}

test('what is delivered is remembered while the rest of its batch has no room yet', async () => {
  const hook = await receiver()
  const live = aLive({ destinations: [aDestination({ webhooks: to(hook.url) })] })
  const limits = { laneMax: 5, roundsPerLaneMax: 2, positionEveryMs: 20 }
  const rig = open(live, { partitions: 1, limits })
  const isHanging = ({ json }: { json: Record<string, unknown> }) =>
    Number(String(json['userId']).slice(1)) >= 40
  hook.reply((request) => (isHanging(request) ? 'hang' : 200))
  const life = rig.start()
  await rig.append(Array.from({ length: 100 }, (_, n) => rig.aCall({ userId: `u${n}` })))
  await until(async () => (await remembered()) >= 40, 'forty are remembered')
  life.crash()
  hook.reply(() => 200)
  const before = hook.requests.length
  rig.start()
  await drained(rig)
  expect(hook.requests.slice(before).filter((request) => !isHanging(request))).toEqual([])
  expect(new Set(hook.requests.map(({ json }) => json['userId'])).size).toBe(100)
})

test('of the first batch nothing is sent before its duplicates are recorded', async () => {
  const hook = await receiver()
  const live = aLive({ destinations: [aDestination({ webhooks: to(hook.url) })] })
  const rig = open(live, { partitions: 1, limits: { positionEveryMs: 20 } })
  const gate = Promise.withResolvers<void>()
  let waiting = 0
  const pool: Pool = {
    ...database.pool,
    query: async (text, values) => {
      if (text.includes('insert into duplicate_chunk')) {
        waiting += 1
        await gate.promise
      }
      return database.pool.query(text, values)
    },
  }
  rig.start({}, 5_000, { pool })
  await rig.append(Array.from({ length: 20 }, (_, n) => rig.aCall({ userId: `u${n}` })))
  await until(() => waiting > 0, 'they are about to be recorded')
  await sleep(200)
  expect(hook.requests).toEqual([])
  gate.resolve()
  await drained(rig)
  expect(hook.requests).toHaveLength(20)
})

test('positions go on while the log takes no commits', async () => {
  const hook = await receiver()
  const live = aLive({ destinations: [aDestination({ webhooks: to(hook.url) })] })
  const rig = open(live, { partitions: 1, limits: { positionEveryMs: 20 } })
  const gate = Promise.withResolvers<void>()
  const told: bigint[] = []
  const source = rig.log.source()
  const life = rig.start({}, 5_000, {
    source: {
      ...source,
      join: (group, gained) =>
        source.join(group, (lease) =>
          gained({
            ...lease,
            commit: async (next) => {
              await gate.promise
              told.push(next)
              return lease.commit(next)
            },
          }),
        ),
    },
  })
  await rig.append([rig.aCall({ userId: 'u1' })])
  await until(async () => (await remembered()) >= 1, 'the first is remembered')
  await rig.append([rig.aCall({ userId: 'u2' })])
  await until(async () => (await remembered()) >= 2, 'the second is remembered')
  expect(told).toEqual([])
  gate.resolve()
  await life.running.stop()
  expect(told.at(-1)).toBe(2n)
})
