import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { CallType, JsonObject } from '../../src/domain/message.ts'
import {
  fullPayloadOf,
  isFixedPoint,
  payloadOf,
  render,
  renderFull,
} from '../../src/domain/payload.ts'

const timestamp = Date.UTC(2024, 1, 3, 4, 5, 6, 7)
const iso = '2024-02-03T04:05:06.007Z'

const aMessage = (type: CallType, over: object = {}) => ({
  type,
  userId: 'u1',
  previousId: null,
  groupId: null,
  event: null,
  timestamp,
  ...over,
})

const textOf = (type: CallType, call: JsonObject, over: object = {}) =>
  render(aMessage(type, over), call).toString('utf8')

test('an identify carries version, type, userId, timestamp and traits, in this order', () => {
  expect(textOf('identify', { traits: { plan: 'pro' }, context: { ip: '1.1.1.1' } })).toBe(
    `{"version":1,"type":"identify","userId":"u1","timestamp":"${iso}","traits":{"plan":"pro"}}`,
  )
})

test('a track carries properties and event', () => {
  expect(textOf('track', { properties: { price: 1.5 } }, { event: 'Order Completed' })).toBe(
    `{"version":1,"type":"track","userId":"u1","timestamp":"${iso}","properties":{"price":1.5},"event":"Order Completed"}`,
  )
})

test('a page carries properties, with its name and category where these lack them', () => {
  const call = { name: 'Home', category: 'Docs', properties: { path: '/', category: 'own' } }
  expect(textOf('page', call)).toBe(
    `{"version":1,"type":"page","userId":"u1","timestamp":"${iso}","properties":{"path":"/","category":"own","name":"Home"}}`,
  )
})

test('a screen carries a top-level name and its whole context, and no properties', () => {
  const context = { device: { model: 'iPhone7,2', type: 'ios' }, os: { name: 'iOS', version: '8' } }
  expect(textOf('screen', { name: 'Main', context, properties: { a: 1 } })).toBe(
    `{"version":1,"type":"screen","userId":"u1","timestamp":"${iso}","name":"Main","context":${JSON.stringify(context)}}`,
  )
})

test('a group carries traits, whose keys may have spaces, and groupId', () => {
  expect(textOf('group', { traits: { 'total billed': 830 } }, { groupId: 'g1' })).toBe(
    `{"version":1,"type":"group","userId":"u1","timestamp":"${iso}","traits":{"total billed":830},"groupId":"g1"}`,
  )
})

test('an alias carries both ids under keys with a space, and no userId', () => {
  expect(textOf('alias', {}, { previousId: 'old', userId: 'new' })).toBe(
    `{"version":1,"type":"alias","timestamp":"${iso}","Previous ID":"old","User ID":"new"}`,
  )
})

test('a delete carries type, userId and timestamp only', () => {
  expect(textOf('delete', { traits: { a: 1 } })).toBe(
    `{"type":"delete","userId":"u1","timestamp":"${iso}"}`,
  )
})

describe('an absent userId is omitted', () => {
  test.each(['page', 'screen', 'identify', 'track', 'group', 'delete'] as const)('%s', (type) => {
    expect(payloadOf(aMessage(type, { userId: null }), {})).not.toHaveProperty('userId')
  })
})

test.each([
  ['track', 'properties'],
  ['page', 'properties'],
  ['identify', 'traits'],
  ['group', 'traits'],
  ['screen', 'context'],
] as const)('a %s without %s carries them empty', (type, key) => {
  expect(payloadOf(aMessage(type), {})[key]).toEqual({})
  expect(payloadOf(aMessage(type), { [key]: [] })[key]).toEqual({})
})

test('every body is a fixed point of parse and stringify', () => {
  const types = ['identify', 'track', 'page', 'screen', 'group', 'alias', 'delete'] as const
  fc.assert(
    fc.property(fc.constantFrom(...types), fc.json(), (type, text) => {
      const value = JSON.parse(text)
      const call = { properties: value, traits: value, context: value, name: 'n', category: 'c' }
      expect(isFixedPoint(render(aMessage(type, { event: 'e' }), call))).toBe(true)
    }),
    { numRuns: 500 },
  )
})

test.each(['{"a": 1}', '{"2":1,"1":2}', '{"a":1.0}', '{"a":"\\u00e9"}', '{"a":1}\n', '{'])(
  'text that a parse and stringify would change is no fixed point: %s',
  (text) => {
    expect(isFixedPoint(Buffer.from(text))).toBe(false)
  },
)

describe('the full payload', () => {
  const times = { originalTimestamp: timestamp - 1_500, receivedAt: timestamp + 250 }
  const ids = { messageId: 'm1', anonymousId: 'a1' }
  const context = { ip: '1.1.1.1', page: { path: '/' } }
  const added = {
    messageId: 'm1',
    anonymousId: 'a1',
    context,
    originalTimestamp: '2024-02-03T04:05:04.507Z',
    receivedAt: '2024-02-03T04:05:06.257Z',
  }
  const full = (type: CallType, call: JsonObject, over: object = {}) =>
    fullPayloadOf({ ...aMessage(type, over), ...ids, ...times }, call)

  test.each<[CallType, JsonObject, object]>([
    ['identify', { traits: { plan: 'pro' } }, {}],
    ['track', { properties: { price: 1 } }, { event: 'Bought' }],
    ['group', { traits: { seats: 3 } }, { groupId: 'g1' }],
    ['alias', {}, { previousId: 'old' }],
  ])(
    'of a call of type %s is what the tables say and, behind it, what they leave out',
    (type, call, over) => {
      const whole = { ...call, context }
      expect(full(type, whole, over)).toEqual({
        ...payloadOf(aMessage(type, over), whole),
        ...added,
      })
      const keys = Object.keys(payloadOf(aMessage(type, over), whole))
      expect(Object.keys(full(type, whole, over)).slice(0, keys.length)).toEqual(keys)
    },
  )

  test('of a page tells name and category on their own, of a screen category and properties', () => {
    const call = { name: 'Home', category: 'Docs', properties: { path: '/' }, context }
    expect(full('page', call)).toEqual({
      ...payloadOf(aMessage('page'), call),
      ...added,
      name: 'Home',
      category: 'Docs',
    })
    expect(full('screen', call)).toEqual({
      ...payloadOf(aMessage('screen'), call),
      ...added,
      category: 'Docs',
      properties: { path: '/' },
    })
  })

  test('leaves out what the call does not have, and is a fixed point too', () => {
    const bare = { ...aMessage('screen'), messageId: 'm1', anonymousId: null, ...times }
    expect(fullPayloadOf(bare, {})).not.toHaveProperty('anonymousId')
    expect(fullPayloadOf(bare, {})).not.toHaveProperty('category')
    expect(fullPayloadOf(bare, {})).toMatchObject({ properties: {}, context: {} })
    fc.assert(
      fc.property(
        fc.jsonValue(),
        fc.constantFrom<CallType>('page', 'track', 'screen'),
        (value, type) => {
          const call = JSON.parse(JSON.stringify({ properties: { value }, context: { value } }))
          const message = { ...aMessage(type, { event: 'e' }), ...ids, ...times }
          expect(isFixedPoint(renderFull(message, call))).toBe(true)
        },
      ),
    )
  })
})
