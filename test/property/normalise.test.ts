import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { Json, JsonObject, Message } from '../../src/domain/message.ts'
import { normalise } from '../../src/domain/normalise.ts'
import { aSource } from '../support/configuration.ts'
import { aReceipt, noon } from '../support/receipt.ts'

const anyText = fc.string({ unit: 'binary', maxLength: 12 })
const anyKey = fc.oneof(anyText, fc.constantFrom('__proto__', 'constructor', 'toJSON', '1', '-0'))
const anyNumber = fc.oneof(fc.double({ noNaN: true, noDefaultInfinity: true }), fc.maxSafeInteger())

const anyJson = fc.letrec<{ value: Json; map: JsonObject }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 4 },
    anyText,
    anyNumber,
    fc.boolean(),
    fc.constant(null),
    fc.array(tie('value'), { maxLength: 4 }),
    tie('map'),
  ),
  map: fc
    .array(fc.tuple(anyKey, tie('value')), { maxLength: 5 })
    // Through text, because only a parser makes an own key `__proto__`.
    .map((pairs) =>
      JSON.parse(
        `{${pairs.map(([key, value]) => `${JSON.stringify(key)}:${JSON.stringify(value)}`).join()}}`,
      ),
    ),
}))

const anyId = fc.oneof(anyText, fc.nat(), fc.constantFrom(null, '', 0))
const anyTime = fc.oneof(
  fc
    .date({ min: new Date('1960-01-01'), max: new Date('2030-01-01'), noInvalidDate: true })
    .map((date) => date.toISOString()),
  fc.integer({ min: noon - 90_000_000, max: noon + 90_000_000 }),
  fc.constantFrom('', null, 'soon', 1e300),
)

const anyCall = fc
  .tuple(
    fc.record(
      {
        type: fc.constantFrom('identify', 'track', 'page', 'screen', 'group', 'alias', 'other'),
        userId: anyId,
        anonymousId: anyId,
        groupId: anyId,
        previousId: anyId,
        event: anyText,
        name: fc.oneof(anyText, fc.constant(null)),
        messageId: anyText,
        timestamp: anyTime,
        originalTimestamp: anyTime,
        sentAt: anyTime,
        properties: fc.oneof(anyJson.map, fc.constantFrom<Json>([], null)),
        traits: anyJson.map,
        context: anyJson.map,
        integrations: anyJson.value,
      },
      { requiredKeys: ['type'] },
    ),
    anyJson.map,
  )
  .map(([known, unknown]) => ({ ...unknown, ...known }) as JsonObject)

const sources = [aSource(), aSource({ class: 'web' })]

const normaliseTwice = (call: JsonObject, source = sources[0] as (typeof sources)[0]) => {
  const first = normalise(structuredClone(call), aReceipt({ source }))
  if ('rejected' in first) return null
  const again = normalise(JSON.parse(Buffer.from(first.body).toString()), aReceipt({ source }))
  return { first, again: again as Message }
}

test('the stored body is a fixed point of parse and stringify, whatever came', () => {
  let accepted = 0
  fc.assert(
    fc.property(anyCall, (call) => {
      const judged = normalise(structuredClone(call), aReceipt())
      if ('rejected' in judged) return
      accepted += 1
      const text = Buffer.from(judged.body).toString()
      expect(JSON.stringify(JSON.parse(text))).toBe(text)
      expect(text).not.toContain('\\u0000')
      expect(text).not.toContain('"__proto__":')
    }),
    { numRuns: 400 },
  )
  expect(accepted).toBeGreaterThan(50)
})

test('normalising the stored body again changes nothing', () => {
  let accepted = 0
  fc.assert(
    fc.property(anyCall, fc.constantFrom(...sources), (call, source) => {
      // Without a time of its own a call's time is the receipt, whatever was sent when.
      const { sentAt: _, ...unsent } = call
      const twice = normaliseTwice(hasReadableTime(call) ? call : (unsent as JsonObject), source)
      if (!twice) return
      accepted += 1
      const { body, ...fields } = twice.first
      const { body: bodyAgain, ...fieldsAgain } = twice.again
      expect(Buffer.from(bodyAgain).toString()).toBe(Buffer.from(body).toString())
      expect(fieldsAgain).toEqual(fields)
    }),
    { numRuns: 400 },
  )
  expect(accepted).toBeGreaterThan(50)
})

const hasReadableTime = (call: JsonObject) =>
  [call['timestamp'], call['originalTimestamp']].some((time) =>
    typeof time === 'number' ? time < 1e15 : typeof time === 'string' && time.length > 10,
  )

test('a time is never later than five minutes after receipt, and never before 1970', () => {
  fc.assert(
    fc.property(anyCall, fc.nat(3), (call, retryCount) => {
      const judged = normalise(structuredClone(call), aReceipt({ retryCount }))
      if ('rejected' in judged) return
      expect(judged.timestamp).toBeLessThanOrEqual(noon + 300_000)
      expect(judged.timestamp).toBeGreaterThanOrEqual(0)
    }),
    { numRuns: 300 },
  )
})
