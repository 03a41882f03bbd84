import { randomBytes } from 'node:crypto'
import { Readable } from 'node:stream'
import { gzipSync } from 'node:zlib'
import { describe, expect, test } from 'vitest'
import { openPressure } from '../../src/collect/gate/pressure.ts'
import {
  bytesHardMax,
  type CollectLimits,
  collectLimits,
  limitsOf,
  openBodyBytesMax,
} from '../../src/collect/limits.ts'
import { readBody } from '../../src/collect/request/body.ts'
import { defaultSourceSettings, type SourceSettings } from '../../src/domain/configuration.ts'
import { basic, startCollecting } from '../support/collecting.ts'
import { aConfiguration, aLive, aSource } from '../support/configuration.ts'

const set = (settings: Partial<SourceSettings>) => ({ ...defaultSourceSettings, ...settings })

const startWith = (settings: Partial<SourceSettings>, limits?: Partial<CollectLimits>) => {
  const sources = [
    aSource({ settings: set(settings) }),
    aSource({ id: 2, name: 'plain', writeKey: 'wk_plain', secretKeyHash: '2' }),
  ]
  return startCollecting({ live: aLive({ sources }), ...(limits && { limits }) })
}

const aTrack = (bytes: number, messageId = 'm1') => {
  const call = { type: 'track', userId: 'u1', event: 'e', messageId, properties: { pad: '' } }
  const pad = 'x'.repeat(bytes - JSON.stringify(call).length)
  return { ...call, properties: { pad } }
}
const batchOf = (count: number) =>
  Array.from({ length: count }, (_, at) => ({ type: 'track', userId: 'u', event: 'e', at }))
const inHeader = (key: string) => ({ authorization: basic(key) })

describe('a source’s own limit', () => {
  test('on a call may be higher', async () => {
    const { post } = await startWith({ callBytesMax: 100_000 })
    expect((await post('/v1/track', aTrack(100_000))).status).toBe(200)
    const reply = await post('/v1/track', aTrack(100_001))
    expect(reply).toMatchObject({ status: 400, json: { code: 'call_too_large' } })
  })

  test('on a call may be lower, and is another’s nothing', async () => {
    const { post } = await startWith({ callBytesMax: 1_024 })
    expect((await post('/v1/track', aTrack(1_024))).status).toBe(200)
    expect((await post('/v1/track', aTrack(1_025))).status).toBe(400)
    expect((await post('/v1/track', aTrack(1_025), inHeader('wk_plain'))).status).toBe(200)
  })

  test.each<[number, number, number]>([
    [2_501, 2_501, 200],
    [2_501, 2_502, 400],
    [2, 2, 200],
    [2, 3, 400],
  ])('of %i calls a batch lets %i calls be answered %i', async (batchCallsMax, count, status) => {
    const { post } = await startWith({ batchCallsMax })
    const reply = await post('/v1/batch', { batch: batchOf(count) })
    expect(reply.status).toBe(status)
    if (status === 400) expect(reply.json).toMatchObject({ code: 'too_many_calls' })
  })

  const large = JSON.stringify({ ...aTrack(2_000) }).padEnd(1_000_000)
  test.each<[string, string, Record<string, string>, number]>([
    ['in the header', large, inHeader('wk_web'), 200],
    ['in the body', large.replace('{', '{"writeKey":"wk_web",'), {}, 200],
    ['of another in the header', large, inHeader('wk_plain'), 400],
    ['of another in the body', large.replace('{', '{"writeKey":"wk_plain",'), {}, 400],
  ])('on the body may be higher, for a key %s', async (_name, ...[body, headers, status]) => {
    const { post, log } = await startWith({ bodyBytesMax: 1_000_100 })
    const reply = await post('/v1/track', body, headers)
    expect(reply.status).toBe(status)
    if (status === 400) expect(reply.json).toMatchObject({ code: 'request_too_large' })
    expect(log.appended).toHaveLength(status === 200 ? 1 : 0)
  })

  test('on the body counts what was decompressed', async () => {
    const { post } = await startWith({ bodyBytesMax: 2_000 })
    const headers = { ...inHeader('wk_web'), 'content-encoding': 'gzip' }
    expect((await post('/v1/track', gzipSync(JSON.stringify(aTrack(2_000))), headers)).status).toBe(
      200,
    )
    const reply = await post('/v1/track', gzipSync(JSON.stringify(aTrack(2_001))), headers)
    expect(reply).toMatchObject({ status: 400, json: { code: 'request_too_large' } })
  })

  test('lets a batch of 4 MiB through, its calls stored with what is added to each', async () => {
    const { post, log } = await startWith({ bodyBytesMax: bytesHardMax, batchCallsMax: 10_000 })
    const batch = Array.from({ length: 4_000 }, (_, at) => aTrack(1_000, `m${at}`))
    const reply = await post('/v1/batch', { batch, context: { app: { name: 'a' } } })
    expect(reply).toMatchObject({ status: 200, json: { success: true } })
    expect(log.appended).toHaveLength(4_000)
  })

  test('never goes over 4 MiB', () => {
    const settings = set({ bodyBytesMax: 5_000_000, callBytesMax: 5_000_000 })
    expect(limitsOf(collectLimits, { settings })).toMatchObject({
      bodyBytesMax: 4_194_304,
      callBytesMax: 4_194_304,
    })
    expect(limitsOf(collectLimits, aSource())).toBe(collectLimits)
  })

  test('says how far a body without a key in the header is read: as far as any enabled one goes', () => {
    const bytesMaxOf = openBodyBytesMax(collectLimits)
    const sources = [
      aSource({ settings: set({ bodyBytesMax: 1_000 }) }),
      aSource({ id: 2, settings: set({ bodyBytesMax: 1_000_000 }) }),
      aSource({ id: 3, settings: set({ bodyBytesMax: 2_000_000 }), enabled: false }),
    ]
    expect(bytesMaxOf(aConfiguration({ sources }))).toBe(1_000_000)
    expect(bytesMaxOf(aConfiguration({ sources: sources.slice(0, 1) }))).toBe(524_288)
  })
})

test('a call that no log takes as one entry is rejected, and the others are kept', async () => {
  const { post, log, counted } = await startWith({
    callBytesMax: 1_048_576,
    bodyBytesMax: 4_194_304,
  })
  const batch = [aTrack(500, 'a'), aTrack(1_040_000, 'b'), aTrack(900_000, 'c')]
  expect((await post('/v1/batch', { batch })).json).toMatchObject({
    accepted: 2,
    rejected: [{ index: 1, messageId: 'b', code: 'call_too_large' }],
  })
  expect(log.appended.map(({ message }) => message.messageId)).toEqual(['a', 'c'])
  expect(counted.get('calls.rejected 1 call_too_large')).toBe(1)
})

describe('the log line of a refusal names the client', () => {
  const userAgent = `analytics-node/${'9'.repeat(200)}`
  const headers = { ...inHeader('wk_web'), 'user-agent': userAgent }
  const library = { name: 'analytics-node', version: '3.1.0' }
  const lineOf = (lines: readonly string[], name: string) =>
    lines.map((line) => JSON.parse(line)).find(({ msg }) => msg === name)

  test('when the whole request is refused', async () => {
    const { post, lines } = await startWith({ batchCallsMax: 1 })
    await post('/v1/batch', { batch: batchOf(2), context: { library } }, headers)
    expect(lineOf(lines, 'request.refused')).toMatchObject({
      code: 'too_many_calls',
      sourceId: 1,
      userAgent: userAgent.slice(0, 100),
      library: 'analytics-node 3.1.0',
    })
  })

  test('when its body is not even read to the end', async () => {
    const { post, lines } = await startWith({ bodyBytesMax: 1_024 })
    await post('/v1/batch', randomBytes(50_000), headers)
    expect(lineOf(lines, 'request.refused')).toMatchObject({
      code: 'request_too_large',
      userAgent: userAgent.slice(0, 100),
    })
  })

  test('when a call is rejected, by the library of the call', async () => {
    const { post, lines } = await startWith({ callBytesMax: 1_024 })
    const large = { ...aTrack(2_000), context: { library: { name: 'x'.repeat(300) } } }
    await post('/v1/batch', { batch: [large] }, headers)
    expect(lineOf(lines, 'calls.collected')).toMatchObject({
      rejected: 1,
      userAgent: userAgent.slice(0, 100),
      library: 'x'.repeat(100),
    })
  })
})

test('a body in pieces of one byte is put together, and never held more than twice', async () => {
  const body = randomBytes(20_000)
  const share = openPressure(1_000_000).open()
  const stream = Readable.from([...body].map((byte) => Buffer.from([byte])))
  const reading = { encoding: undefined, bodyBytesMax: 20_000, ratioMax: 100, share }
  const read = await readBody(stream, reading)
  expect(Buffer.isBuffer(read) && read.equals(body)).toBe(true)
  expect((read as Buffer).buffer.byteLength).toBeLessThanOrEqual(2 * body.length)
})
