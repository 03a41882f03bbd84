import { expect, test } from 'vitest'
import { boundedMap } from '../../src/project/bounded-map.ts'

const ten = () => boundedMap<number, string>({ bytesMax: 20, bytesOf: () => 2 })

test('what was used last is still there when more was added than fits', () => {
  const map = ten()
  for (let key = 0; key < 100; key++) {
    map.set(key, `v${key}`)
    expect(map.get(0)).toBe('v0')
  }
  expect(map.get(99)).toBe('v99')
  expect(map.get(50)).toBeUndefined()
})

test('never more is held than fits', () => {
  const map = ten()
  for (let key = 0; key < 1_000; key++) map.set(key, 'v')
  const held = Array.from({ length: 1_000 }, (_, key) => map.take(key)).filter(
    (v) => v !== undefined,
  )
  expect(held.length).toBeLessThanOrEqual(10)
  expect(held.length).toBeGreaterThan(0)
})

test('what is taken or deleted is gone', () => {
  const map = ten()
  map.set(1, 'a')
  map.set(2, 'b')
  expect(map.take(1)).toBe('a')
  map.delete(2)
  expect([map.get(1), map.get(2), map.take(1)]).toEqual([undefined, undefined, undefined])
})

test('a value too heavy by itself is not kept', () => {
  const map = boundedMap<number, string>({ bytesMax: 20, bytesOf: (_, value) => value.length })
  map.set(1, 'x'.repeat(11))
  expect(map.get(1)).toBeUndefined()
})
