import { randomBytes } from 'node:crypto'
import { request } from 'node:http'
import { brotliCompressSync, deflateRawSync, deflateSync, gzipSync } from 'node:zlib'
import { describe, expect, test } from 'vitest'
import { collectLimits } from '../../src/collect/limits.ts'
import { basic, startCollecting } from '../support/collecting.ts'
import { until } from '../support/until.ts'

const aTrack = { userId: 'u1', event: 'e', messageId: 'm1' }
const authorization = basic('wk_web')
const text = JSON.stringify(aTrack)

describe('a body is parsed as JSON', () => {
  test.each([
    'application/json',
    'application/json; charset=utf-8',
    'text/plain',
    'application/x-www-form-urlencoded',
    'multipart/form-data; boundary=x',
    'not a media type',
  ])('when its type is %s', async (type) => {
    const { post, log } = await startCollecting()
    const headers = { authorization, 'content-type': type }
    expect((await post('/v1/track', text, headers)).status).toBe(200)
    expect(log.appended).toHaveLength(1)
  })

  test('when it has no type and no length', async () => {
    const { url, log } = await startCollecting()
    const status = await new Promise((resolve, reject) => {
      const sent = request(`${url}/v1/track`, { method: 'POST', headers: { authorization } })
      sent.on('response', (response) => resolve(response.resume().statusCode)).on('error', reject)
      sent.write(text.slice(0, 10))
      sent.end(text.slice(10))
    })
    expect([status, log.appended.length]).toEqual([200, 1])
  })

  test('when it begins with a byte order mark', async () => {
    const { post } = await startCollecting()
    expect((await post('/v1/track', `\ufeff${text}`)).status).toBe(200)
  })

  test.each([
    ['gzip', gzipSync(text)],
    ['x-gzip', gzipSync(text)],
    ['GZIP', gzipSync(text)],
    ['deflate', deflateSync(text)],
    ['deflate', deflateRawSync(text)],
    ['br', brotliCompressSync(text)],
    ['identity', Buffer.from(text)],
  ])('when it is encoded as %s', async (encoding, body) => {
    const { post, log } = await startCollecting()
    const headers = { authorization, 'content-encoding': encoding, 'content-type': 'text/plain' }
    expect((await post('/v1/track', body, headers)).status).toBe(200)
    expect(log.appended[0]?.message.messageId).toBe('m1')
  })
})

describe('a body is refused with 400', () => {
  const bomb = gzipSync(Buffer.alloc(50_000_000, ' '))
  test.each<[string, string | Buffer, string | null]>([
    ['invalid_json', '{"userId":', null],
    ['invalid_json', Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d]), null],
    ['empty_body', '', null],
    ['empty_body', '', 'gzip'],
    ['empty_body', gzipSync(''), 'gzip'],
    ['unsupported_encoding', text, 'compress'],
    ['unsupported_encoding', gzipSync(gzipSync(text)), 'gzip, gzip'],
    ['invalid_encoding', text, 'gzip'],
    ['invalid_encoding', gzipSync(text).subarray(0, 20), 'gzip'],
    ['request_too_large', bomb, 'gzip'],
    ['request_too_large', gzipSync(Buffer.alloc(100_000, ' ')), 'gzip'],
    ['request_too_large', brotliCompressSync(Buffer.alloc(5_000_000, ' ')), 'br'],
    ['request_too_large', `${text}${' '.repeat(524_289 - text.length)}`, null],
    ['request_too_large', randomBytes(3_000_000), null],
    ['body_not_object', '[]', null],
    ['body_not_object', '7', null],
    [
      'too_deep',
      `{"userId":"u1","event":"e","properties":{"a":${'['.repeat(400)}${']'.repeat(400)}}}`,
      null,
    ],
    ['number_out_of_range', '{"userId":"u1","event":"e","properties":{"a":1e400}}', null],
    ['call_too_large', JSON.stringify({ ...aTrack, properties: { a: 'x'.repeat(40_000) } }), null],
  ])('%s', async (code, body, encoding) => {
    const { post, log } = await startCollecting()
    const reply = await post('/v1/track', body, {
      authorization,
      ...(encoding ? { 'content-encoding': encoding } : {}),
    })
    expect(reply).toMatchObject({ status: 400, json: { success: false, code } })
    expect(log.appended).toEqual([])
  })

  test.each(['{}', '{"batch":{}}', '{"batch":"x"}'])('batch_not_array: %s', async (body) => {
    const { post } = await startCollecting()
    expect((await post('/v1/batch', body)).json).toMatchObject({ code: 'batch_not_array' })
  })

  test('but not at 524,288 bytes', async () => {
    const { post } = await startCollecting()
    expect((await post('/v1/track', text.padEnd(524_288))).status).toBe(200)
  })

  test('and not for an overflowing number in one of two calls: only that one', async () => {
    const { post, log } = await startCollecting()
    const body = `{"batch":[{"type":"track","userId":"u1","event":"e","properties":{"a":1e400}},{"type":"track","userId":"u1","event":"e"}]}`
    expect((await post('/v1/batch', body)).json).toMatchObject({ accepted: 1 })
    expect(log.appended).toHaveLength(1)
  })
})

describe('an encoded body is taken whole or not at all:', () => {
  const members = [text.slice(0, 20), text.slice(20)].map((part) => gzipSync(part))
  const ends = { gzip: gzipSync(text), deflate: deflateSync(text), br: brotliCompressSync(text) }
  const followed = (bytes: Buffer, tail: string) => Buffer.concat([bytes, Buffer.from(tail)])
  test.each<[string, string, Buffer, number]>([
    ['gzip in two members', 'gzip', Buffer.concat(members), 200],
    ['gzip with text after it', 'gzip', followed(ends.gzip, 'more'), 400],
    ['gzip with zeros after it', 'gzip', followed(ends.gzip, '\0\0\0\0'), 400],
    ['gzip with half a header after it', 'gzip', followed(ends.gzip, '\x1f'), 400],
    ['zlib with text after it', 'deflate', followed(ends.deflate, 'more'), 400],
    ['bare deflate with text after it', 'deflate', followed(deflateRawSync(text), 'more'), 400],
    ['brotli with text after it', 'br', followed(ends.br, 'more'), 400],
    ['brotli without its end', 'br', ends.br.subarray(0, -2), 400],
    ['zlib without its checksum', 'deflate', ends.deflate.subarray(0, -4), 400],
    ['gzip without its second member’s end', 'gzip', Buffer.concat(members).subarray(0, -9), 400],
  ])('%s', async (_name, ...[encoding, body, status]) => {
    const { post, log } = await startCollecting()
    const reply = await post('/v1/track', body, { authorization, 'content-encoding': encoding })
    expect(reply.status).toBe(status)
    if (status === 400) expect(reply.json).toMatchObject({ code: 'invalid_encoding' })
    expect(log.appended).toHaveLength(status === 200 ? 1 : 0)
  })
})

test('odd values are repaired and counted, not refused', async () => {
  const { post, log, counted } = await startCollecting()
  const body =
    '{"userId":"u\\u0000","event":"\\ud800","properties":{"__proto__":{"a":1},"n":9007199254740993}}'
  expect((await post('/v1/track', body)).status).toBe(200)
  expect(log.appended[0]?.message).toMatchObject({ userId: 'u\ufffd', event: '\ufffd' })
  expect(Object.fromEntries(counted)).toMatchObject({
    'calls.changed nul_replaced': 1,
    'calls.changed surrogate_replaced': 1,
    'calls.changed proto_key_stripped': 1,
    'calls.changed integer_rounded': 1,
  })
})

test('a client that goes away before its body ends leaves nothing held', async () => {
  const limits = { ...collectLimits, inFlightBytesMax: 1_000 }
  const { url, post } = await startCollecting({ limits })
  for (let at = 0; at < 5; at += 1)
    await new Promise<void>((resolve) => {
      const headers = { authorization, 'content-length': 5_000 }
      const sent = request(`${url}/v1/track`, { method: 'POST', headers })
      sent.on('error', () => undefined).on('close', () => resolve())
      sent.write(' '.repeat(900), () => setTimeout(() => sent.destroy(), 20))
    })
  await until(async () => (await post('/v1/track', text)).status === 200)
})
