import fc from 'fast-check'
import { expect, test } from 'vitest'
import {
  isExpired,
  isLastTry,
  lastTryAt,
  lastTryMs,
  nextTry,
  retryAfterMaxMs,
  retryStepsMs,
  windowMs,
} from '../../src/domain/retry.ts'

const failure = { attempts: 1, firstTryAt: 0, now: 0, random: 0.5, retryAfterMs: null }

test('the steps are 10 s, 30 s, 1, 2, 5, 10, 15, 20 and then 30 minutes', () => {
  expect(retryStepsMs.map((ms) => ms / 1_000)).toEqual([10, 30, 60, 120, 300, 600, 900, 1200, 1800])
  const delays = Array.from({ length: 12 }, (_, at) => nextTry({ ...failure, attempts: at + 1 }))
  expect(delays.map((next) => (next.type === 'retry' ? next.at / 1_000 : null))).toEqual([
    10, 30, 60, 120, 300, 600, 900, 1200, 1800, 1800, 1800, 1800,
  ])
})

test('without jitter a message is tried at the sums of the steps and last just before its deadline', () => {
  const tries = [0]
  for (;;) {
    const now = tries.at(-1) ?? 0
    const next = nextTry({ ...failure, attempts: tries.length, now })
    if (next.type === 'expired') break
    tries.push(next.at)
  }
  expect(tries.map((ms) => ms / 1_000)).toEqual([
    0, 10, 40, 100, 220, 520, 1_120, 2_020, 3_220, 5_020, 6_820, 8_620, 10_420, 12_220, 14_020,
    14_395,
  ])
})

test('the receiver may ask for more time, never for less, and never beyond the window', () => {
  expect(nextTry({ ...failure, retryAfterMs: 60_000 })).toEqual({ type: 'retry', at: 60_000 })
  expect(nextTry({ ...failure, retryAfterMs: 1 })).toEqual({ type: 'retry', at: 10_000 })
  expect(nextTry({ ...failure, retryAfterMs: 10 * windowMs })).toEqual({
    type: 'retry',
    at: retryAfterMaxMs,
  })
  const now = windowMs - 60_000
  expect(nextTry({ ...failure, now, retryAfterMs: 10 * windowMs })).toEqual({
    type: 'retry',
    at: windowMs - lastTryMs,
  })
})

test('the last try of a held message is in the ten seconds before its deadline, and known as such', () => {
  fc.assert(
    fc.property(fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }), (random) => {
      const at = lastTryAt(1_000, random)
      expect(at).toBeGreaterThanOrEqual(1_000 + windowMs - 10_000)
      expect(at).toBeLessThanOrEqual(1_000 + windowMs - lastTryMs)
      expect(isLastTry(1_000, at)).toBe(true)
    }),
  )
  expect(isLastTry(1_000, 1_000 + windowMs - 10_001)).toBe(false)
})

test('whatever the jitter, the last try is just before the deadline and none comes after', () => {
  fc.assert(
    fc.property(fc.infiniteStream(fc.double({ min: 0, max: 0.999, noNaN: true })), (stream) => {
      let now = 0
      let attempts = 1
      for (const random of stream) {
        const next = nextTry({ ...failure, attempts, now, random })
        if (next.type === 'expired') break
        const step = retryStepsMs[Math.min(attempts, 9) - 1] ?? 0
        expect(next.at).toBeLessThanOrEqual(Math.max(now + step * 1.5 + 1))
        expect(next.at).toBeGreaterThan(now)
        now = next.at
        attempts += 1
      }
      expect(now).toBe(windowMs - lastTryMs)
    }),
  )
})

test('no try starts once the window is over; without a first try there is no window', () => {
  expect(isExpired(0, windowMs - 1)).toBe(false)
  expect(isExpired(0, windowMs)).toBe(true)
  expect(isExpired(null, 10 * windowMs)).toBe(false)
})
