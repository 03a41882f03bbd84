import { readFile } from 'node:fs/promises'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { callRoutes } from '../../src/collect/routes.ts'
import { basic, type Collecting, startCollecting } from '../support/collecting.ts'
import { seed } from '../support/seed.ts'

const aCall = { userId: 'u1', previousId: 'p1', groupId: 'g1', event: 'e', type: 'track' }
const headers = { authorization: basic('wk_web') }

const send = async ({ url }: Collecting, method: string, path: string) => {
  const response = await fetch(`${url}${path}`, {
    method,
    redirect: 'manual',
    headers,
    ...(method === 'GET' || method === 'HEAD'
      ? {}
      : { body: JSON.stringify({ ...aCall, batch: [aCall] }) }),
  })
  return { response, text: await response.text() }
}

test('docs/http-api.md names every route', async () => {
  const text = await readFile(new URL('../../docs/http-api.md', import.meta.url), 'utf8')
  const table = text.split('## Routes')[1]?.split('\n## ')[0] ?? ''
  const others = ['/v1/pixel/', '/pixel/v1/', '/v1/projects/KEY/settings', '/sourceConfig', '/v1/m']
  for (const path of [...callRoutes.map((route) => route.path), ...others])
    expect(table).toContain(path)
})

describe('every route of calls', () => {
  test.each(callRoutes.filter(({ type }) => type !== 'delete').map(({ path }) => path))(
    'POST %s takes a call, with and without a slash at its end',
    async (path) => {
      const collecting = await startCollecting()
      for (const form of [path, `${path}/`, `${path}?a=b`, `${path}/?a=b`]) {
        const { response, text } = await send(collecting, 'POST', form)
        expect([form, response.status, text]).toEqual([form, 200, '{"success":true}'])
      }
      expect(collecting.log.appended).toHaveLength(4)
    },
  )

  test.each([
    ['/v1/i', 'identify'],
    ['/v1/t', 'track'],
    ['/v1/p', 'page'],
    ['/v1/s', 'screen'],
    ['/v1/g', 'group'],
    ['/v1/a', 'alias'],
  ])('%s is %s, whatever the body calls itself', async (path, type) => {
    const collecting = await startCollecting()
    await send(collecting, 'POST', path)
    expect(collecting.log.appended.map(({ message }) => message.type)).toEqual([type])
  })

  test.each([
    '/v1//track',
    '//v1/track',
    '/v1/track//',
    '/v1/track/x',
    '/V1/track',
    '/v1/',
    '/v1/x',
    '/v1/pixel//',
  ])('POST %s is not found, and says so in JSON', async (path) => {
    const collecting = await startCollecting()
    const { response, text } = await send(collecting, 'POST', path)
    expect([response.status, JSON.parse(text).code]).toEqual([404, 'not_found'])
    expect(collecting.log.appended).toEqual([])
  })

  test.each([
    ['GET', '/v1/t/', 'POST, OPTIONS'],
    ['HEAD', '/v1/batch', 'POST, OPTIONS'],
    ['PUT', '/v1/m', 'POST, OPTIONS'],
    ['DELETE', '/beacon/v1/batch', 'POST, OPTIONS'],
    ['POST', '/v1/pixel/track', 'GET, HEAD, OPTIONS'],
    ['PATCH', '/pixel/v1/page/', 'GET, HEAD, OPTIONS'],
    ['POST', '/v1/projects/wk_web/settings', 'GET, HEAD, OPTIONS'],
    ['POST', '/sourceConfig', 'GET, HEAD, OPTIONS'],
    ['POST', '/health/ready', 'GET, HEAD, OPTIONS'],
  ])('%s %s is 405 and names what works', async (method, path, allow) => {
    const { response } = await send(await startCollecting(), method, path)
    expect([response.status, response.headers.get('allow')]).toEqual([405, allow])
  })

  test('HEAD answers like GET, without a body', async () => {
    const collecting = await startCollecting()
    for (const path of [
      '/health/live',
      '/v1/projects/wk_web/settings',
      '/sourceConfig?writeKey=wk_web',
    ]) {
      const { response, text } = await send(collecting, 'HEAD', path)
      expect([path, response.status, text]).toEqual([path, 200, ''])
    }
  })
})

test(`whatever path is asked for, a POST is answered 200 or refused in JSON, never redirected (SEED=${seed})`, async () => {
  const collecting = await startCollecting()
  const words = ['v1', 'track', 't', 'batch', 'b', 'm', 'pixel', 'projects', 'settings', 'beacon']
  const segment = fc.oneof(
    { weight: 6, arbitrary: fc.constantFrom(...words, 'health', 'live', 'sourceConfig', 'delete') },
    fc.constantFrom('', '.', '..', '%2e%2e', '%2f', '%00', '%zz', ':type', '*', '__proto__', 'é'),
    fc.string({ maxLength: 6 }).map(encodeURIComponent),
  )
  const path = fc
    .tuple(fc.array(segment, { maxLength: 5 }), fc.constantFrom('', '/', '//', '?', '/?writeKey=x'))
    .map(([segments, end]) => `/${segments.join('/')}${end}`)
  const method = fc.constantFrom('POST', 'POST', 'POST', 'PUT', 'GET', 'PATCH')
  await fc.assert(
    fc.asyncProperty(method, path, async (method, path) => {
      const { response, text } = await send(collecting, method, path)
      expect([200, 400, 401, 404, 405]).toContain(response.status)
      if (response.headers.get('content-type') === 'image/gif') {
        expect(method).toBe('GET')
        return
      }
      expect(response.headers.get('content-type')).toBe('application/json; charset=utf-8')
      const answer: unknown = JSON.parse(text)
      expect(typeof answer === 'object' && answer !== null && !Array.isArray(answer)).toBe(true)
      expect(response.headers.get('www-authenticate')).toBeNull()
    }),
    { seed, numRuns: 300 },
  )
})

describe('answering what can never succeed as if it had', () => {
  test.each<[string, string, unknown, Record<string, string>, string]>([
    [
      'a refused call',
      '/v1/track',
      { userId: 'u1' },
      headers,
      'calls.rejected 1 event_not_defined',
    ],
    [
      'an unknown key',
      '/v1/track',
      aCall,
      { authorization: basic('wk_no') },
      'requests.refused unknown_write_key',
    ],
    ['a body that is no JSON', '/v1/batch', '{', headers, 'requests.refused invalid_json'],
  ])('covers %s, counted all the same', async (_what, ...[path, body, sent, counter]) => {
    const { post, log, counted } = await startCollecting({ always200: true })
    const reply = await post(path, body, sent)
    expect([reply.status, reply.json]).toEqual([200, { success: true }])
    expect(counted.get(counter)).toBe(1)
    expect(log.appended).toEqual([])
  })

  test('leaves what may succeed later, and what is not there', async () => {
    const { post, log } = await startCollecting({ always200: true })
    log.behave('fail')
    expect((await post('/v1/track', aCall)).status).toBe(503)
    expect((await post('/v1/nothing', aCall)).status).toBe(404)
  })
})
