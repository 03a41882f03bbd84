import { connect } from 'node:net'
import { describe, expect, test } from 'vitest'
import { basic, startCollecting } from '../support/collecting.ts'
import { aLive, aSource } from '../support/configuration.ts'
import { noon } from '../support/receipt.ts'

const aTrack = { type: 'track', userId: 'u1', event: 'Order Completed', messageId: 'm1' }

describe('a call', () => {
  test.each<[string, object]>([
    ['identify', { userId: 'u1', traits: { plan: 'pro' } }],
    ['track', { userId: 'u1', event: 'e' }],
    ['page', { anonymousId: 'a1', name: 'Home' }],
    ['screen', { userId: 'u1', name: 'Home' }],
    ['group', { userId: 'u1', groupId: 'g1' }],
    ['alias', { userId: 'u1', previousId: 'a1' }],
  ])('%s is on the log before it is answered', async (type, call) => {
    const { post, log } = await startCollecting()
    const reply = await post(`/v1/${type}`, call)
    expect([reply.status, reply.json]).toEqual([200, { success: true }])
    expect(log.appended.map(({ topic, message }) => [topic, message.type])).toEqual([
      ['calls', type],
    ])
  })

  test('is refused in a region its workspace has no access to, and taken where it has', async () => {
    const refused = await startCollecting({ region: 'dublin' })
    const reply = await refused.post('/v1/track', aTrack)
    expect(reply).toMatchObject({ status: 400, json: { code: 'region_not_allowed' } })
    expect(refused.log.appended).toEqual([])
    const live = aLive({ sources: [aSource()], regionalAccess: true })
    const taken = await startCollecting({ region: 'dublin', live })
    expect((await taken.post('/v1/track', aTrack)).status).toBe(200)
  })

  test('is accepted with a trailing slash and a query', async () => {
    const { post, log } = await startCollecting()
    expect((await post('/v1/track/?a=b', aTrack)).status).toBe(200)
    expect(log.appended).toHaveLength(1)
  })

  test('that is refused answers 400 with its code', async () => {
    const { post, log, counted } = await startCollecting()
    const reply = await post('/v1/track', { userId: 'u1' })
    expect([reply.status, reply.json]).toEqual([
      400,
      {
        success: false,
        code: 'event_not_defined',
        message: expect.any(String),
        error: expect.any(String),
      },
    ])
    expect(log.appended).toEqual([])
    expect(counted.get('calls.rejected 1 event_not_defined')).toBe(1)
  })

  test('older than 24 h at receipt goes to calls.import, one of exactly 24 h does not', async () => {
    const { post, log } = await startCollecting()
    const at = (age: number) => ({ ...aTrack, timestamp: noon - age })
    await post('/v1/batch', { batch: [at(86_400_000), at(86_400_001)] })
    expect(log.appended.map(({ topic }) => topic).sort()).toEqual(['calls', 'calls.import'])
  })

  test('is keyed by its anonymous id, so that login keeps its partition', async () => {
    const { post, log } = await startCollecting()
    await post('/v1/track', { ...aTrack, anonymousId: 'a1' })
    await post('/v1/track', aTrack)
    expect(log.appended.map(({ key }) => key)).toEqual(['1:1:a1', '1:1:u1'])
  })
})

describe('a batch', () => {
  test.each(['batch', 'import'])(
    'to /v1/%s keeps its good calls and names the bad',
    async (path) => {
      const { post, log } = await startCollecting()
      const reply = await post(`/v1/${path}`, {
        batch: [
          aTrack,
          { ...aTrack, messageId: 'm2', event: 7 },
          'x',
          { ...aTrack, messageId: 'm3' },
        ],
      })
      expect([reply.status, reply.json]).toEqual([
        200,
        {
          success: true,
          accepted: 2,
          rejected: [
            { index: 1, messageId: 'm2', code: 'event_not_string' },
            { index: 2, messageId: null, code: 'not_an_object' },
          ],
          rejectedCount: 2,
        },
      ])
      expect(log.appended.map(({ message }) => message.messageId)).toEqual(['m1', 'm3'])
    },
  )

  test('lists the first hundred rejected and counts all', async () => {
    const { post } = await startCollecting()
    const { json } = await post('/v1/batch', { batch: Array.from({ length: 150 }, () => ({})) })
    expect(json).toMatchObject({ success: true, accepted: 0, rejectedCount: 150 })
    expect((json as { rejected: unknown[] }).rejected).toHaveLength(100)
  })

  test('of 2,500 calls is taken, one more refuses the whole', async () => {
    const { post, log } = await startCollecting()
    const calls = (count: number) => ({ batch: Array.from({ length: count }, () => aTrack) })
    expect((await post('/v1/batch', calls(2_500))).json).toEqual({ success: true })
    expect((await post('/v1/batch', calls(2_501))).json).toMatchObject({ code: 'too_many_calls' })
    expect(log.appended).toHaveLength(2_500)
  })

  test('keeps the order of its calls', async () => {
    const { post, log } = await startCollecting()
    const ids = Array.from({ length: 200 }, (_, at) => `m${at}`)
    await post('/v1/batch', { batch: ids.map((messageId) => ({ ...aTrack, messageId })) })
    expect(log.appended.map(({ message }) => message.messageId)).toEqual(ids)
  })

  test('without calls is accepted', async () => {
    const { post } = await startCollecting()
    expect(await post('/v1/batch', { batch: [] })).toMatchObject({
      status: 200,
      json: { success: true },
    })
  })

  test('whose context would be written out beyond the bound is refused whole', async () => {
    const { post, log } = await startCollecting()
    const context = { pad: 'x'.repeat(30_000) }
    const batch = Array.from({ length: 200 }, () => aTrack)
    expect((await post('/v1/batch', { batch, context })).json).toMatchObject({
      code: 'request_too_large',
    })
    expect(log.appended).toEqual([])
  })

  test('gives calls without an id ids that sort by time', async () => {
    const { post, log } = await startCollecting()
    const { messageId: _, ...call } = aTrack
    await post('/v1/batch', { batch: Array.from({ length: 500 }, () => call) })
    const ids = log.appended.map(({ message }) => message.messageId)
    expect(new Set(ids).size).toBe(500)
    for (const id of ids) {
      expect(id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
      expect(Number.parseInt(id.replace('-', '').slice(0, 12), 16)).toBe(noon)
    }
  })
})

describe('the write key', () => {
  test.each<[string, Record<string, string>, object]>([
    ['comes by Basic', { authorization: basic('wk_web') }, {}],
    ['comes by Basic without a colon', { authorization: `Basic ${btoa('wk_web')}` }, {}],
    ['comes in the body', {}, { writeKey: 'wk_web' }],
    ['comes in the body beside Bearer', { authorization: 'Bearer x' }, { writeKey: 'wk_web' }],
    [
      'comes in the body beside a malformed header',
      { authorization: 'Basic %%%' },
      { writeKey: 'wk_web' },
    ],
    [
      'comes in the body beside an empty header',
      { authorization: basic('') },
      { writeKey: 'wk_web' },
    ],
  ])('%s', async (_name, headers, extra) => {
    const { post, log } = await startCollecting()
    expect((await post('/v1/track', { ...aTrack, ...extra }, headers)).status).toBe(200)
    expect((await post('/v1/batch', { batch: [aTrack], ...extra }, headers)).status).toBe(200)
    expect(log.appended.map(({ message }) => message.sourceId)).toEqual([1, 1])
    const bodies = log.appended.map(({ message }) => Buffer.from(message.body).toString())
    expect(bodies.join()).not.toContain('wk_web')
  })

  test('of the calls counts when all agree', async () => {
    const { post } = await startCollecting()
    const call = { ...aTrack, writeKey: 'wk_web' }
    expect((await post('/v1/batch', { batch: [call, call] }, {})).status).toBe(200)
    const mixed = { batch: [call, { ...call, writeKey: 'wk_site' }] }
    expect(await post('/v1/batch', mixed, {})).toMatchObject({
      status: 401,
      json: { code: 'no_write_key' },
    })
  })

  test('of the header wins over the body’s, and the difference is counted', async () => {
    const { post, log, counted } = await startCollecting()
    await post('/v1/track', { ...aTrack, writeKey: 'wk_site' })
    expect(log.appended[0]?.message.sourceId).toBe(1)
    expect(counted.get('keys.differed')).toBe(1)
  })

  test.each<[string, Record<string, string>, object]>([
    ['no_write_key', {}, {}],
    ['unknown_write_key', { authorization: basic('wk_other') }, { writeKey: 'wk_web' }],
    ['unknown_write_key', {}, { writeKey: 'wk_other' }],
    ['unknown_write_key', {}, { writeKey: '__proto__' }],
  ])('%s answers 401 without asking the browser', async (code, headers, extra) => {
    const { post, log } = await startCollecting()
    const reply = await post('/v1/track', { ...aTrack, ...extra }, headers)
    expect(reply).toMatchObject({ status: 401, json: { success: false, code } })
    expect(reply.headers.get('www-authenticate')).toBeNull()
    expect(log.appended).toEqual([])
  })

  test('of a disabled source answers as if accepted, and nothing is appended', async () => {
    const { post, log, counted } = await startCollecting()
    const reply = await post('/v1/track', aTrack, { authorization: basic('wk_off') })
    expect([reply.status, reply.json]).toEqual([200, { success: true }])
    expect(log.appended).toEqual([])
    expect(counted.get('calls.filtered 2 source_disabled')).toBe(1)
  })

  test('and the body never reach a log line', async () => {
    const { post, lines } = await startCollecting()
    await post('/v1/track', { ...aTrack, userId: { secret: 'body-text' }, writeKey: 'wk_web' })
    await post('/v1/track', '{"writeKey":"wk_web", body-text', {})
    expect(lines.length).toBeGreaterThan(2)
    expect(lines.join()).not.toMatch(/wk_web|body-text/)
  })
})

describe('the address of a web source’s client', () => {
  const address = async (headers: Record<string, string>, trustedProxies: string[]) => {
    const { post, log } = await startCollecting({ trustedProxies })
    await post('/v1/track', aTrack, { authorization: basic('wk_site'), ...headers })
    return JSON.parse(Buffer.from(log.appended[0]?.message.body ?? []).toString()).context.ip
  }

  test('is the socket’s, whatever an untrusted client claims', async () => {
    expect(await address({ 'x-forwarded-for': '203.0.113.7' }, [])).toBe('127.0.0.1')
  })

  test('is the first untrusted hop, IPv6 kept', async () => {
    const headers = { 'x-forwarded-for': '10.9.9.9, 2001:db8::7, 10.0.0.1' }
    expect(await address(headers, ['127.0.0.1', '10.0.0.0/8'])).toBe('2001:db8::7')
  })

  test.each<[string, string | undefined]>([
    ['198.51.100.1, 203.0.113.7:4711', '203.0.113.7'],
    ['"[2001:db8::7]:443"', '2001:db8::7'],
    ['::ffff:203.0.113.7', '203.0.113.7'],
    ['203.0.113.7, fd00:1::5', '203.0.113.7'],
    ['<script>, 203.0.113.7', '203.0.113.7'],
    ['203.0.113.7, unknown', undefined],
  ])('behind a proxy that says %j is %j', async (hops, ip) => {
    const trusted = ['::ffff:127.0.0.0/104', 'fd00::/8']
    expect(await address({ 'x-forwarded-for': hops }, trusted)).toBe(ip)
  })

  test('is not what other headers say', async () => {
    const headers = { forwarded: 'for=203.0.113.7', 'x-real-ip': '203.0.113.7' }
    expect(await address(headers, ['127.0.0.1'])).toBe('127.0.0.1')
  })
})

describe('everything else', () => {
  test.each<[string, string, number, string]>([
    ['POST', '/v1/nothing', 404, 'not_found'],
    ['GET', '/', 404, 'not_found'],
    ['GET', '/v1/track', 405, 'method_not_allowed'],
    ['PUT', '/v1/batch/', 405, 'method_not_allowed'],
    ['POST', '/health/live', 405, 'method_not_allowed'],
    ['POST', '/v1/%zz', 400, 'malformed_request'],
    ['POST', '/constructor', 404, 'not_found'],
  ])('%s %s answers %i %s', async (method, path, ...[status, code]) => {
    const { url } = await startCollecting()
    const response = await fetch(`${url}${path}`, { method, redirect: 'error' })
    expect([response.status, await response.json()]).toMatchObject([
      status,
      { success: false, code, message: expect.any(String), error: expect.any(String) },
    ])
    expect(response.headers.get('content-type')).toBe('application/json; charset=utf-8')
  })

  test('a 405 names the methods that work', async () => {
    const { url } = await startCollecting()
    expect((await fetch(`${url}/v1/track`)).headers.get('allow')).toBe('POST, OPTIONS')
  })

  test('what is not HTTP is answered in JSON too', async () => {
    const { url } = await startCollecting()
    const socket = connect(Number(new URL(url).port), '127.0.0.1')
    socket.write('nonsense\r\n\r\n')
    let text = ''
    for await (const chunk of socket) text += chunk
    expect(text).toMatch(/^HTTP\/1\.1 400 /)
    expect(JSON.parse(text.split('\r\n\r\n')[1] ?? '')).toMatchObject({ code: 'malformed_request' })
  })

  test('health answers live and ready', async () => {
    const { url } = await startCollecting()
    for (const path of ['/health/live', '/health/ready'])
      expect((await fetch(`${url}${path}`)).status).toBe(200)
  })
})
