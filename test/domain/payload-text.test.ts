import fc from 'fast-check'
import { expect, test } from 'vitest'
import { readCall } from '../../src/domain/call-text.ts'
import type { CallType, JsonObject } from '../../src/domain/message.ts'
import { isFixedPoint, render } from '../../src/domain/payload.ts'
import { renderText } from '../../src/domain/payload-text.ts'

const types: readonly CallType[] = ['identify', 'track', 'page', 'group', 'screen', 'alias']

const aMessage = (type: CallType, over: object = {}) => ({
  type,
  userId: 'u1',
  previousId: null,
  groupId: null,
  event: null,
  timestamp: Date.UTC(2024, 1, 3, 4, 5, 6, 7),
  ...over,
})

/** As a stored call is: what one parse and serialisation make of it. */
const storedOf = (call: object): Buffer =>
  Buffer.from(JSON.stringify(JSON.parse(JSON.stringify(call))))

const parts = ['properties', 'traits', 'context', 'integrations', 'name', 'category']

/** Also with parts of the wrong kind, and with their names within other parts and texts. */
const anyCall = fc.dictionary(
  fc.oneof(fc.constantFrom(...parts), fc.constantFrom('options', 'messageId', '2', 'é"\\')),
  fc.oneof(
    fc.string({ unit: 'binary' }),
    fc.constantFrom('a"b', '\\', '\\"', '{', ']}', '\u2028', '\ud800', ''),
    fc.jsonValue(),
    fc.dictionary(fc.oneof(fc.constantFrom(...parts), fc.string()), fc.jsonValue()),
  ),
)

test('text makes the same bytes as the parsed call, for calls of every kind', () => {
  let made = 0
  fc.assert(
    fc.property(
      fc.constantFrom(...types),
      anyCall,
      fc.array(fc.string({ unit: 'binary' }), { maxLength: 2 }),
      (type, call, [userId = null, event = null]) => {
        const stored = storedOf(call)
        const message = aMessage(type, { userId, event, groupId: event })
        const text = readCall(stored)
        expect(text).not.toBeNull()
        const body = text && renderText(message, text)
        if (!body) return
        made += 1
        expect(body.toString()).toBe(render(message, JSON.parse(stored.toString())).toString())
        expect(isFixedPoint(body)).toBe(true)
      },
    ),
    { numRuns: 1_000 },
  )
  expect(made).toBeGreaterThan(500)
})

test('finds each part of a call where it stands, and nothing of the same name within others', () => {
  const call = {
    options: { properties: { no: 1 }, name: 'not this' },
    properties: { a: '}"', 'n"': [1, { traits: {} }] },
    name: 'Home',
    context: { traits: {} },
  }
  const stored = storedOf(call)
  const text = readCall(stored)
  const found = (span: { start: number; end: number } | null | undefined) =>
    span ? stored.toString('utf8', span.start, span.end) : null
  expect(found(text?.properties)).toBe(JSON.stringify(call.properties))
  expect(found(text?.name)).toBe('"Home"')
  expect(found(text?.context)).toBe('{"traits":{}}')
  expect(found(text?.traits)).toBeNull()
})

test.each([
  ['nothing', ''],
  ['no object', '[1]'],
  ['white space', '{ "a":1}'],
  ['a part twice', '{"traits":{"a":1},"traits":{"b":2}}'],
  ['no key', '{1:2}'],
  ['no value', '{"a":}'],
  ['an end too early', '{"a":{"b":1}'],
  ['an end too late', '{"a":1}}'],
  ['an open text', '{"a":"b}'],
  ['a comma at the end', '{"a":1,}'],
])('leaves %s to the parser', (_what, text) => {
  expect(readCall(Buffer.from(text))).toBeNull()
})

test('a call of more than the usual size is made in one piece', () => {
  const call: JsonObject = { properties: { long: 'é'.repeat(100_000) }, context: {} }
  const stored = storedOf(call)
  const text = readCall(stored)
  const message = aMessage('track', { event: 'e'.repeat(70_000) })
  expect(text && renderText(message, text)?.equals(render(message, call))).toBe(true)
})
