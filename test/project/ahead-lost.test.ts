// A partition that is lost while a batch of it, decided already, waits for the one before to be written.
import pino from 'pino'
import { expect, test } from 'vitest'
import { unwatched } from '../../src/debugger/debugger.ts'
import { openDuplicates } from '../../src/duplicate/duplicates.ts'
import { gainPosition } from '../../src/postgres/position.ts'
import type { Pool } from '../../src/postgres/sql.ts'
import { projectBatches } from '../../src/project/batches.ts'
import { type Lane, laneQueue, type Piece } from '../../src/project/lanes.ts'
import { openDesk, projectLimits } from '../../src/project/project.ts'
import { turns } from '../../src/project/turns.ts'
import { cloneDatabase } from '../support/database.ts'
import { aMessage, aRig, audience, performed, type Sent, until } from './rig.ts'

const { pool } = await cloneDatabase()
const audiences = [1, 2, 3, 4].map((count) => audience(count, performed('eq', count)))
const batchCallsMax = 4

const gainLane = async (partition: number): Promise<Lane> => {
  const key = { reader: 'project', topic: 'calls', partition } as const
  const { epoch, next } = await gainPosition(pool, key)
  const ended = new AbortController()
  return {
    lease: {
      ...{ topic: 'calls', partition, committed: null },
      lost: new AbortController().signal,
      commit: async () => 'committed',
    },
    ...{ epoch, next, folded: 0 },
    duplicates: await openDuplicates({ sql: pool, ...key, bytesMax: 4_194_304 }),
    get lost() {
      return ended.signal.aborted
    },
    lose: () => ended.abort(),
    commit: () => undefined,
  }
}

/** The first batch is held up before it is written until `meanwhile` has happened, the second one decided. */
const aLine = async (meanwhile: () => void) => {
  const rig = await aRig(pool, audiences)
  const before = rig.start()
  await rig.built()
  await before.stop()
  let writes = 0
  const held: Pool = {
    ...pool,
    transaction: async (work, options) => {
      if (options?.idleMs !== undefined && writes++ === 0) {
        await until('the next batch is being decided', async () => desk.inHand.length === 2)
        meanwhile()
      }
      return pool.transaction(work, options)
    },
  }
  const limits = { ...projectLimits, batchCallsMax, gatherMs: 1, retryMs: 5 }
  const desk = await openDesk(held, limits)
  const queue = laneQueue({ callsMax: batchCallsMax, queueCallsMax: 100 })
  const pieceOf = (lane: Lane, from: number, ...calls: readonly Sent[]): Piece => ({
    lane,
    next: BigInt(from + calls.length),
    calls: calls.map((call, at) => ({
      offset: BigInt(from + at),
      message: aMessage(call, rig.now()),
    })),
  })
  const run = () =>
    projectBatches({
      ...{ desk, queue, limits, turns: turns(), debugger: unwatched },
      logger: pino({ level: 'silent' }),
      fenced: () => undefined,
      stopping: new AbortController().signal,
    })
  return { queue, run, pieceOf }
}

/** "user:how often they ordered" */
const counted = async (): Promise<readonly string[]> => {
  const { rows } = await pool.query<{ said: string }>(
    `select user_id || ':' || audience_id as said from membership where cur order by 1`,
  )
  return rows.map(({ said }) => said)
}

const moved = (partition: number, to: bigint) =>
  until(`partition ${partition} is projected`, async () => {
    const { rows } = await pool.query<{ next: bigint }>(
      `select next from position where reader = 'project' and topic = 'calls' and partition = $1`,
      [partition],
    )
    return (rows[0]?.next ?? 0n) >= to
  })

const four = ['u1', 'u2', 'u3', 'u4'].map((userId): Sent => ({ userId }))

test.each([
  ['that writes all of its users', { userId: 'u2' }, ['u1:2', 'u2:2', 'u3:1', 'u4:1']],
  [
    'that leaves one as they are',
    { userId: 'u2', event: 'Other' },
    ['u1:2', 'u2:1', 'u3:1', 'u4:1'],
  ],
] as const)('one of two partitions is lost, of a batch %s', async (_, other, expected) => {
  const lanes: Lane[] = []
  const { queue, run, pieceOf } = await aLine(() => lanes[1]?.lose())
  lanes.push(await gainLane(0), await gainLane(1))
  const [kept, lost] = lanes as [Lane, Lane]
  await queue.put(pieceOf(kept, 0, ...four))
  await queue.put(pieceOf(kept, 4, { userId: 'u1' }, other))
  await queue.put(pieceOf(lost, 0, { userId: 'u1' }))
  const running = run()
  await moved(0, 6n)
  queue.close()
  await running
  expect(await counted()).toEqual(expected)
})

test('the only partition is lost, and gained again by the same process', async () => {
  const lanes: Lane[] = []
  const { queue, run, pieceOf } = await aLine(() => lanes[0]?.lose())
  lanes.push(await gainLane(0))
  const [lane] = lanes as [Lane]
  const second = [{ userId: 'u1' }, { userId: 'u2', event: 'Other' }]
  await queue.put(pieceOf(lane, 0, ...four))
  await queue.put(pieceOf(lane, 4, ...second))
  const running = run()
  await moved(0, 4n)
  const again = await gainLane(0)
  expect(again.next).toBe(4n)
  await queue.put(pieceOf(again, 4, ...second))
  await moved(0, 6n)
  queue.close()
  await running
  expect(await counted()).toEqual(['u1:2', 'u2:1', 'u3:1', 'u4:1'])
})
