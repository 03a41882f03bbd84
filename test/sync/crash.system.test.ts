import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { type Outbound, outboundKey } from '../../src/domain/message.ts'
import { partitionOf } from '../../src/domain/partition.ts'
import { Fault } from '../../src/fault.ts'
import type { Appender, Entry } from '../../src/log/log.ts'
import { findSyncRun, requestSync } from '../../src/sync/request.ts'
import { aDestination, anAudience } from '../support/configuration.ts'
import { cloneDatabase } from '../support/database.ts'
import { mortal } from './mortal.ts'
import {
  goLive,
  openWorld,
  partitions,
  setMember,
  setMembers,
  told,
  until,
  type World,
} from './stage.ts'

const { pool } = await cloneDatabase()
let world: World

beforeEach(async () => {
  world = await openWorld(pool)
})

afterEach(() => world.stopAll())

const finished = (id: number) =>
  until(async () => expect((await findSyncRun(pool, id))?.state).toBe('finished'))

/** Small enough that one run takes several chunks and several appends. */
const limits = {
  chunkUsersMax: 2,
  shardsOfStep: 2,
  stepsAtOnce: 2,
  appendRowsMax: 2,
  appendsPerBounds: 2,
  standbyMs: 5,
  pollMs: 5,
}

const partitionIn = (key: string) => partitionOf(key, partitions)

/** No seq is missing or repeated, and they ascend as a reader of each partition meets them. */
const isInOrder = (outbound: readonly Outbound[]) => {
  for (const rows of Map.groupBy(outbound, ({ shard }) => shard).values()) {
    const seqs = rows.map(({ seq }) => seq)
    expect(seqs.toSorted((a, b) => a - b)).toEqual(rows.map((_, at) => at + 1))
    for (const lane of Map.groupBy(rows, (row) => partitionIn(outboundKey(row))).values())
      expect(lane.map(({ seq }) => seq)).toEqual(lane.map(({ seq }) => seq).sort((a, b) => a - b))
  }
}

/** Members 1, 2, 65 and 129 were told; then 1 and 65 left, and 3, 193, 257 and 321 came. */
const arrange = async () => {
  await goLive(pool)
  await setMembers(pool, [1, 2, 65, 129])
  await pool.query('update membership set synced = true, cur = user_key not in (1, 65)')
  await setMembers(pool, [3, 193, 257, 321])
  return requestSync(pool, { audienceIds: [1], at: world.clock() })
}

const changes = ['u1:false', 'u193:true', 'u257:true', 'u3:true', 'u321:true', 'u65:false'].sort()

describe.each(['before', 'after'] as const)('a process killed %s any one await', (when) => {
  test('P9: loses and repeats nothing in the topic', { timeout: 900_000 }, async () => {
    let deaths = 0
    for (let at = 1; ; at++) {
      world = await openWorld(pool)
      const run = await arrange()
      const parts = { pool, source: world.log.source(), appender: world.log.appender() }
      const doomed = world.start({ ...mortal(parts, { at, when }), limits })
      await expect(doomed.done).rejects.toThrow('the process died')
      const over = (await findSyncRun(pool, run))?.state === 'finished'
      const next = world.start({ limits })
      await finished(run)
      await next.stop()
      const outbound = await world.outbound()
      expect(told(outbound), `killed ${when} await ${at}`).toEqual(changes)
      isInOrder(outbound)
      expect((await pool.query('select 1 from outbox')).rows).toEqual([])
      if (over) break
      deaths += 1
    }
    expect(deaths).toBeGreaterThan(25)
  })
})

/** Beside it, a destination is on again that knew 1, 2, 65 and 129, and 500 to 504, who left while it was off. */
const arrangeReturn = async () => {
  const destinations = [aDestination(), aDestination({ id: 2, name: 'Other' })]
  world.live.replace({ destinations, audiences: [anAudience({ destinationIds: [1, 2] })] })
  await pool.query(
    `insert into sync_schedule (audience_id, version, slot, started_at, next_sync_at)
     values (1, '1', 1, $1, $2)`,
    [world.clock(), new Date(world.clock().getTime() + 3_600_000)],
  )
  await pool.query('insert into sync_destination values (1, 1, null), (1, 2, 0)')
  await pool.query(
    `insert into sync_leaver (audience_id, destination_id, user_id, shard)
     select 1, 2, 'u' || key, key % 64 from generate_series(500, 504) as key`,
  )
  return arrange()
}

test('a process killed at any one await tells one that is on again what it missed, and all once', {
  timeout: 900_000,
}, async () => {
  const missed = [500, 501, 502, 503, 504].map((key) => `u${key}:false`)
  const known = [1, 2, 65, 129].map((key) => `u${key}:true`)
  for (let at = 1; ; at++) {
    world = await openWorld(pool)
    const run = await arrangeReturn()
    const parts = { pool, source: world.log.source(), appender: world.log.appender() }
    const when = at % 2 === 0 ? 'before' : 'after'
    const doomed = world.start({ ...mortal(parts, { at, when }), limits })
    await expect(doomed.done).rejects.toThrow('the process died')
    const over = (await findSyncRun(pool, run))?.state === 'finished'
    const next = world.start({ limits })
    await finished(run)
    await next.stop()
    const outbound = await world.outbound()
    const toldTo = (id: number) => told(outbound.filter((it) => it.destinationId === id))
    expect(toldTo(1), `killed ${when} await ${at}`).toEqual(changes)
    expect(toldTo(2), `killed ${when} await ${at}`).toEqual(
      [...missed, ...known, ...changes].toSorted(),
    )
    isInOrder(outbound)
    if (over) break
  }
})

describe('a rejected append', () => {
  const rejects = (written: (entries: readonly Entry[]) => readonly Entry[], times = 3) => {
    const real = world.log.appender()
    let left = times
    const appender: Appender = {
      ...real,
      append: async (topic, entries) => {
        if (left === 0) return real.append(topic, entries)
        left -= 1
        const some = written(entries)
        if (some.length > 0) await real.append(topic, some)
        throw new Fault('log_unavailable', 'no answer', { retriable: true })
      },
    }
    return appender
  }

  test.each([
    ['not written', () => []],
    ['written whole', (entries: readonly Entry[]) => entries],
    [
      'written in some partitions',
      (entries: readonly Entry[]) => entries.filter(({ key }) => partitionIn(key) % 2 === 0),
    ],
  ])('that was %s is neither lost nor repeated', async (_, written) => {
    await setMembers(pool, [1, 2, 65, 129, 193, 257, 321])
    await goLive(pool)
    world.start({ appender: rejects(written), limits: { ...limits, appendRowsMax: 100 } })
    await finished(1)
    const outbound = await world.outbound()
    expect(told(outbound)).toEqual(
      ['u1', 'u129', 'u193', 'u2', 'u257', 'u321', 'u65'].map((user) => `${user}:true`).sort(),
    )
    isInOrder(outbound)
  })
})

describe('several processes', () => {
  const killLeader = () =>
    pool.query(
      `select pg_terminate_backend(l.pid) from pg_locks l
         join pg_database d on d.oid = l.database and d.datname = current_database()
        where l.locktype = 'advisory' and l.granted`,
    )

  test('one leads at a time, and each takes over from a killed one without loss or repeat', async () => {
    await goLive(pool)
    for (let process = 0; process < 3; process++) world.start({ limits })
    const expected: string[] = []
    const epoch = async () => {
      const { rows } = await pool.query<{ epoch: bigint }>('select epoch from relay')
      return rows[0]?.epoch ?? 0n
    }
    let led = await epoch()
    for (let round = 0; round < 12; round++) {
      // Somebody leads who can be killed: who was killed before has been replaced.
      await until(async () => expect(await epoch()).toBeGreaterThan(led))
      led = await epoch()
      const keys = Array.from({ length: 40 }, (_, index) => round * 40 + index + 1)
      await setMembers(pool, keys)
      expected.push(...keys.map((key) => `u${key}:true`))
      const run = await requestSync(pool, { audienceIds: [1], at: world.clock() })
      if (round % 3 === 0)
        await until(async () => expect((await findSyncRun(pool, run))?.state).not.toBe('requested'))
      await killLeader()
      await finished(run)
    }
    const outbound = await world.outbound()
    expect(told(outbound)).toEqual(expected.sort())
    isInOrder(outbound)
    expect(await epoch()).toBeGreaterThanOrEqual(12n)
  })

  test('an append of a replaced relay that lands late only repeats what its seq gives away', async () => {
    await setMembers(pool, [1, 2, 65])
    await goLive(pool)
    const real = world.log.appender()
    let land: () => void = () => undefined
    let held = false
    const appender: Appender = {
      ...real,
      append: async (topic, entries) => {
        if (!held) {
          held = true
          await new Promise<void>((resolve) => {
            land = resolve
          })
        }
        return real.append(topic, entries)
      },
    }
    const replaced = world.start({ appender, limits })
    await until(() => expect(held).toBe(true))
    await killLeader()
    world.start({ limits: { ...limits, appendRowsMax: 100 } })
    await finished(1)
    land()
    await until(async () => expect((await world.outbound()).length).toBeGreaterThan(3))
    await replaced.stop()
    const seen = new Map<string, number>()
    const kept = (await world.outbound()).filter(({ shard, seq, userId }) => {
      // Stricter than delivery, which drops by partition and shard.
      const place = `${shard} ${userId}`
      const repeated = seq <= (seen.get(place) ?? 0)
      if (!repeated) seen.set(place, seq)
      return !repeated
    })
    expect(told(kept)).toEqual(['u1:true', 'u2:true', 'u65:true'])
  })

  test('while users come and go, each is told in turns, and at last the truth', async () => {
    await goLive(pool)
    for (let process = 0; process < 2; process++)
      world.start({ limits: { ...limits, chunkUsersMax: 50 } })
    let stop = false
    const flip = async (offset: number) => {
      for (let turn = 0; !stop; turn++) {
        const key = offset + ((turn * 7) % 30)
        await setMember(pool, { key, member: (turn * 13 + offset) % 5 < 3 })
      }
    }
    const projectors = [flip(1), flip(31)]
    for (let round = 0; round < 15; round++)
      await finished(await requestSync(pool, { audienceIds: [1], at: world.clock() }))
    stop = true
    await Promise.all(projectors)
    await finished(await requestSync(pool, { audienceIds: [1], at: world.clock() }))
    const users = Map.groupBy(await world.outbound(), ({ userId }) => userId)
    const { rows } = await pool.query<{ user_id: string }>(
      'select user_id from membership where cur',
    )
    const members = new Set(rows.map(({ user_id }) => user_id))
    expect(users.size).toBeGreaterThan(20)
    for (const [user, messages] of users) {
      const values = messages.toSorted((a, b) => a.seq - b.seq).map((it) => told([it])[0])
      expect(values).toEqual(values.map((_, index) => `${user}:${index % 2 === 0}`))
      expect(values.length % 2 === 1, `${user} is told last what holds`).toBe(
        members.has(user as string),
      )
    }
  })
})
