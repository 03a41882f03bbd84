import { expect, test } from 'vitest'
import { byteWriter, packedReader } from '../../../../src/domain/bytes.ts'
import {
  addExact,
  type Millionths,
  millionthsOf,
  quotient,
  readExact,
  readNumber,
  writeExact,
  writeNumber,
} from '../../../../src/domain/condition/summary/exact.ts'
import type { Json } from '../../../../src/domain/message.ts'

test.each<[Json, Millionths | null]>([
  [19.99, 19_990_000],
  ['19.99', 19_990_000],
  [-0.1, -100_000],
  [-0, 0],
  ['-0.0', 0],
  [0.0000005, 1],
  [-0.0000005, -1],
  ['0.00000049999999999999999999', 0],
  [4e-7, 0],
  [1e-300, 0],
  [2 ** 53, 9_007_199_254_740_992_000_000n],
  [1.5e21, 1_500_000_000_000_000_000_000_000_000n],
  ['9007199254740993', 9_007_199_254_740_993_000_000n],
  ['123456789012.3456789', 123_456_789_012_345_679n],
  ['1e3', null],
  ['', null],
  [' 1', null],
  ['01', null],
  [true, null],
  [null, null],
  [[1], null],
])('%j is %s millionths', (value, expected) => {
  expect(millionthsOf(value)).toBe(expected)
})

test('sums are exact where floats are not, and come back to small numbers', () => {
  const tenths = Array.from({ length: 10 }, () => millionthsOf(0.1) as Millionths)
  expect(quotient(tenths.reduce(addExact, 0))).toBe(1)
  const large = millionthsOf(1e20) as Millionths
  const sum = [large, millionthsOf(0.3) as Millionths, millionthsOf(-1e20) as Millionths]
  expect(sum.reduce(addExact, 0)).toBe(300_000)
})

test.each<[bigint, number, number]>([
  [10_000_000_000_000_000_000_000n, 3, 1e16 / 3],
  [9_007_199_254_740_993_000_000n, 1, 9_007_199_254_740_992],
  [9_007_199_254_740_993_000_001n, 1, 9_007_199_254_740_994],
  [-(10n ** 400n), 1, -Number.MAX_VALUE],
  [17n * 10n ** 313n, 1, 1.7e308],
])('%s millionths over %s is the nearest number', (sum, count, expected) => {
  expect(quotient(sum, count)).toBe(expected)
})

test('amounts are written in few bytes, and all read back as they were', () => {
  const [to, from] = [byteWriter(), packedReader()]
  const written = (write: () => void) => {
    write()
    const packed = to.take()
    from.open(packed, 0)
    return packed.length
  }
  const amounts: Millionths[] = [
    0,
    1,
    -1,
    19_990_000,
    -5_000_000,
    2 ** 52,
    10n ** 30n,
    -(10n ** 30n),
  ]
  for (const amount of amounts) {
    written(() => writeExact(to, amount))
    expect(readExact(from)).toBe(amount)
  }
  for (const number of [0, 5, -5, 0.1, 1e-7, 1e21, -1.7976931348623157e308, 5e-324, 2 ** 60]) {
    written(() => writeNumber(to, number))
    expect(readNumber(from)).toBe(number)
  }
  expect(written(() => writeExact(to, 19_990_000))).toBeLessThanOrEqual(3)
})
