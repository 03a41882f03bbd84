// Caches outside the heap hold what a map would, or less: never anything else, and never more bytes than they may.
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { repack } from '../../src/audience/pack.ts'
import { newUser, type UserState } from '../../src/audience/state.ts'
import { openRing } from '../../src/project/ring.ts'
import { openTextCache } from '../../src/project/text-cache.ts'
import { openUserCache } from '../../src/project/user-cache.ts'

const bytesMax = 4_096
const everything = { audience: () => true, leaf: () => true }

const step = <K>(key: fc.Arbitrary<K>) =>
  fc.record({
    does: fc.constantFrom('get', 'get', 'set', 'set', 'set', 'delete'),
    key,
    value: fc.integer({ min: -1, max: 2 ** 52 }),
  })

const text = fc.oneof(
  fc.integer({ min: 0, max: 60 }).map((number) => `1:user:user-${number}`),
  fc.string({ unit: 'binary', maxLength: 40 }),
)

test('numbers by text are those of a map, or forgotten', () => {
  fc.assert(
    fc.property(fc.array(step(text), { maxLength: 400 }), (steps) => {
      const cache = openTextCache(bytesMax)
      const map = new Map<string, number>()
      for (const { does, key, value } of steps) {
        if (does === 'get') expect([undefined, map.get(key)]).toContain(cache.get(key))
        else if (does === 'delete') {
          cache.delete(key)
          map.delete(key)
          expect(cache.get(key)).toBeUndefined()
        } else {
          cache.set(key, value)
          map.set(key, value)
          expect(cache.get(key)).toBe(value)
        }
      }
    }),
  )
})

const aUser = (key: number, value: number): UserState => {
  const user = {
    ...newUser(key, 1 + (value % 3)),
    ver: value + 2,
    userId: value % 4 === 0 ? null : `Šárka-${key}-${'x'.repeat(value % 100)}`,
    due: value % 2 === 0 ? Number.POSITIVE_INFINITY : 1_700_000_000_000 + (value % 1_000_000),
    identities: value % 7,
    members: Array.from({ length: value % 9 }, (_, at) => at * 200),
  }
  repack(user, everything)
  return user
}

const userKey = fc.oneof(fc.integer({ min: 1, max: 40 }), fc.integer({ min: 1, max: 2 ** 52 }))

test('users are those of a map, or forgotten', () => {
  fc.assert(
    fc.property(fc.array(step(userKey), { maxLength: 200 }), (steps) => {
      const cache = openUserCache(bytesMax)
      const map = new Map<number, UserState>()
      for (const { does, key, value } of steps) {
        if (does === 'set') {
          map.set(key, aUser(key, Math.max(0, value)))
          cache.set(aUser(key, Math.max(0, value)))
        } else if (does === 'delete') {
          cache.delete(key)
          map.delete(key)
        } else {
          const isThere = cache.has(key)
          const taken = cache.take(key)
          expect(taken !== undefined).toBe(isThere)
          if (taken !== undefined) expect(taken).toEqual(map.get(key))
          expect(cache.has(key)).toBe(false)
        }
      }
    }),
  )
})

test('a user who changed since they were packed is forgotten', () => {
  const cache = openUserCache(bytesMax)
  const user = aUser(1, 5)
  cache.set(user)
  cache.set({ ...user, traits: new Map() })
  expect(cache.has(1)).toBe(false)
})

test('who is kept is there until a good part of the cache was written over', () => {
  const large = 262_144
  fc.assert(
    fc.property(fc.array(fc.nat(2_000), { minLength: 1_000, maxLength: 3_000 }), (keys) => {
      const cache = openUserCache(large)
      for (const key of keys) cache.set(aUser(key, key))
      const kept = keys.filter((key) => cache.keep(key))
      expect(kept.length).toBeGreaterThan(0)
      let written = 0
      // The table takes an eighth of it, and half of the rest is what is old.
      for (let key = 10_000; written < large / 8; key++) {
        const user = aUser(key, key)
        cache.set(user)
        written += user.packed.length + 60
      }
      const last = [...new Set(kept.slice(-20))]
      expect(last.filter((key) => cache.has(key))).toEqual(last)
      for (const key of last) expect(cache.take(key)).toEqual(aUser(key, key))
    }),
    { numRuns: 20, endOnFailure: true },
  )
})

test('a cache of any size ends every search', () => {
  for (let bytesMax = 0; bytesMax < 2_000; bytesMax += 7) {
    const cache = openUserCache(bytesMax)
    for (let key = 1; key <= 50; key++) {
      cache.set(aUser(key, 1))
      cache.keep(key)
      cache.delete(key - 2)
      expect(cache.has(key - 2)).toBe(false)
    }
  }
})

test('what is asked for stays when a hundred times more comes than fits', () => {
  const cache = openTextCache(bytesMax)
  cache.set('hot', 7)
  for (let number = 0; number < 10_000; number++) {
    cache.set(`cold-${number}`, number)
    expect(cache.get('hot')).toBe(7)
  }
  expect(cache.get('cold-9999')).toBe(9_999)
  expect(cache.get('cold-10')).toBeUndefined()
})

test('what was written last is there, in entries of any size', () => {
  const ring = openRing({ bytesMax: 65_536, entryBytes: 100 })
  const placed: number[] = []
  for (let number = 0; number < 5_000; number++) {
    const bytes = 1 + ((number * 7_919) % 900)
    const place = ring.add(number, bytes)
    expect(place + bytes).toBeLessThanOrEqual(ring.buffer.byteLength)
    placed.push(place)
    for (const back of [0, 1, 5, 20])
      if (number >= back) expect(ring.find(number - back, () => true)).toBe(placed[number - back])
  }
  expect(ring.buffer.byteLength).toBeLessThanOrEqual(65_536)
})

test('of a thousand of one hash a few are kept, and none of them is confused with another', () => {
  const ring = openRing({ bytesMax: 1_048_576, entryBytes: 100 })
  const places = Array.from({ length: 1_000 }, () => ring.add(42, 50)).filter((at) => at >= 0)
  expect(places.length).toBeLessThan(200)
  let looks = 0
  ring.find(42, () => ++looks < 0)
  expect(looks).toBeLessThan(200)
  for (const place of places) {
    ring.remove(place)
    expect(ring.find(42, (at) => at === place)).toBe(-1)
  }
})

test('what has no room is not kept, and pushes nothing out', () => {
  const cache = openTextCache(bytesMax)
  cache.set('small', 1)
  cache.set('x'.repeat(10_000), 2)
  expect(cache.get('small')).toBe(1)
  expect(cache.get('x'.repeat(10_000))).toBeUndefined()
  const nothing = openTextCache(0)
  nothing.set('small', 1)
  expect(nothing.get('small')).toBeUndefined()
})
