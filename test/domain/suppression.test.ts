import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { isOrder, orderOf, readOrder } from '../../src/domain/erasure.ts'
import type { Message } from '../../src/domain/message.ts'
import { openSuppressedSet } from '../../src/domain/suppressed-set.ts'
import {
  isDropped,
  nobodySuppressed,
  type Suppressions,
  suspectOf,
} from '../../src/domain/suppression.ts'
import { aMessage } from '../project/rig.ts'

const asked = Date.UTC(2026, 2, 1, 12)
const sentAtOf = (over: Partial<Message>) =>
  suspectOf({ ...aMessage({ userId: 'u1' }, asked), ...over }).sentAt.getTime() - asked

describe('a call is of the instant', () => {
  test.each<[string, Partial<Message>, number]>([
    ['it was received when nobody says when it was sent', {}, 0],
    ['it was sent', { sentAt: asked - 5_000 }, -5_000],
    ['it was received when its clock is ahead', { sentAt: asked + 5_000 }, 0],
    [
      'it tells of when it is history',
      { sentAt: asked, timestamp: asked - 90_000_000 },
      -90_000_000,
    ],
  ])('%s', (_, over, ms) => {
    expect(sentAtOf(over)).toBe(ms)
  })
})

test('an order to delete is heard of whoever is suppressed', () => {
  const everybody: Suppressions = { isSuppressed: () => true }
  const call = aMessage({ userId: 'u1' }, asked)
  expect(isDropped(everybody, call)).toBe(true)
  expect(isDropped(everybody, { ...call, type: 'delete' })).toBe(false)
  expect(isDropped(nobodySuppressed, call)).toBe(false)
})

test('the set knows the last that was put of each hash, however many there are', () => {
  const hash = fc.uint8Array({ minLength: 16, maxLength: 16 })
  const until = fc.constantFrom(1, 2, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY)
  fc.assert(
    fc.property(fc.array(fc.tuple(hash, until), { maxLength: 3_000 }), hash, (all, other) => {
      const set = openSuppressedSet()
      const model = new Map<string, number>()
      for (const [key, value] of all) {
        set.put(key, value)
        model.set(key.join(), value)
      }
      expect(set.size).toBe(model.size)
      for (const [key] of [...all, [other] as const])
        expect(set.until(key)).toBe(model.get(key.join()) ?? Number.NEGATIVE_INFINITY)
    }),
    { numRuns: 30 },
  )
})

test('an order is the same however often it is made, and nobody else can make one', () => {
  const ordered = { requestId: 7, n: 2, workspaceId: 3, value: 'a1', createdAt: new Date(asked) }
  const order = orderOf({ ...ordered, kind: 'anonymous' })
  expect(order).toEqual(orderOf({ ...ordered, kind: 'anonymous' }))
  expect(readOrder(order)).toEqual({
    requestId: 7,
    n: 2,
    identity: { workspaceId: 3, kind: 'anonymous', value: 'a1', text: '3:1:a1' },
  })
  const call = { ...order, sourceId: 1 }
  expect([isOrder(call), readOrder(call)]).toEqual([false, null])
})
