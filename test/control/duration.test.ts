import fc from 'fast-check'
import { expect, test } from 'vitest'
import { formatDuration, parseDuration } from '../../src/control/duration.ts'

test.each([
  ['2h30m', 9_000_000],
  ['1m', 60_000],
  ['90s', 90_000],
  ['1d', 86_400_000],
  ['1d2h3m4s', 93_784_000],
  ['0s', 0],
])('%s is %i ms', (text, ms) => {
  expect(parseDuration(text)).toBe(ms)
})

test.each(['', '2', 'h', '30m2h', '1h1h', '1.5h', '-1h', ' 1h', '1h ', '1w', '2H', '1234567d'])(
  '%j is no duration',
  (text) => {
    expect(parseDuration(text)).toBeNull()
  },
)

test('what is written is read back', () => {
  fc.assert(
    fc.property(fc.nat(40_000_000), (seconds) => {
      expect(parseDuration(formatDuration(seconds * 1_000))).toBe(seconds * 1_000)
    }),
  )
})
