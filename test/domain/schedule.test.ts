import fc from 'fast-check'
import { expect, test } from 'vitest'
import { isDue, nextSyncAt, syncIntervalMs } from '../../src/domain/schedule.ts'

const hour = 3_600_000
const everyMs = 2.5 * hour
const audienceId = fc.integer({ min: 1, max: 2 ** 31 - 1 })
const slot = fc.nat({ max: 1_000_000 })

test('two hours and a half become two to three hours', () => {
  fc.assert(
    fc.property(audienceId, slot, (audience, at) => {
      const interval = syncIntervalMs({ audienceId: audience, slot: at, everyMs })
      return interval >= 2 * hour && interval <= 3 * hour
    }),
  )
})

test('any interval is kept within a fifth, and always the same for an audience and slot', () => {
  fc.assert(
    fc.property(audienceId, slot, fc.integer({ min: 60_000, max: 1e10 }), (audience, at, every) => {
      const drawn = { audienceId: audience, slot: at, everyMs: every }
      const interval = syncIntervalMs(drawn)
      expect(interval).toBe(syncIntervalMs({ ...drawn }))
      expect(Math.abs(interval - every)).toBeLessThanOrEqual(every * 0.2 + 1)
    }),
  )
})

test('the spread fills the whole range, over slots and over audiences', () => {
  const over = (of: (index: number) => { audienceId: number; slot: number }) =>
    Array.from({ length: 2_000 }, (_, index) => syncIntervalMs({ ...of(index), everyMs }) / hour)
  for (const drawn of [
    over((index) => ({ audienceId: 1, slot: index })),
    over((index) => ({ audienceId: index + 1, slot: 1 })),
  ]) {
    const mean = drawn.reduce((sum, it) => sum + it, 0) / drawn.length
    expect(mean).toBeGreaterThan(2.45)
    expect(mean).toBeLessThan(2.55)
    expect(Math.min(...drawn)).toBeLessThan(2.02)
    expect(Math.max(...drawn)).toBeGreaterThan(2.98)
  }
})

const startedAt = new Date('2024-03-01T00:00:00.000Z')
const last = { version: '1', slot: 4, startedAt }
const candidate = { id: 7, syncEveryMs: everyMs, version: '1', last }
const next = nextSyncAt({ audienceId: 7, slot: 4, everyMs, startedAt })
const before = new Date(next.getTime() - 1)

const dueOf = {
  'at its slot': [candidate, next, true],
  'a millisecond before its slot': [candidate, before, false],
  'when it was never synced': [{ ...candidate, last: null }, startedAt, true],
  'while it is back-filled': [{ ...candidate, version: null }, next, false],
  'when another definition is complete': [{ ...candidate, version: '2' }, startedAt, true],
  'when its interval was shortened': [{ ...candidate, syncEveryMs: 60_000 }, before, true],
} as const

test.each(Object.entries(dueOf))('whether an audience is due %s', (_, [audience, now, due]) => {
  expect(isDue(audience, now)).toBe(due)
})
