import { describe, expect, test } from 'vitest'
import type { JsonObject } from '../../src/domain/message.ts'
import { narrow } from '../../src/domain/narrow.ts'
import { normalise } from '../../src/domain/normalise.ts'
import { aReceipt } from '../support/receipt.ts'

const numbered = (count: number, prefix = 'k'): JsonObject =>
  Object.fromEntries(Array.from({ length: count }, (_, at) => [`${prefix}${at}`, at]))

const narrowed = (body: JsonObject, propertiesMax: number) => {
  const copy = structuredClone(body) as Record<string, JsonObject>
  return { isNarrowed: narrow(copy, propertiesMax), body: copy }
}

describe('a call that holds too many properties', () => {
  test('loses those beyond, in the order properties, traits, context', () => {
    const body = { context: { a: 1, b: 2 }, traits: { c: 3, d: 4 }, properties: { e: 5, f: 6 } }
    expect(narrowed(body, 5)).toEqual({
      isNarrowed: true,
      body: { context: { a: 1 }, traits: { c: 3, d: 4 }, properties: { e: 5, f: 6 } },
    })
    expect(narrowed(body, 1).body).toEqual({ context: {}, traits: {}, properties: { e: 5 } })
  })

  test('has its nested ones counted, those in lists too', () => {
    const body = { properties: { a: { b: 1, c: 2 }, d: [{ e: 3 }, { f: 4 }], g: 5 } }
    expect(narrowed(body, 7).isNarrowed).toBe(false)
    expect(narrowed(body, 6).body).toEqual({
      properties: { a: { b: 1, c: 2 }, d: [{ e: 3 }, { f: 4 }] },
    })
    expect(narrowed(body, 2).body).toEqual({ properties: { a: { b: 1 } } })
  })

  test('keeps what says where it comes from', () => {
    const context = { app: 'x', ip: '203.0.113.9', userAgent: 'a', library: { name: 'l' } }
    expect(narrowed({ properties: numbered(4), context }, 3).body).toEqual({
      properties: numbered(3),
      context: { ip: '203.0.113.9', userAgent: 'a', library: {} },
    })
  })

  test('is left as it is where it holds just as many as it may', () => {
    const body = {
      properties: numbered(3),
      context: { library: { name: 'l' } },
      other: numbered(9),
    }
    expect(narrowed(body, 4)).toEqual({ isNarrowed: false, body })
  })
})

describe('normalising', () => {
  const raised = { ...aReceipt().limits, callBytesMax: 1_000_000 }
  const call = (count: number, more: JsonObject = {}) => ({
    type: 'track',
    userId: 'u1',
    event: 'e',
    properties: numbered(count),
    ...more,
  })

  test('drops the 10,001st property and says so once, and what is left is not touched again', () => {
    const receipt = aReceipt({ limits: raised })
    const judged = normalise(call(10_003), receipt)
    if ('rejected' in judged) throw new Error(judged.rejected)
    const stored = JSON.parse(Buffer.from(judged.body).toString())
    // The context's library is ours, its name and version are not.
    expect(Object.keys(stored.properties)).toHaveLength(10_000)
    expect(receipt.flags).toEqual(['properties_dropped'])
    const again = normalise(stored, aReceipt({ limits: raised }))
    expect('body' in again && Buffer.from(again.body).equals(judged.body)).toBe(true)
  })

  test('keeps 9,998 properties beside the two of the library', () => {
    const receipt = aReceipt({ limits: raised })
    const judged = normalise(call(9_998), receipt)
    expect('body' in judged && receipt.flags).toEqual([])
  })

  test('refuses a call that is too large only with what would be dropped', () => {
    const limits = { ...raised, callBytesMax: 150_000 }
    const judged = normalise(call(20_000, { traits: numbered(10) }), aReceipt({ limits }))
    expect(judged).toMatchObject({ rejected: 'call_too_large' })
  })
})
