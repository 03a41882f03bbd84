// Violations of tracking plans as they are counted: added up, saved, bounded, kept while Postgres is away.
import pino from 'pino'
import { afterEach, expect, test } from 'vitest'
import type { Violation } from '../../src/domain/tracking-plan.ts'
import { startViolations, type ViolationCounter } from '../../src/pipeline/violations.ts'
import type { Pool } from '../../src/postgres/sql.ts'
import { cloneDatabase } from '../support/database.ts'

const { pool } = await cloneDatabase()
const started: ViolationCounter[] = []

afterEach(async () => {
  for (const counter of started.splice(0)) await counter.stop()
  await pool.query('truncate plan_violation')
})

const noon = Date.parse('2026-03-01T12:00:00Z')
const source = { id: 7 }
const wrong = (path: string, event = 'Ordered'): Violation => ({ event, path, kind: 'type' })

type Over = Partial<Parameters<typeof startViolations>[0]>

const start = (over: Over = {}) => {
  const counter = startViolations({
    pool,
    clock: () => new Date(noon),
    logger: pino({ level: 'silent' }),
    ...over,
    // Tests save when they want to.
    limits: { saveMs: 3_600_000, ...over.limits },
  })
  started.push(counter)
  return counter
}

const rows = async () =>
  (
    await pool.query(
      `select day::text as day, source_id as source, event, path, kind, calls::int as calls,
              first_at as first, last_at as last
         from plan_violation order by day, source_id, event, path, kind`,
    )
  ).rows

test('calls are added up by source, day, event, path and keyword, with when first and last', async () => {
  const counter = start()
  counter.add(source, [wrong('properties.price'), wrong('properties.sku')], noon + 5)
  counter.add(source, [wrong('properties.price')], noon)
  counter.add({ id: 8 }, [wrong('properties.price')], noon)
  await counter.save()
  counter.add(source, [wrong('properties.price')], noon + 9)
  counter.add(source, [wrong('properties.price')], noon + 86_400_000)
  await counter.save()
  const day = '2026-03-01'
  const [at, later] = [new Date(noon), new Date(noon + 5)]
  const one = { event: 'Ordered', path: 'properties.price', kind: 'type', source: 7, calls: 1 }
  expect(await rows()).toEqual([
    { ...one, day, calls: 3, first: at, last: new Date(noon + 9) },
    { ...one, day, path: 'properties.sku', first: later, last: later },
    { ...one, day, source: 8, first: at, last: at },
    {
      ...one,
      day: '2026-03-02',
      first: new Date(noon + 86_400_000),
      last: new Date(noon + 86_400_000),
    },
  ])
})

test('beyond the limit of distinct ones the rest shares one row, and no call goes uncounted', async () => {
  const counter = start({ limits: { distinctMax: 3 } })
  for (let at = 0; at < 10; at += 1) counter.add(source, [wrong(`properties.p${at}`)], noon)
  counter.add(source, [wrong('properties.p0')], noon)
  await counter.save()
  expect((await rows()).map(({ path, kind, calls }) => [path, kind, calls])).toEqual([
    ['', 'other', 7],
    ['properties.p0', 'type', 2],
    ['properties.p1', 'type', 1],
    ['properties.p2', 'type', 1],
  ])
})

test('the limit holds over processes that save at the same time', async () => {
  const limits = { distinctMax: 20 }
  const counters = [start({ limits }), start({ limits }), start({ limits })]
  for (const [index, counter] of counters.entries())
    for (let at = 0; at < 15; at += 1)
      counter.add(source, [wrong(`properties.p${index * 10 + at}`)], noon)
  await Promise.all(counters.map((counter) => counter.save()))
  const saved = await rows()
  expect(saved).toHaveLength(21)
  expect(saved.reduce((sum, { calls }) => sum + (calls as number), 0)).toBe(45)
})

test('what waits is bounded over all sources', async () => {
  const counter = start({ limits: { waitingMax: 5 } })
  for (let at = 0; at < 20; at += 1) counter.add({ id: at % 2 }, [wrong(`properties.${at}`)], noon)
  await counter.save()
  const saved = await rows()
  expect(saved.filter(({ kind }) => kind !== 'other')).toHaveLength(5)
  expect(saved.reduce((sum, { calls }) => sum + (calls as number), 0)).toBe(20)
})

test('with Postgres away nothing is lost: it is saved with what came since', async () => {
  let isAway = true
  const broken: Pool = {
    ...pool,
    transaction: (work, options) =>
      isAway ? Promise.reject(new Error('away')) : pool.transaction(work, options),
  }
  const counter = start({ pool: broken })
  counter.add(source, [wrong('properties.price')], noon)
  const failed = counter.save()
  counter.add(source, [wrong('properties.price')], noon + 5)
  await expect(failed).rejects.toThrow('away')
  counter.add(source, [wrong('properties.price')], noon - 5)
  isAway = false
  await counter.save()
  expect(await rows()).toMatchObject([
    { calls: 3, first: new Date(noon - 5), last: new Date(noon + 5) },
  ])
})

test('stopping saves what waits', async () => {
  const counter = start()
  counter.add(source, [wrong('properties.price')], noon)
  await counter.stop()
  await counter.done
  expect(await rows()).toMatchObject([{ calls: 1 }])
})

test('days older than the limit are deleted', async () => {
  const counter = start({ limits: { keptDays: 2 } })
  for (const days of [0, 2, 3])
    counter.add(source, [wrong('properties.price')], noon - days * 86_400_000)
  await counter.save()
  expect((await rows()).map(({ day }) => day)).toEqual(['2026-02-27', '2026-03-01'])
})
