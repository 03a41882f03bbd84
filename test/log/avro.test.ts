// The codec of log values without a registry: golden bytes, and what it refuses.
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { callTypes, type Message, type Outbound } from '../../src/domain/message.ts'
import { openCodecs } from '../../src/log/avro.ts'

const { call, outbound } = await openCodecs({})

const aMessage: Message = {
  messageId: 'm-1',
  digest: Buffer.from('000102030405060708090a0b0c0d0e0f', 'hex'),
  type: 'track',
  workspaceId: 1,
  sourceId: 300,
  userId: 'é',
  anonymousId: null,
  previousId: null,
  groupId: null,
  event: 'Order Completed',
  timestamp: 1_795_243_218_929,
  originalTimestamp: 0,
  sentAt: null,
  receivedAt: Number.MAX_SAFE_INTEGER,
  body: Buffer.from('{"a":1}'),
  filtered: null,
}

const anOutbound: Outbound = {
  messageId: 'run-1',
  origin: 'audience',
  type: 'identify',
  workspaceId: 1,
  destinationId: 2,
  userId: 'u1',
  timestamp: 1_795_243_218_929,
  receivedAt: 1_795_243_218_930,
  shard: 63,
  seq: 4_503_599_627_370_496,
  body: Buffer.from('{}'),
}

// Worked out by hand from the Avro specification, field by field.
const goldenFields = [
  '06 6d2d31',
  '000102030405060708090a0b0c0d0e0f',
  '02',
  '02',
  'd804',
  '02 04 c3a9',
  '00',
  '00',
  '00',
  '02 1e 4f7264657220436f6d706c65746564',
  'e2dfaccdbf68',
  '00',
  '00',
  'feffffffffffff1f',
  '0e 7b2261223a317d',
]

/** As the first release wrote it, and as this one does. */
const goldenFirst = ['00 00000000', ...goldenFields]
const goldenCall = ['00 ffffffff', ...goldenFields, '00']
const goldenFiltered = ['00 ffffffff', ...goldenFields, '02 22 6576656e745f6e6f745f706c616e6e6564']

const goldenOutbound = [
  '00 00000000',
  '0a 72756e2d31',
  '00',
  '00',
  '02',
  '04',
  '02 04 7531',
  'e2dfaccdbf68',
  'e4dfaccdbf68',
  '7e',
  '8080808080808010',
  '04 7b7d',
]

const hex = (parts: readonly string[]) => parts.join('').replaceAll(' ', '')

test('a call has its golden bytes, and comes back from them', async () => {
  expect(Buffer.from(call.encode(aMessage)).toString('hex')).toBe(hex(goldenCall))
  expect(await call.decode([Buffer.from(hex(goldenCall), 'hex')])).toEqual([aMessage])
})

test('a filtered call has its golden bytes, and comes back from them', async () => {
  const filtered = { ...aMessage, filtered: 'event_not_planned' }
  expect(Buffer.from(call.encode(filtered)).toString('hex')).toBe(hex(goldenFiltered))
  expect(await call.decode([Buffer.from(hex(goldenFiltered), 'hex')])).toEqual([filtered])
})

test('a call of the first release is read, alone and between calls of this one', async () => {
  const first = Buffer.from(hex(goldenFirst), 'hex')
  expect(call.decode([first])).toEqual([aMessage])
  const decoded = await call.decode([call.encode(aMessage), first, call.encode(aMessage)])
  expect(decoded).toEqual([aMessage, aMessage, aMessage])
})

test('an outbound message has its golden bytes, and comes back from them', async () => {
  expect(Buffer.from(outbound.encode(anOutbound)).toString('hex')).toBe(hex(goldenOutbound))
  expect(await outbound.decode([Buffer.from(hex(goldenOutbound), 'hex')])).toEqual([anOutbound])
})

test('decoding values of a known schema is synchronous', () => {
  expect(call.decode([call.encode(aMessage)])).not.toBeInstanceOf(Promise)
})

test('a value keeps its bytes when the next is encoded', async () => {
  const first = call.encode(aMessage)
  call.encode({ ...aMessage, messageId: 'another', body: Buffer.alloc(100_000, 1) })
  expect(Buffer.from(first).toString('hex')).toBe(hex(goldenCall))
})

test('every call comes back as it went in', async () => {
  const text = fc.string({ unit: 'grapheme', maxLength: 40 })
  const maybe = fc.option(text)
  const time = fc.oneof(
    fc.integer({ min: -8.64e15, max: 8.64e15 }),
    fc.constantFrom(-(2 ** 52) - 1, -(2 ** 51) - 1, 2 ** 51, 2 ** 52 + 1, Number.MIN_SAFE_INTEGER),
  )
  const message = fc.record({
    messageId: text,
    digest: fc.uint8Array({ minLength: 16, maxLength: 16 }).map((bytes) => Buffer.from(bytes)),
    type: fc.constantFrom(...callTypes),
    workspaceId: fc.integer({ min: -(2 ** 31), max: 2 ** 31 - 1 }),
    sourceId: fc.integer({ min: 0, max: 2 ** 31 - 1 }),
    userId: maybe,
    anonymousId: maybe,
    previousId: maybe,
    groupId: maybe,
    event: maybe,
    timestamp: time,
    originalTimestamp: time,
    sentAt: fc.option(time),
    receivedAt: time,
    body: fc.uint8Array({ maxLength: 100_000, size: 'max' }).map((bytes) => Buffer.from(bytes)),
    filtered: maybe,
  })
  await fc.assert(
    fc.asyncProperty(message, async (one) => {
      expect(await call.decode([call.encode(one)])).toEqual([one])
    }),
    { numRuns: 60 },
  )
})

test.each([
  ['another framing', '0100000000'],
  ['too short', '0000'],
  ['cut off', hex(goldenCall).slice(0, -2)],
  ['with something after it', `${hex(goldenCall)}00`],
  ['of the first release, cut off', hex(goldenFirst).slice(0, -2)],
  ['of the first release, with something after it', `${hex(goldenFirst)}00`],
])('a value that is %s is refused as schema_unknown', async (_, bytes) => {
  const decode = async () => call.decode([Buffer.from(bytes, 'hex')])
  await expect(decode()).rejects.toMatchObject({ code: 'schema_unknown' })
})

test('a value of a later version is refused, and the refusal says to upgrade', async () => {
  const value = Buffer.from(call.encode(aMessage))
  value.writeInt32BE(-2, 1)
  const decode = async () => call.decode([value])
  await expect(decode()).rejects.toMatchObject({ code: 'schema_unknown' })
  await expect(decode()).rejects.toThrow('version 3, which a newer release wrote: upgrade')
})

test('a value of another schema needs a registry, and the refusal says so', async () => {
  const value = Buffer.from(call.encode(aMessage))
  value.writeInt32BE(7, 1)
  const decode = async () => call.decode([value])
  await expect(decode()).rejects.toThrow('MILLRACE_SCHEMA_REGISTRY_URL')
})
