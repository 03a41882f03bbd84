import { describe, expect, test } from 'vitest'
import { defaultSourceSettings } from '../../src/domain/configuration.ts'
import { basic, startCollecting } from '../support/collecting.ts'
import { aLive, aSource } from '../support/configuration.ts'

const origin = 'https://shop.example'
const aTrack = { userId: 'u1', event: 'Order Completed' }

const readable = {
  'access-control-allow-origin': origin,
  'access-control-allow-credentials': 'true',
  'access-control-expose-headers': 'Retry-After, X-RateLimit-Reset',
  vary: 'Origin',
}

const namesOf = (headers: Headers, wanted: object) =>
  Object.fromEntries(Object.keys(wanted).map((name) => [name, headers.get(name)]))

describe('a preflight', () => {
  test.each([
    '/v1/t',
    '/v1/batch/',
    '/v1/projects/wk_web/settings',
    '/beacon/v1/batch?writeKey=nobody',
    '/v1/nothing/at//all',
    '/health/live',
    '/v1/%zz',
  ])('of %s is answered without a key', async (path) => {
    const { url } = await startCollecting()
    const response = await fetch(`${url}${path}`, {
      method: 'OPTIONS',
      headers: {
        origin,
        'access-control-request-method': 'POST',
        'access-control-request-headers': 'authorization,x-retry-count,rsa-retry-attempt',
      },
    })
    const wanted = {
      ...readable,
      'access-control-allow-methods': 'GET, POST, OPTIONS',
      'access-control-allow-headers': 'authorization,x-retry-count,rsa-retry-attempt',
      'access-control-max-age': '7200',
    }
    expect(response.status).toBe(204)
    expect(namesOf(response.headers, wanted)).toEqual(wanted)
    expect(await response.text()).toBe('')
  })

  test('that names no headers is told those that clients send', async () => {
    const { url } = await startCollecting()
    const response = await fetch(`${url}/v1/t`, { method: 'OPTIONS', headers: { origin } })
    const allowed = response.headers.get('access-control-allow-headers')
    for (const name of ['authorization', 'content-type', 'x-retry-count', 'sentat', 'anonymousid'])
      expect(allowed).toContain(name)
  })
})

describe('every answer can be read by the page', () => {
  const refusals: readonly (readonly [number, string, string, object, Record<string, string>])[] = [
    [200, 'POST', '/v1/t', aTrack, { authorization: basic('wk_web') }],
    [400, 'POST', '/v1/t', {}, { authorization: basic('wk_web') }],
    [401, 'POST', '/v1/t', aTrack, { authorization: basic('wk_other') }],
    [404, 'POST', '/v1/nothing', aTrack, {}],
    [400, 'POST', '/v1/%zz', aTrack, {}],
    [405, 'DELETE', '/v1/t', aTrack, {}],
    [404, 'GET', '/v1/projects/wk_other/settings', {}, {}],
  ]
  test.each(refusals)('%i to %s %s', async (status, ...[method, path, body, headers]) => {
    const { url } = await startCollecting()
    const response = await fetch(`${url}${path}`, {
      method,
      headers: { origin, ...headers },
      ...(method === 'GET' ? {} : { body: JSON.stringify(body) }),
    })
    expect([response.status, namesOf(response.headers, readable)]).toEqual([status, readable])
  })

  test('429 with its Retry-After, and 503', async () => {
    const { post, log } = await startCollecting()
    const headers = { authorization: basic('wk_web'), origin }
    log.behave('fail')
    const away = await post('/v1/t', aTrack, headers)
    expect([away.status, namesOf(away.headers, readable)]).toEqual([503, readable])
    const small = await startCollecting({ limits: { inFlightBytesMax: 10 } })
    const full = await small.post('/v1/t', aTrack, headers)
    expect([full.status, namesOf(full.headers, readable)]).toEqual([429, readable])
    expect(Number(full.headers.get('retry-after'))).toBeGreaterThanOrEqual(1)
    expect(Number(full.headers.get('x-ratelimit-reset'))).toBeGreaterThan(0)
  })

  test('and a request without an origin is not answered as if it had one', async () => {
    const { post } = await startCollecting()
    const { headers } = await post('/v1/t', aTrack)
    expect(headers.get('access-control-allow-origin')).toBeNull()
  })
})

describe('a source that names the origins that may send', () => {
  const settings = { ...defaultSourceSettings, allowedOrigins: [origin] }
  const start = () => startCollecting({ live: aLive({ sources: [aSource({ settings })] }) })
  const from = (other: string) => ({ authorization: basic('wk_web'), origin: other })

  test.each([origin, 'https://SHOP.example'])('takes calls from %s', async (allowed) => {
    const { post } = await start()
    expect((await post('/v1/t', aTrack, from(allowed))).status).toBe(200)
  })

  test('takes calls of what is no page', async () => {
    const { post } = await start()
    expect((await post('/v1/t', aTrack)).status).toBe(200)
  })

  test.each(['https://evil.example', 'https://shop.example:444', 'http://shop.example', 'null'])(
    'refuses %s, which may read why',
    async (other) => {
      const { post, log, counted } = await start()
      const reply = await post('/v1/t', aTrack, from(other))
      expect(reply).toMatchObject({ status: 400, json: { code: 'origin_not_allowed' } })
      expect(reply.headers.get('access-control-allow-origin')).toBe(other)
      expect(counted.get('requests.refused origin_not_allowed')).toBe(1)
      expect(log.appended).toEqual([])
    },
  )
})
