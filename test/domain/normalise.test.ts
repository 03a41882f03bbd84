import { describe, expect, test } from 'vitest'
import type { Json, JsonObject, Message } from '../../src/domain/message.ts'
import { normalise, type Receipt } from '../../src/domain/normalise.ts'
import type { RejectionCode } from '../../src/domain/rejection.ts'
import { aSource } from '../support/configuration.ts'
import { aReceipt, noon } from '../support/receipt.ts'

const accept = (
  raw: Json,
  over: Partial<Receipt> = {},
): Message & { readonly json: JsonObject } => {
  const judged = normalise(raw, aReceipt(over))
  if ('rejected' in judged) throw new Error(`rejected: ${judged.rejected}`)
  return { ...judged, json: JSON.parse(Buffer.from(judged.body).toString()) }
}

const aTrack = (over: JsonObject = {}): JsonObject => ({
  type: 'track',
  userId: 'u1',
  event: 'Order Completed',
  ...over,
})

describe('a raw call is rejected', () => {
  const long = 'x'.repeat(101)
  test.each<[RejectionCode, Json]>([
    ['not_an_object', 'text'],
    ['not_an_object', null],
    ['not_an_object', []],
    ['unknown_type', { userId: 'u1' }],
    ['unknown_type', { type: 'delete', userId: 'u1' }],
    ['unknown_type', { type: 'Track', userId: 'u1', event: 'e' }],
    ['unknown_type', { type: ['track'], userId: 'u1', event: 'e' }],
    ['no_user_anon_id', { type: 'identify' }],
    ['no_user_anon_id', { type: 'identify', userId: '', anonymousId: null }],
    ['id_not_string', { type: 'identify', userId: { id: 1 } }],
    ['id_not_string', { type: 'identify', userId: 'u1', anonymousId: true }],
    ['id_too_long', { type: 'identify', userId: 'u'.repeat(513) }],
    ['no_group_id', { type: 'group', userId: 'u1' }],
    ['no_previous_id', { type: 'alias', userId: 'u1' }],
    ['no_user_id', { type: 'alias', anonymousId: 'a1', previousId: 'p1' }],
    ['event_not_defined', { type: 'track', userId: 'u1' }],
    ['event_not_defined', { type: 'track', userId: 'u1', event: '' }],
    ['event_not_string', { type: 'track', userId: 'u1', event: 7 }],
    ['name_not_string', { type: 'page', userId: 'u1', name: 7 }],
    ['category_not_string', { type: 'screen', userId: 'u1', category: {} }],
    ['properties_not_object', aTrack({ properties: 'x' })],
    ['properties_not_object', aTrack({ properties: [1] })],
    ['traits_not_object', { type: 'identify', userId: 'u1', traits: 1 }],
    ['context_not_object', aTrack({ context: 'x' })],
    ['message_id_too_long', aTrack({ messageId: long })],
    ['message_id_not_string', aTrack({ messageId: 5 })],
    ['number_out_of_range', aTrack({ properties: { n: Number.POSITIVE_INFINITY } })],
  ])('%s: %j', (code, raw) => {
    expect(normalise(raw, aReceipt())).toMatchObject({ rejected: code })
  })

  test('for the first rule it breaks, in the order of the rules', () => {
    // Each breaks its own rule and all that follow.
    const broken: [RejectionCode, JsonObject][] = [
      ['unknown_type', { type: 'other' }],
      ['id_not_string', { type: 'track', userId: [] }],
      ['id_too_long', { userId: 'u'.repeat(513) }],
      ['no_user_anon_id', { userId: null }],
      ['event_not_defined', { userId: 'u1', event: '' }],
      ['event_not_string', { event: 7 }],
      ['properties_not_object', { event: 'e', properties: 'x' }],
      ['traits_not_object', { properties: {}, traits: 'x' }],
      ['context_not_object', { traits: {}, context: 'x' }],
      ['message_id_not_string', { context: {}, messageId: 7 }],
      ['message_id_too_long', { messageId: long }],
      ['call_too_large', { messageId: 'm', more: 'x'.repeat(33_000) }],
    ]
    let call: JsonObject = { messageId: 7, context: 'x', traits: 'x', properties: 'x', event: '' }
    for (const [code, mended] of broken) {
      call = { ...call, ...mended }
      expect(normalise(structuredClone(call), aReceipt())).toMatchObject({ rejected: code })
    }
    expect(accept({ ...call, more: '' }).messageId).toBe('m')
  })

  test('with its message id, so that its sender can find it', () => {
    expect(normalise({ type: 'x', messageId: 'm1' }, aReceipt())).toEqual({
      rejected: 'unknown_type',
      messageId: 'm1',
    })
  })

  test('when its own JSON is over 32,768 bytes, and not one byte earlier', () => {
    const sized = (bytes: number) => {
      const empty = Buffer.byteLength(JSON.stringify(aTrack({ properties: { pad: '' } })))
      return aTrack({
        properties: { pad: 'é'.repeat((bytes - empty) >> 1) + 'x'.repeat((bytes - empty) & 1) },
      })
    }
    expect(accept(sized(32_768)).userId).toBe('u1')
    expect(normalise(sized(32_769), aReceipt())).toMatchObject({ rejected: 'call_too_large' })
  })

  test.each(['writeKey', 'timestamp', 'sentAt', 'receivedAt', 'integrations'])(
    'when a %s that is not stored makes it too large',
    (field) => {
      const raw = aTrack({ [field]: 'x'.repeat(33_000) })
      expect(normalise(raw, aReceipt())).toMatchObject({ rejected: 'call_too_large' })
    },
  )

  test('not for what the batch adds to it', () => {
    const context = { pad: 'x'.repeat(40_000) }
    expect(accept(aTrack(), { context }).json['context']).toMatchObject(context)
  })
})

describe('ids', () => {
  test('numbers become strings, zero included', () => {
    const message = accept({ type: 'identify', userId: 0, anonymousId: 17.5 })
    expect([message.userId, message.anonymousId]).toEqual(['0', '17.5'])
    expect(message.json).toMatchObject({ userId: '0', anonymousId: '17.5' })
  })

  test('null and empty ids are absent, also from the stored body', () => {
    const message = accept(aTrack({ anonymousId: null, groupId: '' }))
    expect(message.anonymousId).toBeNull()
    expect(Object.keys(message.json)).not.toContain('anonymousId')
    expect(Object.keys(message.json)).not.toContain('groupId')
  })

  test.each([[undefined], [null], ['']])('a message id of %j is made', (messageId) => {
    const raw = messageId === undefined ? aTrack() : aTrack({ messageId })
    expect(accept(raw)).toMatchObject({ messageId: 'made', json: { messageId: 'made' } })
  })

  test('a message id of 100 characters is kept as it is', () => {
    const messageId = ` ${'x'.repeat(98)}é`
    expect(accept(aTrack({ messageId })).messageId).toBe(messageId)
  })

  test('the digest differs between workspaces and sources', () => {
    const digests = [aSource(), aSource({ id: 2 }), aSource({ workspaceId: 2 })].map((source) =>
      Buffer.from(accept(aTrack({ messageId: 'm' }), { source }).digest).toString('hex'),
    )
    expect(new Set(digests).size).toBe(3)
    expect(digests[0]).toHaveLength(32)
  })
})

describe('the stored body', () => {
  test('keeps unknown fields and never the write key', () => {
    const { json } = accept(aTrack({ writeKey: 'wk', channel: 'server', _metadata: { a: 1 } }))
    expect(json).toMatchObject({ channel: 'server', _metadata: { a: 1 } })
    expect(Object.keys(json)).not.toContain('writeKey')
  })

  test('has the times as ISO 8601 in UTC with milliseconds, and ours for receivedAt', () => {
    const { json } = accept(
      aTrack({ timestamp: 1_772_362_800, sentAt: '2026-03-01T12:00:01Z', receivedAt: 'never' }),
    )
    expect(json).toMatchObject({
      timestamp: '2026-03-01T11:00:00.000Z',
      originalTimestamp: '2026-03-01T11:00:00.000Z',
      sentAt: '2026-03-01T12:00:01.000Z',
      receivedAt: '2026-03-01T12:00:00.000Z',
    })
  })

  test('takes the batch’s sentAt where the call has none', () => {
    const times = { timestamp: '2026-03-01T11:59:55Z' }
    const sentAt = '2026-03-01T12:00:10Z'
    expect(accept(aTrack(times), { sentAt }).timestamp).toBe(noon - 15_000)
    const own = { ...times, sentAt: '2026-03-01T12:00:00Z' }
    expect(accept(aTrack(own), { sentAt }).timestamp).toBe(noon - 5_000)
  })

  test.each(['properties', 'traits', 'context'])(
    'holds {} for %s as PHP’s empty array',
    (field) => {
      const { json } = accept(aTrack({ [field]: [] }))
      expect(Array.isArray(json[field])).toBe(false)
    },
  )

  test('holds the traits of a group as they came, names with spaces too', () => {
    const traits = {
      'Company Name': 'Acme',
      ' leading': 1,
      'trailing ': 2,
      'a\tb\nc': 3,
      '\u00a0': 4,
      '': 5,
      'Nested Map': { 'Inner Key': [{ 'In A List': true }] },
    }
    const { json } = accept({ type: 'group', userId: 'u1', groupId: 'g 1', traits })
    expect(JSON.stringify(json['traits'])).toBe(JSON.stringify(traits))
    expect(json['groupId']).toBe('g 1')
  })

  test('loses null names and maps', () => {
    const { json } = accept({
      type: 'page',
      userId: 'u1',
      name: null,
      category: null,
      properties: null,
    })
    for (const field of ['name', 'category', 'properties'])
      expect(Object.keys(json)).not.toContain(field)
  })

  test('has the traits of an identify call that has them in its context only', () => {
    const context = { traits: { plan: 'pro' } }
    const traitsOf = (call: JsonObject) => accept({ userId: 'u1', context, ...call }).json['traits']
    expect(traitsOf({ type: 'identify' })).toEqual({ plan: 'pro' })
    expect(traitsOf({ type: 'identify', traits: null })).toEqual({ plan: 'pro' })
    expect(traitsOf({ type: 'identify', traits: {} })).toEqual({})
    expect(traitsOf({ type: 'identify', context: { traits: 'pro' } })).toBeUndefined()
    expect(traitsOf({ type: 'track', event: 'e' })).toBeUndefined()
  })

  test('takes its type from the path', () => {
    const message = accept({ type: 'identify', userId: 'u1', event: 'e' }, { type: 'track' })
    expect([message.type, message.json['type'], message.event]).toEqual(['track', 'track', 'e'])
  })

  test('merges the batch’s context and integrations under the call’s, at the first level', () => {
    const { json } = accept(
      aTrack({ context: { app: { name: 'own' } }, integrations: { A: false } }),
      {
        context: { app: { name: 'batch', build: '1' }, library: { name: 'go' } },
        integrations: { All: false, A: true },
      },
    )
    expect(json['context']).toEqual({ app: { name: 'own' }, library: { name: 'go' } })
    expect(json['integrations']).toEqual({ All: false, A: false })
  })

  test('has no integrations that are not a map, and says so', () => {
    const receipt = aReceipt()
    const judged = normalise(aTrack({ integrations: 'all' }), receipt)
    expect('body' in judged && Buffer.from(judged.body).toString()).not.toContain('integrations')
    expect(receipt.flags).toEqual(['integrations_ignored'])
  })
})

describe('the context', () => {
  const context = { ip: '198.51.100.1', page: { url: '/' } }
  test('of a server source keeps its ip and gets none', () => {
    expect(accept(aTrack({ context })).json['context']).toMatchObject({ ip: '198.51.100.1' })
    expect(Object.keys(accept(aTrack()).json['context'] as object)).toEqual(['library'])
  })

  test.each(['web', 'mobile'] as const)('of a %s source gets the address and agent', (type) => {
    const source = aSource({ class: type })
    expect(accept(aTrack({ context }), { source }).json['context']).toMatchObject({
      ip: '203.0.113.9',
      userAgent: 'test/1',
      page: { url: '/' },
    })
  })

  test('of a server source gets the address when the call is direct', () => {
    const direct = accept(aTrack({ context: { direct: true } }))
    expect(direct.json['context']).toMatchObject({ ip: '203.0.113.9' })
  })

  test('keeps the agent and library that the call brought', () => {
    const own = { userAgent: 'own', library: { name: 'own' } }
    const source = aSource({ class: 'web' })
    expect(accept(aTrack({ context: own }), { source }).json['context']).toMatchObject(own)
  })
})
