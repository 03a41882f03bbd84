import { hash } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { basic, startCollecting } from '../support/collecting.ts'
import { aLive, aSource } from '../support/configuration.ts'

const secret = { authorization: basic('sk_web') }
const publicly = { authorization: basic('wk_web') }
const aDelete = { type: 'delete', userId: 'u1', messageId: 'd1' }
const aTrack = { type: 'track', userId: 'u1', event: 'e', messageId: 'm1' }

const live = () =>
  aLive({
    sources: [
      aSource(),
      aSource({
        id: 3,
        name: 'site',
        writeKey: 'wk_site',
        secretKeyHash: hash('sha256', 'sk_site', 'hex'),
      }),
    ],
  })

const start = () => startCollecting({ live: live() })

describe('a source’s secret key', () => {
  test('deletes by a route of its own, and the call is keyed by its user', async () => {
    const { post, log } = await start()
    const reply = await post('/v1/delete/', { userId: 'u1', messageId: 'd1' }, secret)
    expect([reply.status, reply.json]).toEqual([200, { success: true }])
    expect(log.appended).toMatchObject([
      { topic: 'calls', key: '1:1:u1', message: { type: 'delete', userId: 'u1', sourceId: 1 } },
    ])
  })

  test.each(['/v1/batch', '/v1/b', '/v1/import', '/beacon/v1/batch'])(
    'deletes within a batch to %s, beside other calls',
    async (path) => {
      const { post, log } = await start()
      const byAnonymous = { type: 'delete', anonymousId: 'a1', messageId: 'd2' }
      const reply = await post(path, { batch: [aDelete, aTrack, byAnonymous] }, secret)
      expect([reply.status, reply.json]).toEqual([200, { success: true }])
      expect(log.appended.map(({ message }) => [message.type, message.messageId])).toEqual([
        ['delete', 'd1'],
        ['track', 'm1'],
        ['delete', 'd2'],
      ])
    },
  )

  test('sends every other call too, for its own source only', async () => {
    const { post, log } = await start()
    await post('/v1/track', aTrack, secret)
    await post('/v1/t', aTrack, { authorization: basic('sk_site') })
    expect(log.appended.map(({ message }) => message.sourceId)).toEqual([1, 3])
  })

  test('needs a user to delete', async () => {
    const { post, log } = await start()
    const reply = await post('/v1/delete', { userId: null, anonymousId: '' }, secret)
    expect(reply).toMatchObject({ status: 400, json: { code: 'no_user_anon_id' } })
    expect(log.appended).toEqual([])
  })

  test('is not a difference from the write key of its own source in the body', async () => {
    const { post, counted } = await start()
    await post('/v1/track', { ...aTrack, writeKey: 'wk_web' }, secret)
    expect(counted.get('keys.differed')).toBeUndefined()
    await post('/v1/track', { ...aTrack, writeKey: 'wk_site' }, secret)
    expect(counted.get('keys.differed')).toBe(1)
  })

  test.each<[string, string, object]>([
    ['in the body', '/v1/delete', { userId: 'u1', writeKey: 'sk_web' }],
    ['in a batch', '/v1/batch', { batch: [aDelete], writeKey: 'sk_web' }],
    ['in its calls', '/v1/batch', { batch: [{ ...aDelete, writeKey: 'sk_web' }] }],
    ['in the query', '/beacon/v1/batch?writeKey=sk_web', { batch: [aDelete] }],
  ])('counts for nothing %s', async (_where, path, body) => {
    const { post, log } = await start()
    expect(await post(path, body, {})).toMatchObject({
      status: 401,
      json: { code: 'unknown_write_key' },
    })
    expect(log.appended).toEqual([])
  })

  test('is the key itself: its hash opens nothing', async () => {
    const { post } = await start()
    const headers = { authorization: basic(hash('sha256', 'sk_web', 'hex')) }
    expect((await post('/v1/delete', { userId: 'u1' }, headers)).status).toBe(401)
  })

  test('reaches no log line and no stored call', async () => {
    const { post, log, lines } = await start()
    await post('/v1/delete', { userId: 'u1', writeKey: 'sk_web' }, secret)
    await post('/v1/delete', {}, secret)
    expect(lines.length).toBeGreaterThan(1)
    expect(lines.join()).not.toContain('sk_web')
    expect(Buffer.from(log.appended[0]?.message.body ?? []).toString()).not.toContain('sk_web')
  })
})

describe('the write key, which every page holds', () => {
  test('deletes nobody by the route', async () => {
    const { post, log, counted } = await start()
    const reply = await post('/v1/delete', { userId: 'u1' }, publicly)
    expect(reply).toMatchObject({ status: 400, json: { code: 'unknown_type' } })
    expect(counted.get('calls.rejected 1 unknown_type')).toBe(1)
    expect(log.appended).toEqual([])
  })

  test.each<[string, string, object, Record<string, string>]>([
    ['by Basic', '/v1/batch', {}, publicly],
    ['in the body', '/v1/batch', { writeKey: 'wk_web' }, {}],
    ['in the query', '/beacon/v1/batch?writeKey=wk_web', {}, {}],
  ])('deletes nobody within a batch, %s, and the others are kept', async (_by, ...sent) => {
    const [path, extra, headers] = sent
    const { post, log } = await start()
    const reply = await post(path, { batch: [aDelete, aTrack], ...extra }, headers)
    expect([reply.status, reply.json]).toEqual([
      200,
      {
        success: true,
        accepted: 1,
        rejected: [{ index: 0, messageId: 'd1', code: 'unknown_type' }],
        rejectedCount: 1,
      },
    ])
    expect(log.appended.map(({ message }) => message.type)).toEqual(['track'])
  })
})
