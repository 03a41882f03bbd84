// The production clock: database time, carried on monotonically.
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { openClock, steadyClock } from '../../src/postgres/clock.ts'
import type { Rows, Sql } from '../../src/postgres/sql.ts'
import { cloneDatabase } from '../support/database.ts'

const database = await cloneDatabase()

const databaseTime = async () => {
  const { rows } = await database.pool.query<{ at: Date }>('select clock_timestamp() as at')
  return rows[0]?.at.getTime() ?? Number.NaN
}

test('it tells the time of the database', async () => {
  const { clock, stop } = await openClock({ sql: database.pool, onError: () => undefined })
  const before = await databaseTime()
  const told = clock().getTime()
  const after = await databaseTime()
  stop()
  // A sample is wrong by half its round trip at most; the bound below is that of a loaded machine.
  expect(told).toBeGreaterThan(before - 1_000)
  expect(told).toBeLessThan(after + 1_000)
})

test('between samples it advances with the monotonic timer, not with the clock of the machine', async () => {
  let uptime = 5_000
  const { clock, stop } = await openClock({
    sql: database.pool,
    onError: () => undefined,
    monotonic: () => uptime,
  })
  const first = clock().getTime()
  uptime += 3_600_000
  expect(clock().getTime() - first).toBe(3_600_000)
  stop()
})

test('a sample that fails is reported and the clock goes on', async () => {
  let broken = false
  const sql: Sql = {
    query: async <R extends object>(text: string): Promise<Rows<R>> => {
      if (broken) throw new Error('gone')
      return database.pool.query<R>(text)
    },
  }
  const failed = Promise.withResolvers<unknown>()
  const { clock, stop } = await openClock({
    sql,
    onError: failed.resolve,
    limits: { sampleEveryMs: 5 },
  })
  const before = clock().getTime()
  broken = true
  expect(await failed.promise).toMatchObject({ message: 'gone' })
  expect(clock().getTime()).toBeGreaterThanOrEqual(before)
  stop()
})

test('a sample ahead is taken at once', () => {
  const clock = steadyClock({ at: 0, time: 1_000_000 })
  clock.adjust({ at: 60_000, time: 1_065_000 }, 60_000)
  expect(clock.read(60_000)).toBe(1_065_000)
})

test('a sample behind makes it run at half speed until they meet', () => {
  const clock = steadyClock({ at: 0, time: 1_000_000 })
  clock.adjust({ at: 60_000, time: 1_050_000 }, 60_000)
  expect(clock.read(60_000)).toBe(1_060_000)
  expect(clock.read(70_000)).toBe(1_065_000)
  expect(clock.read(80_000)).toBe(1_070_000)
  expect(clock.read(90_000)).toBe(1_080_000)
})

test('it never goes backwards, whatever the database says', () => {
  const step = fc.record({ after: fc.nat(120_000), drift: fc.integer({ min: -1e9, max: 1e9 }) })
  fc.assert(
    fc.property(fc.array(step, { maxLength: 30 }), (steps) => {
      let at = 0
      const clock = steadyClock({ at, time: 1e12 })
      let last = clock.read(at)
      for (const { after, drift } of steps) {
        at += after
        expect(clock.read(at)).toBeGreaterThanOrEqual(last)
        clock.adjust({ at, time: 1e12 + at + drift }, at)
        expect(clock.read(at)).toBeGreaterThanOrEqual(last)
        last = clock.read(at)
      }
    }),
  )
})
