import { expect, test } from 'vitest'
import { murmur2, partitionOf } from '../../src/domain/partition.ts'

// From Apache Kafka's own UtilsTest.testMurmur2.
test.each([
  ['21', -973932308],
  ['foobar', -790332482],
  ['a-little-bit-long-string', -985981536],
  ['a-little-bit-longer-string', -1486304829],
  ['lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8', -58897971],
  ['abc', 479470107],
])('murmur2 of %s is what Kafka computes', (text, hash) => {
  expect(murmur2(Buffer.from(text))).toBe(hash)
})

test('every partition is used, and a key always goes to the same one', () => {
  const used = new Set(Array.from({ length: 1_000 }, (_, i) => partitionOf(`user-${i}`, 12)))
  expect(used.size).toBe(12)
  expect(partitionOf('1:1:u1', 12)).toBe(partitionOf('1:1:u1', 12))
})
