import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { defaultSourceSettings } from '../../src/domain/configuration.ts'
import type { Json } from '../../src/domain/message.ts'
import { normalise, type Receipt } from '../../src/domain/normalise.ts'
import { normaliseText } from '../../src/domain/normalise-text.ts'
import { aSource } from '../support/configuration.ts'
import { aReceipt, noon } from '../support/receipt.ts'

const bare = { ip: null, userAgent: null }

const fromText = (text: string, receipt: Receipt) => {
  const bytes = Buffer.from(text)
  return normaliseText({ bytes, start: 0, end: bytes.length }, receipt)
}

/** Mostly what people write: what is left to a parser shows nothing here. */
const mostly = <T>(usual: fc.Arbitrary<T>, rare: readonly T[]): fc.Arbitrary<T> =>
  fc.oneof({ weight: 30, arbitrary: usual }, { weight: 1, arbitrary: fc.constantFrom(...rare) })

const plain = fc.oneof(fc.stringMatching(/^[a-zA-Z0-9 @.-]{1,20}$/), fc.constantFrom('é', '😀ü'))
const odd = ['', 'a"b', '\\', '\u0000', '\ud800', 'x'.repeat(101), 'x'.repeat(513)]
const anyWord = mostly(plain, odd)
const anyId = mostly<Json>(anyWord, [null, 0, 12, true, {}])
const oddMaps: readonly Json[] = [null, [], '', 'x', 7]
const anyTime = mostly<Json>(
  fc
    .date({ min: new Date(0), max: new Date(noon + 300_000), noInvalidDate: true })
    .map((date) => date.toISOString()),
  [
    ...['2024-02-29T23:59:59.999Z', '2023-02-29T00:00:00.000Z', '2024-01-01T24:00:00.000Z'],
    ...['2024-01-01T00:00:60.000Z', '2024-13-01T00:00:00.000Z', '2024-01-01', '', null, 1e9],
    ...['2024-01-01T00:00:00.000z', '2024-01-01T00:00:00,000Z', '1969-12-31T23:59:59.999Z'],
    ...['2026-03-01T12:05:00.000Z', '2026-03-01T12:05:00.001Z'],
  ],
)
const anyValue = fc.oneof(
  { weight: 30, arbitrary: fc.oneof(anyWord, fc.integer(), fc.boolean()) as fc.Arbitrary<Json> },
  { weight: 1, arbitrary: fc.jsonValue() as fc.Arbitrary<Json> },
)
const anyMap: fc.Arbitrary<Json> = fc.dictionary(
  mostly(
    plain.map((word) => `n${word}`),
    ['1', '__proto__', 'ip', 'traits', 'library', 'type'],
  ),
  anyValue,
  { maxKeys: 4 },
)
const maps = mostly(anyMap, oddMaps)
const anyContext = fc.record(
  {
    app: anyMap,
    library: mostly<Json>(fc.constantFrom<Json>({ name: 'n' }, {}), [null, '', 'text']),
    userAgent: anyWord,
    ignoreSentAt: fc.boolean(),
  },
  { requiredKeys: [] },
)
const oddContexts: readonly Json[] = [
  ...[{ ip: '192.0.2.1' }, { ip: 'unknown' }, { ip: null }, { direct: true }, { traits: { a: 1 } }],
  ...oddMaps,
]
const types = ['identify', 'track', 'page', 'screen', 'group', 'alias']
const anyType = mostly<Json>(fc.constantFrom(...types), ['delete', 'other', '', null])

const anyMembers = fc.tuple(
  fc.record({ type: anyType, userId: anyId, event: anyId }),
  fc.record(
    {
      anonymousId: anyId,
      previousId: anyId,
      groupId: anyId,
      name: mostly<Json>(anyWord, oddMaps),
      category: mostly<Json>(anyWord, oddMaps),
      properties: maps,
      traits: maps,
      context: mostly(anyContext as fc.Arbitrary<Json>, oddContexts),
      messageId: anyId,
      timestamp: anyTime,
    },
    { requiredKeys: [] },
  ),
  fc.record(
    {
      integrations: mostly<Json>(fc.constantFrom<Json>({ All: false }, {}), oddMaps),
      originalTimestamp: anyTime,
      sentAt: anyTime,
      receivedAt: anyTime,
      writeKey: anyWord,
      other: fc.jsonValue() as fc.Arbitrary<Json>,
    },
    { requiredKeys: [], noNullPrototype: true },
  ),
)
/** In any order; what is rare is mostly left out. */
const anyCall = fc
  .tuple(anyMembers, fc.nat(9), fc.array(fc.nat(), { minLength: 18, maxLength: 18 }))
  .map(([[needed, common, rare], rarely, order]) => {
    const members = Object.entries({ ...needed, ...common, ...(rarely === 0 ? rare : {}) })
    const placed = members.map((member, at) => ({ member, at: order[at] ?? 0 }))
    return Object.fromEntries(placed.toSorted((a, b) => a.at - b.at).map(({ member }) => member))
  })

const anyReceipt = fc
  .record({
    class: fc.constantFrom('web' as const, 'server' as const, 'mobile' as const),
    ipPolicy: fc.constantFrom('keep' as const, 'drop' as const),
    callBytesMax: mostly(fc.constant(32_768), [700, 200]),
    propertiesMax: mostly(fc.constant(10_000), [150, 2]),
    depthMax: mostly(fc.constant(64), [2, 1]),
  })
  .map(({ class: kind, ipPolicy, ...limits }) =>
    aReceipt({
      ...bare,
      limits: { ...aReceipt().limits, ...limits },
      source: aSource({
        class: kind,
        settings: { ...defaultSourceSettings, ipPolicy, ignoreSentAt: true, trustClientIp: true },
      }),
    }),
  )

test('a call read from its text is the message that parsing it comes to', () => {
  let read = 0
  fc.assert(
    fc.property(anyCall, anyReceipt, (call, receipt) => {
      const text = JSON.stringify(call)
      const message = fromText(text, receipt)
      if (message === null) return
      read += 1
      const parsed = normalise(JSON.parse(text) as Json, receipt)
      expect({ ...message, body: Buffer.from(message.body).toString() }).toEqual({
        ...parsed,
        body: 'body' in parsed ? Buffer.from(parsed.body).toString() : null,
      })
      expect(receipt.flags).toEqual([])
    }),
    { numRuns: 2_000 },
  )
  expect(read).toBeGreaterThan(200)
})

describe('is read from its text', () => {
  const at = '2024-01-02T03:04:05.006Z'
  const order = { type: 'track', userId: 'u1', event: 'Order', timestamp: at, messageId: 'm1' }
  test.each<[string, object]>([
    ['an order', { ...order, properties: { total: 9.5 }, context: { app: { name: 'shop' } } }],
    ['a call without context, id and time', { type: 'identify', userId: 'u1', traits: { a: 1 } }],
    ['a call with an empty context', { ...order, context: {} }],
    ['a call of a known library', { ...order, context: { library: { name: 'x' }, locale: 'de' } }],
    ['a page', { ...order, type: 'page', name: 'Startseite – März', category: '' }],
    ['a group', { ...order, type: 'group', groupId: 'g', traits: {} }],
    ['an alias', { ...order, type: 'alias', previousId: 'before' }],
    ['a visitor', { ...order, userId: undefined, anonymousId: 'ä', integrations: { All: true } }],
  ])('%s', (_what, call) => {
    const text = JSON.stringify(call)
    const message = fromText(text, aReceipt(bare))
    expect(message).not.toBeNull()
    const parsed = normalise(JSON.parse(text) as Json, aReceipt(bare))
    expect(message).toEqual({ ...parsed, body: message?.body })
    expect(message && Buffer.from(message.body).toString()).toBe(
      'body' in parsed && Buffer.from(parsed.body).toString(),
    )
  })
})
