import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { defaultSourceSettings, type Source } from '../../src/domain/configuration.ts'
import type { Json, JsonObject } from '../../src/domain/message.ts'
import { normalise } from '../../src/domain/normalise.ts'
import { aSource } from '../support/configuration.ts'
import { aReceipt, noon, type TestReceipt } from '../support/receipt.ts'

/** JSON as text, because a parser makes what no literal could: own keys `__proto__`, lone surrogates, one of two. */
const anyText = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 12 }).map((text) => JSON.stringify(text)),
  fc.constantFrom('"\\ud800"', '"a\\u0000b"', '"\\udc00\\ud800"', '"\\u2028"', '""', '"1"'),
)
const anyKey = fc.oneof(
  anyText,
  fc.constantFrom(
    ...['__proto__', 'constructor', 'prototype', 'toJSON', '1', '-0', 'a b', 'a'].map((key) =>
      JSON.stringify(key),
    ),
    '"\\u005f_proto__"',
    '"\\u005F_proto__\\u0000"',
  ),
)
const anyNumber = fc.oneof(
  fc.double({ noNaN: true, noDefaultInfinity: true }).map((number) => JSON.stringify(number)),
  fc.maxSafeInteger().map(String),
  fc.constantFrom('-0', '-0.0', '1E5', '1e-400', '1e308', '5e-324', '0.1e1', '9007199254740993'),
  fc.constantFrom('123456789012345678901234567890', '-9223372036854775808', '1e21', '1e400'),
)

const mapOf = (pairs: readonly (readonly [string, string])[]) =>
  `{${pairs.map(([key, value]) => `${key}:${value}`).join(', ')}}`

const anyJson = fc.letrec<{ value: string; map: string }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 4 },
    anyText,
    anyNumber,
    fc.constantFrom('true', 'false', 'null'),
    fc.array(tie('value'), { maxLength: 4 }).map((items) => `[${items.join()}]`),
    tie('map'),
  ),
  map: fc
    .array(fc.tuple(anyKey, tie('value'), fc.option(tie('value'))), { maxLength: 5 })
    // Some keys come twice.
    .map((entries) => [
      ...entries.flatMap(([key, , again]): [string, string][] => (again ? [[key, again]] : [])),
      ...entries.map(([key, value]): [string, string] => [key, value]),
    ])
    .map(mapOf),
}))

const anyId = fc.oneof(
  anyText,
  fc.nat().map(String),
  fc.constantFrom('null', '""', '0', '-0', '1.5'),
)
const anyTime = fc.oneof(
  fc
    .date({ min: new Date('1960-01-01'), max: new Date('2030-01-01'), noInvalidDate: true })
    .map((date) => JSON.stringify(date)),
  fc.integer({ min: noon - 90_000_000, max: noon + 90_000_000 }).map(String),
  fc.integer({ min: noon / 1_000 - 90_000, max: noon / 1_000 + 90_000 }).map(String),
  fc.constantFrom('""', 'null', '"soon"', '1e300', '-1', '"0000-01-01"', '"9999-12-31"'),
)
const anyAddress = fc.oneof(fc.ipV4(), fc.ipV6()).map((address) => JSON.stringify(address))
const anyContext = fc
  .record(
    {
      ip: fc.oneof(anyAddress, anyJson.value),
      userAgent: anyJson.value,
      direct: fc.constantFrom('true', 'false', '1'),
      ignoreSentAt: fc.constantFrom('true', 'false'),
      traits: anyJson.map,
      library: anyJson.value,
    },
    { requiredKeys: [] },
  )
  .map((context) => mapOf(Object.entries(context).map(([key, value]) => [`"${key}"`, value])))

const types = ['identify', 'track', 'page', 'screen', 'group', 'alias', 'other']

const anyCall = fc
  .tuple(
    fc.record(
      {
        type: fc.constantFrom(...types).map((type) => JSON.stringify(type)),
        userId: anyId,
        anonymousId: anyId,
        groupId: anyId,
        previousId: anyId,
        event: anyText,
        name: fc.oneof(anyText, fc.constant('null')),
        messageId: anyText,
        timestamp: anyTime,
        originalTimestamp: anyTime,
        sentAt: anyTime,
        receivedAt: anyTime,
        properties: fc.oneof(anyJson.map, fc.constantFrom('[]', 'null')),
        traits: fc.oneof(anyJson.map, fc.constantFrom('[]', 'null')),
        context: fc.oneof(anyContext, anyJson.map, fc.constantFrom('[]', 'null')),
        integrations: anyJson.value,
      },
      { requiredKeys: ['type', 'userId'] },
    ),
    fc.array(fc.tuple(anyKey, anyJson.value), { maxLength: 4 }),
  )
  .map(([known, unknown]) =>
    mapOf([
      ...unknown,
      ...Object.entries(known).map(([key, value]) => [`"${key}"`, value] as const),
    ]),
  )

const anySource: fc.Arbitrary<Source> = fc
  .record({
    class: fc.constantFrom('web', 'mobile', 'server'),
    ipPolicy: fc.constantFrom('keep', 'truncate', 'drop'),
    trustClientIp: fc.boolean(),
    ignoreSentAt: fc.boolean(),
  })
  .map(({ class: kind, ...settings }) =>
    aSource({ class: kind, settings: { ...defaultSourceSettings, ...settings } }),
  )

const anyRequest = fc.record({
  source: anySource,
  retryCount: fc.nat(2),
  sentAt: fc.oneof(
    fc.constant(undefined),
    anyTime.map((text) => JSON.parse(text) as Json),
  ),
  context: fc.oneof(fc.constant({}), fc.constant({ app: { name: 'a' }, ip: '192.0.2.1' })),
  integrations: fc.constantFrom<JsonObject>({}, { All: false, A: true }),
  ip: fc.oneof(fc.ipV4(), fc.ipV6(), fc.constant(null)),
  isRaised: fc.boolean(),
})

type AnyRequest = typeof anyRequest extends fc.Arbitrary<infer R> ? R : never

const receiptOf = ({ isRaised, ...request }: AnyRequest): TestReceipt => {
  const { limits } = aReceipt()
  // Few properties, so that some calls have too many.
  const narrow = { ...limits, callBytesMax: 100_000, propertiesMax: 6 }
  return aReceipt({ ...request, limits: isRaised ? narrow : limits })
}

const hasProto = (value: unknown): boolean =>
  typeof value === 'object' &&
  value !== null &&
  (Object.hasOwn(value, '__proto__') || Object.values(value).some(hasProto))

/** Of a lone surrogate or NUL: behind an even number of backslashes, which are text. */
const badEscape = /(?<!\\)(?:\\\\)*\\u(?:d[89a-f]|0000)/

const textOf = (body: Uint8Array) => Buffer.from(body).toString()

describe('of a call that is accepted', () => {
  const runs = { numRuns: 600 }

  test('the body is a fixed point of parse and stringify, whatever came', () => {
    let accepted = 0
    fc.assert(
      fc.property(anyCall, anyRequest, (text, request) => {
        const judged = normalise(JSON.parse(text), receiptOf(request))
        if ('rejected' in judged) return
        accepted += 1
        const body = textOf(judged.body)
        expect(JSON.stringify(JSON.parse(body))).toBe(body)
        expect(body.isWellFormed()).toBe(true)
        expect(body).not.toMatch(badEscape)
        expect(JSON.parse(body)).not.toSatisfy(hasProto)
      }),
      runs,
    )
    expect(accepted).toBeGreaterThan(100)
  })

  test('normalising the body again with the same receipt changes nothing', () => {
    let accepted = 0
    fc.assert(
      fc.property(anyCall, anyRequest, (text, request) => {
        const first = normalise(JSON.parse(text), receiptOf(request))
        if ('rejected' in first) return
        accepted += 1
        const again = normalise(JSON.parse(textOf(first.body)), receiptOf(request))
        if ('rejected' in again) throw new Error(`refused again: ${again.rejected}`)
        expect(textOf(again.body)).toBe(textOf(first.body))
        const { body: _, ...fields } = first
        const { body: __, ...fieldsAgain } = again
        expect(fieldsAgain).toEqual(fields)
      }),
      runs,
    )
    expect(accepted).toBeGreaterThan(100)
  })

  test('no address is kept that its policy cuts', () => {
    let cut = 0
    fc.assert(
      fc.property(anyCall, anyRequest, (text, request) => {
        const judged = normalise(JSON.parse(text), receiptOf(request))
        if ('rejected' in judged) return
        const { ip } = JSON.parse(textOf(judged.body)).context
        const { ipPolicy } = request.source.settings
        if (ipPolicy === 'drop') expect(ip).toBeUndefined()
        if (ipPolicy !== 'truncate' || ip === undefined) return
        cut += 1
        expect(ip).toMatch(/^\d+\.\d+\.\d+\.0$|^[0-9a-f:]*::$/)
      }),
      runs,
    )
    expect(cut).toBeGreaterThan(20)
  })

  test('its time is never later than five minutes after receipt, and never before 1970', () => {
    fc.assert(
      fc.property(anyCall, anyRequest, (text, request) => {
        const judged = normalise(JSON.parse(text), receiptOf(request))
        if ('rejected' in judged) return
        expect(judged.timestamp).toBeLessThanOrEqual(noon + 300_000)
        expect(judged.timestamp).toBeGreaterThanOrEqual(0)
      }),
      runs,
    )
  })
})
