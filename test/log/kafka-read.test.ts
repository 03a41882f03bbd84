import { expect, test } from 'vitest'
import { fetchBytesOf } from '../../src/log/kafka-read.ts'

test('a few records are fetched with few bytes, and never more than a megabyte at a time', () => {
  expect(fetchBytesOf(1n)).toBe(16_384)
  expect(fetchBytesOf(100n)).toBe(204_800)
  expect(fetchBytesOf(2n ** 63n - 1n)).toBe(1_064_960)
})
