// Groups on the Postgres log when processes die for real, connections hang, and members come and go.
import { fork } from 'node:child_process'
import fc from 'fast-check'
import { afterEach, expect, test } from 'vitest'
import type { Lease, Source } from '../../src/log/log.ts'
import { postgresAppender, postgresSource } from '../../src/log/postgres.ts'
import { share } from '../../src/log/postgres-share.ts'
import { openPool } from '../../src/postgres/pool.ts'
import type { Connection, Pool, Sql } from '../../src/postgres/sql.ts'
import { cloneDatabase } from '../support/database.ts'
import { aGroup, entry, eventually, follow } from './log.harness.ts'

const database = await cloneDatabase()
const { pool } = database
const open: (() => Promise<void>)[] = []

afterEach(async () => {
  for (const close of open.splice(0).reverse()) await close()
})

const aSource = (over: Parameters<typeof postgresSource>[0] = { pool }): Source => {
  const source = postgresSource(over)
  open.push(source.close)
  return source
}

test('a process killed with SIGKILL loses its partitions within moments', async () => {
  const group = aGroup()
  const member = new URL('../support/log-member.ts', import.meta.url)
  const child = fork(member, [database.url, group])
  let held = 0
  child.on('message', (count: number) => {
    held = count
  })
  await eventually('the child holds everything', () => held === 12)
  // A missed beat would tell only after ten minutes: what tells sooner is the ended session.
  const follower = follow(aSource({ pool, limits: { deadAfterMs: 600_000 } }), {
    group,
    from: () => 0n,
  })
  await eventually('they share', () => follower.held().length === 6)
  child.kill('SIGKILL')
  await eventually('the other takes over', () => follower.held().length === 12)
})

test('a member whose connections hang loses its leases itself, before others take them', async () => {
  const group = aGroup()
  const limits = { beatMs: 100, beatTimeoutMs: 400, deadAfterMs: 2_000 }
  const gate = { hung: false }
  const hanging = aSource({ pool: hangable(pool, gate), limits })
  const first = follow(hanging, { group, from: () => 0n })
  await eventually('the first holds all', () => first.held().length === 12)
  let doubled = 0
  const second = follow(aSource({ pool, limits }), {
    group,
    from: () => 0n,
    gained: ({ partition }) => {
      if (first.held().some((lease) => lease.partition === partition)) doubled++
    },
  })
  await eventually('they share', () => second.held().length === 6)
  gate.hung = true
  await eventually('the first has lost its leases', () => first.held().length === 0)
  await eventually('the second has them', () => second.held().length === 12)
  expect(doubled).toBe(0)
  gate.hung = false
  await eventually('the first comes back', () => first.held().length === 6)
  const appender = postgresAppender({ pool, clock: () => new Date() })
  open.push(appender.close)
  const texts = Array.from({ length: 100 }, (_, index) => `hung-${index}`)
  await appender.append(
    'calls',
    texts.map((text) => entry(text, text)),
  )
  // Also where a fetch was swallowed while the connection hung.
  await eventually('both read on', () => {
    const seen = new Set([...first.texts(), ...second.texts()])
    return texts.every((text) => seen.has(text))
  })
})

test('a member whose session is terminated comes back by itself and goes on reading', async () => {
  const name = 'terminated'
  const own = openPool({ url: database.url, connectionsMax: 6, name })
  open.push(own.close)
  const appender = postgresAppender({ pool, clock: () => new Date() })
  open.push(appender.close)
  const source = aSource({ pool: own })
  const committed = new Map((await source.bounds('calls')).map(({ end }, index) => [index, end]))
  const follower = follow(source, {
    from: ({ partition }) => committed.get(partition) as bigint,
    handle: async ({ partition, batch }) => {
      committed.set(partition, batch.next)
    },
  })
  await appender.append('calls', [entry('one', 'before')])
  await eventually('it reads', () => follower.texts().includes('before'))
  await pool.query(
    'select pg_terminate_backend(pid) from pg_stat_activity where application_name = $1',
    [name],
  )
  await appender.append('calls', [entry('one', 'after')])
  await eventually('it reads on', () => follower.texts().includes('after'))
  await eventually('it holds all again', () => follower.held().length === 12)
  expect(follower.texts()).toEqual(['before', 'after'])
})

test('a commit by a member that was declared dead and does not know it answers lost', async () => {
  const limits = { beatMs: 60_000, beatTimeoutMs: 60_000, deadAfterMs: 600_000 }
  const declaredDead = async () => {
    const group = aGroup()
    const follower = follow(aSource({ pool, limits }), { group, from: () => 0n })
    await eventually('it holds all', () => follower.held().length === 12)
    const lease = follower.leases[0] as Lease
    expect(await lease.commit(3n)).toBe('committed')
    await pool.query('delete from log_member where group_name = $1', [group])
    const isKnown = lease.lost.aborted
    expect(await lease.commit(5n)).toBe('lost')
    // It must not come back and share.
    await follower.stop()
    return { group, lease, isKnown }
  }
  let dead = await declaredDead()
  // A look that was under way, as when it begins to hear of others, may have found it out.
  while (dead.isKnown) dead = await declaredDead()
  const next = follow(aSource(), { group: dead.group, from: () => 0n })
  await eventually('another holds all', () => next.held().length === 12)
  const gained = next.leases.find(({ partition }) => partition === dead.lease.partition)
  expect(gained?.committed).toBe(3n)
})

test('an append wakes an idle reader without waiting for its poll', async () => {
  const appender = postgresAppender({ pool, clock: () => new Date() })
  open.push(appender.close)
  // Neither a poll nor a beat comes within the test: whatever arrives was told of.
  const never = 3_600_000
  const source = aSource({ pool, limits: { pollMs: never, beatMs: never, deadAfterMs: 2 * never } })
  const ends = await source.bounds('outbound')
  const follower = follow(source, {
    topics: ['outbound'],
    from: ({ partition }) => ends[partition]?.end as bigint,
  })
  await eventually('all is held', () => follower.held().length === 12)
  const texts = Array.from({ length: 5 }, (_, round) => `woken ${round}`)
  for (const text of texts) {
    await appender.append('outbound', [entry('one', text)])
    await eventually('it arrives', () => follower.texts().includes(text))
  }
  expect(follower.texts()).toEqual(texts)
})

test('members that each decide for themselves come to fair shares, with every partition held', () => {
  const aRun = fc.record({
    members: fc.uniqueArray(fc.integer({ min: 1, max: 99 }), { minLength: 1, maxLength: 7 }),
    owners: fc.array(fc.option(fc.nat(6)), { minLength: 12, maxLength: 12 }),
    turns: fc.infiniteStream(fc.nat(6)),
  })
  fc.assert(
    fc.property(aRun, ({ members, owners, turns }) => {
      const seen = members.map((number) => ({ number, topics: ['calls' as const] }))
      let places = owners.map((owner, partition) => ({
        topic: 'calls' as const,
        partition,
        owner: owner === null ? null : (members[owner % members.length] ?? null),
      }))
      const order = [...turns.take(20)].map((turn) => members[turn % members.length] as number)
      // After turns in any order, two rounds of everybody settle it: give back, then take.
      for (const me of [...order, ...members, ...members]) {
        const { claim, release } = share({ me, members: seen, places })
        const has = (list: typeof claim, partition: number) =>
          list.some((place) => place.partition === partition)
        places = places.map((place) => {
          if (has(claim, place.partition)) {
            expect(place.owner).toBe(null)
            return { ...place, owner: me }
          }
          if (!has(release, place.partition)) return place
          expect(place.owner).toBe(me)
          return { ...place, owner: null }
        })
      }
      const counts = members.map((me) => places.filter(({ owner }) => owner === me).length)
      expect(counts.reduce((sum, count) => sum + count, 0)).toBe(12)
      expect(Math.max(...counts) - Math.min(...counts)).toBeLessThanOrEqual(1)
    }),
  )
})

/** The pool as a process sees it whose network swallows everything while the gate is hung. */
const hangable = (real: Pool, gate: { hung: boolean }): Pool => {
  const through = <R>(work: () => Promise<R>): Promise<R> =>
    gate.hung ? new Promise(() => undefined) : work()
  const wrap = (connection: Connection): Connection => ({
    ...connection,
    query: ((text: string, values?: readonly unknown[]) =>
      through(() => connection.query(text, values))) as Sql['query'],
  })
  return {
    ...real,
    query: (text, values) => through(() => real.query(text, values)),
    connect: (use) => through(() => real.connect((connection) => use(wrap(connection)))),
  }
}
