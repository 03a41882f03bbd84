// What one process tells, on a real database: who is watched, what is kept, what is dropped and said to be.
import pino from 'pino'
import { afterAll, afterEach, describe, expect, test } from 'vitest'
import { openDebugger, type Told } from '../../src/debugger/debugger.ts'
import type { Entry } from '../../src/debugger/entry.ts'
import { type feedLimits, type Heard, openFeed } from '../../src/debugger/feed.ts'
import { loadEntries } from '../../src/debugger/store.ts'
import { openPool } from '../../src/postgres/pool.ts'
import { cloneDatabase } from '../support/database.ts'
import { until } from '../support/until.ts'

const { pool, url } = await cloneDatabase()
// As another process would have it.
const elsewhere = openPool({ url, connectionsMax: 5, name: 'elsewhere' })
const lines: string[] = []
const logger = pino({ level: 'debug' }, { write: (line: string) => void lines.push(line) })
let now = Date.UTC(2026, 2, 1)
const clock = () => new Date(now)

const ends: (() => unknown)[] = []
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end()
  await pool.query('delete from debugger_watch')
  await pool.query('delete from debugger_entry')
})
afterAll(() => elsewhere.close())

const telling = async (limits: Parameters<typeof openDebugger>[0]['limits'] = {}, on = pool) => {
  const debugging = await openDebugger({
    pool: on,
    clock,
    logger,
    limits: { flushMs: 5, ...limits },
  })
  ends.push(debugging.close)
  return debugging
}

const told = (event: string, over: Partial<Told> = {}): Told => ({
  step: 'accepted',
  at: now,
  reason: null,
  type: 'track',
  event,
  messageId: null,
  call: Buffer.from(JSON.stringify({ type: 'track', event, properties: { note: 'private' } })),
  ...over,
})

type Wish = { readonly sourceId?: number; readonly after?: number }

const following = async (
  { sourceId = 1, after }: Wish = {},
  limits: Partial<typeof feedLimits> = {},
) => {
  const leaving = new AbortController()
  const feed = openFeed({ pool: elsewhere, clock, logger, limits: { renewMs: 50, ...limits } })
  const stream = await feed.follow({ sourceId, after: after ?? null, signal: leaving.signal })
  const heard: Heard[] = []
  const done = (async () => {
    for await (const one of stream ?? []) heard.push(one)
  })()
  ends.push(() => {
    leaving.abort()
    return done
  })
  const events = () =>
    heard.flatMap((one) => (one.type === 'entry' ? [(JSON.parse(one.entry) as Entry).event] : []))
  return {
    heard,
    events,
    feed,
    skipped: () => heard.reduce((sum, one) => sum + (one.type === 'skipped' ? one.amount : 0), 0),
    saw: (event: string) => until(() => events().includes(event), `${event} in ${events()}`),
    leave: async () => {
      leaving.abort()
      await done
    },
  }
}

const stored = (sourceId = 1) => loadEntries(pool, { sourceId, after: 0, limit: 10_000 })

describe('a watch', () => {
  test('is in force in another process though its poll is far away', async () => {
    const debugging = await telling({ pollMs: 3_600_000 })
    expect([debugging.isWatching(), debugging.isWatched(1)]).toEqual([false, false])
    await following()
    await until(() => debugging.isWatched(1))
    expect([debugging.isWatching(), debugging.isWatched(2)]).toEqual([true, false])
  })

  test('is found by the poll when its notification was lost', async () => {
    const debugging = await telling({ pollMs: 20 })
    await pool.query(
      'insert into debugger_watch (source_id, until, began, last) values (1, $1, 0, 0)',
      [new Date(now + 15_000)],
    )
    await until(() => debugging.isWatched(1))
  })

  test('ends by itself a while after it was last renewed, and is renewed while somebody watches', async () => {
    const debugging = await telling({ pollMs: 20 })
    const { leave } = await following()
    await until(() => debugging.isWatched(1))
    now += 14_000
    // Renewed, it outlasts what it was given at first.
    await until(async () => {
      const { rows } = await pool.query<{ until: Date }>('select until from debugger_watch')
      return rows[0]?.until.getTime() === now + 15_000
    })
    now += 14_000
    await until(() => debugging.isWatched(1))
    await leave()
    now += 15_000
    await until(() => !debugging.isWatching())
    expect(debugging.isWatched(1)).toBe(false)
  })

  test('ends on time though Postgres is away', async () => {
    const broken = {
      ...elsewhere,
      query: (async (...args: Parameters<typeof elsewhere.query>) => {
        if (isAway) throw new Error('away')
        return elsewhere.query(...args)
      }) as typeof elsewhere.query,
    }
    let isAway = false
    const debugging = await telling({ pollMs: 20 }, broken)
    const { leave } = await following()
    await until(() => debugging.isWatched(1))
    await leave()
    isAway = true
    expect(debugging.isWatched(1)).toBe(true)
    now += 15_001
    await until(() => !debugging.isWatching())
  })

  test('that ended an hour ago is swept away with its entries', async () => {
    const debugging = await telling({ pollMs: 20, sweepMs: 20 })
    const { saw, leave } = await following()
    await until(() => debugging.isWatched(1))
    debugging.tell(1, [told('Seen')])
    await saw('Seen')
    await leave()
    now += 15_000 + 3_600_000 - 1
    await until(() => !debugging.isWatching())
    expect(await stored()).toHaveLength(1)
    now += 2
    await until(async () => (await stored()).length === 0)
    expect((await pool.query('select 1 from debugger_watch')).rows).toEqual([])
  })
})

describe('a source that is not watched', () => {
  test('costs no entry, no timer and no row', async () => {
    const debugging = await telling()
    await following({ sourceId: 2 })
    await until(() => debugging.isWatched(2))
    debugging.tell(1, [told('Unseen')])
    expect(debugging.pendingBytes()).toBe(0)
    await debugging.flush()
    expect(await stored()).toEqual([])
  })
})

describe('entries', () => {
  test('of several processes are told in one order, masked, without a hole', async () => {
    const [one, other] = [await telling(), await telling({}, elsewhere)]
    const { events, skipped } = await following()
    await until(() => one.isWatched(1) && other.isWatched(1))
    const wanted: string[] = []
    for (let at = 0; at < 40; at += 1) {
      const event = `Event ${String.fromCharCode(97 + (at % 26))}${at < 26 ? '' : ' again'}`
      wanted.push(event)
      ;(at % 2 ? one : other).tell(1, [told(event)])
      if (at % 7 === 0) await Promise.all([one.flush(), other.flush()])
    }
    await until(() => events().length === wanted.length)
    expect(events().toSorted()).toEqual(wanted.toSorted())
    expect(skipped()).toBe(0)
    const rows = await stored()
    expect(rows.map(({ id }) => id)).toEqual(rows.map((_, at) => (rows[0]?.id ?? 0) + at))
    expect(rows.every(({ entry }) => !entry.includes('private'))).toBe(true)
  })

  test('stay within 500 and within their bytes under 50,000 calls, and those dropped are counted', async () => {
    const debugging = await telling({ pendingBytesMax: 1_048_576 })
    const { heard, skipped, saw } = await following()
    await until(() => debugging.isWatched(1))
    const batch = Array.from({ length: 2_500 }, () => told('Many'))
    let most = 0
    for (let sent = 0; sent < 50_000; sent += batch.length) {
      debugging.tell(1, batch)
      most = Math.max(most, debugging.pendingBytes())
      if (sent % 10_000 === 0) await debugging.flush()
    }
    const large = Array.from({ length: 400 }, () =>
      told('Large', { call: { text: 'x'.repeat(30_000) } }),
    )
    debugging.tell(1, large)
    most = Math.max(most, debugging.pendingBytes())
    expect(most).toBeLessThanOrEqual(1_048_576)
    debugging.tell(1, [told('Last')])
    await saw('Last')
    expect((await stored()).length).toBeLessThanOrEqual(500)
    const entries = heard.filter(({ type }) => type === 'entry').length
    const { rows } = await pool.query<{ began: bigint; last: bigint }>(
      'select began, last from debugger_watch',
    )
    expect(Number(rows[0]?.last) - Number(rows[0]?.began)).toBe(50_401)
    expect(entries + skipped()).toBe(50_401)
  })

  test('that could not be written are told as skipped with the next', async () => {
    let isAway = false
    const broken = {
      ...pool,
      transaction: (async (work: Parameters<typeof pool.transaction>[0]) => {
        if (isAway) throw new Error('away')
        return pool.transaction(work)
      }) as typeof pool.transaction,
    }
    const debugging = await telling({}, broken)
    const { heard, saw, skipped } = await following()
    await until(() => debugging.isWatched(1))
    debugging.tell(1, [told('First')])
    await saw('First')
    isAway = true
    debugging.tell(1, [told('Lost'), told('Lost too')])
    await debugging.flush()
    isAway = false
    debugging.tell(1, [told('Second')])
    await saw('Second')
    expect(skipped()).toBe(2)
    expect(heard.map(({ type }) => type)).toEqual(['entry', 'skipped', 'entry'])
    expect(lines.join()).toContain('debugger.not_written')
    expect(lines.join()).not.toContain('Lost')
  })

  test('are all shown when they are the first, however long that takes to mask', async () => {
    const debugging = await telling({ maskMsMax: -1, yieldMs: 0 })
    const { saw, events, skipped } = await following()
    await until(() => debugging.isWatched(1))
    debugging.tell(1, [told('First'), told('Second'), told('Third')])
    await saw('Third')
    expect(events()).toEqual(['First', 'Second', 'Third'])
    expect(skipped()).toBe(0)
  })

  test('that were lost before a watcher heard the first one are told of', async () => {
    const debugging = await telling({ entriesMax: 10 })
    const first = await following()
    await until(() => debugging.isWatched(1))
    debugging.tell(1, [...Array.from({ length: 30 }, () => told('Old')), told('New')])
    await first.saw('New')
    expect([first.events().length, first.skipped()]).toEqual([10, 21])
    // What was over before somebody came is nothing missed.
    const second = await following()
    await second.saw('New')
    expect([second.events().length, second.skipped()]).toEqual([10, 0])
  })

  test('that take too long to mask are skipped, the oldest first, and others run meanwhile', async () => {
    const debugging = await telling({ maskMsMax: 0, yieldMs: 0 })
    const { saw, skipped } = await following()
    await until(() => debugging.isWatched(1))
    debugging.tell(1, [told('First')])
    await saw('First')
    let turns = 0
    const turning = setInterval(() => {
      turns += 1
    }, 0)
    debugging.tell(1, [...Array.from({ length: 300 }, () => told('Old')), told('New')])
    await saw('New')
    clearInterval(turning)
    expect(skipped()).toBe(300)
    expect(turns).toBeGreaterThan(0)
  })

  test('show a call that is too deep for recursion as what it is', async () => {
    const debugging = await telling()
    const { saw, heard } = await following()
    await until(() => debugging.isWatched(1))
    const deep = JSON.parse(`${'['.repeat(50_000)}${']'.repeat(50_000)}`)
    debugging.tell(1, [told('Deep', { step: 'rejected', reason: 'too_deep', call: deep })])
    await saw('Deep')
    expect(JSON.stringify(heard.at(-1))).toContain('… a list of 1')
  })
})

describe('a watcher', () => {
  test('who comes back with an id hears what came since, and how much was trimmed meanwhile', async () => {
    const debugging = await telling()
    const first = await following()
    await until(() => debugging.isWatched(1))
    debugging.tell(1, [told('Before')])
    await first.saw('Before')
    await first.leave()
    const [entry] = first.heard
    const after = entry?.type === 'entry' ? entry.id : 0
    debugging.tell(
      1,
      Array.from({ length: 300 }, () => told('Between')),
    )
    await debugging.flush()
    const second = await following({ after })
    await until(() => second.events().length === 300)
    expect([second.skipped(), second.events().includes('Before')]).toEqual([0, false])
    await second.leave()
    for (let times = 0; times < 3; times += 1) {
      debugging.tell(
        1,
        Array.from({ length: 300 }, () => told('Later')),
      )
      await debugging.flush()
    }
    const third = await following({ after })
    await until(() => third.events().length === 500)
    expect(third.heard[0]).toEqual({ type: 'skipped', amount: 300 + 900 - 500 })
    await third.leave()
    // An id of another life of the watch says nothing.
    const fresh = await following({ after: 7 })
    await until(() => fresh.events().length === 500)
    expect(fresh.skipped()).toBe(0)
  })

  test('is told of silence, so that a connection is not taken for dead', async () => {
    const { heard } = await following({}, { idleMs: 20, pollMs: 5 })
    await until(() => heard.length > 2)
    expect(new Set(heard.map(({ type }) => type))).toEqual(new Set(['idle']))
  })

  test('is one of so many', async () => {
    const { feed } = await following({}, { watchersMax: 1 })
    const { signal } = new AbortController()
    expect(await feed.follow({ sourceId: 1, after: null, signal })).toBeNull()
  })

  test('who left before reading anything leaves nothing behind', async () => {
    const feed = openFeed({ pool: elsewhere, clock, logger, limits: { watchersMax: 1 } })
    const leaving = new AbortController()
    await feed.follow({ sourceId: 1, after: null, signal: leaving.signal })
    leaving.abort()
    const next = new AbortController()
    ends.push(() => next.abort())
    expect(await feed.follow({ sourceId: 1, after: null, signal: next.signal })).not.toBeNull()
  })
})
