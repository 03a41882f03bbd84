import { request } from 'node:http'
import { describe, expect, test } from 'vitest'
import { basic, type Collecting, startCollecting } from '../support/collecting.ts'

type Asked = {
  readonly status: number
  readonly headers: Record<string, unknown>
  // biome-ignore lint/suspicious/noExplicitAny: tests look into answers of any form
  json(): any
}

/** With any Host, which fetch would choose itself. */
const ask = ({ url }: Collecting, path: string, headers: Record<string, string> = {}) =>
  new Promise<Asked>((resolve, reject) => {
    const asked = request(`${url}${path}`, { headers }, async (response) => {
      let text = ''
      for await (const chunk of response) text += chunk
      resolve({
        status: response.statusCode ?? 0,
        headers: response.headers,
        json: () => JSON.parse(text),
      })
    })
    asked.on('error', reject)
    asked.end()
  })

const path = '/v1/projects/wk_web/settings'

describe('the settings document', () => {
  test('has exactly one integration, which sends to the host the client asked', async () => {
    const collecting = await startCollecting()
    const { status, headers, json } = await ask(collecting, path, { host: 'events.example:8443' })
    expect(status).toBe(200)
    expect(headers).toMatchObject({
      'content-type': 'application/json; charset=utf-8',
      'cache-control': 'public, max-age=60',
      vary: 'Origin',
    })
    const { integrations, metrics, plan } = json()
    expect(Object.keys(integrations)).toEqual(['Segment.io'])
    expect(integrations['Segment.io']).toMatchObject({
      apiKey: 'wk_web',
      apiHost: 'events.example:8443/v1',
      protocol: 'http',
      unbundledIntegrations: [],
      versionSettings: { componentTypes: ['browser'] },
    })
    expect(metrics).toEqual({ sampleRate: 0, host: 'events.example:8443/v1' })
    expect(plan.track.__default).toEqual({ enabled: true, integrations: {} })
  })

  test.each([
    ['https://events.example', 'https', 'events.example/v1'],
    ['http://events.example:8080/collect/', 'http', 'events.example:8080/collect/v1'],
    ['https://events.example/v1', 'https', 'events.example/v1'],
  ])('names the public URL %s where one is set', async (publicUrl, protocol, apiHost) => {
    const collecting = await startCollecting({ publicUrl })
    const { json } = await ask(collecting, path, { host: 'inside:1' })
    expect(json().integrations['Segment.io']).toMatchObject({ protocol, apiHost })
    expect(json().metrics.host).toBe(apiHost)
  })

  test('believes a forwarded host only of a trusted proxy', async () => {
    const headers = {
      host: 'inside:1',
      'x-forwarded-host': 'events.example',
      'x-forwarded-proto': 'https',
    }
    const placed = async (trustedProxies: readonly string[]) => {
      const { json } = await ask(await startCollecting({ trustedProxies }), path, headers)
      const { protocol, apiHost } = json().integrations['Segment.io']
      return [protocol, apiHost]
    }
    expect(await placed(['127.0.0.1'])).toEqual(['https', 'events.example/v1'])
    expect(await placed([])).toEqual(['http', 'inside:1/v1'])
  })

  test('never names a host that is none', async () => {
    const collecting = await startCollecting()
    const { json } = await ask(collecting, path, { host: 'a"b/c' })
    expect(json().metrics.host).toBe(`${new URL(collecting.url).host}/v1`)
  })

  test('is not sent again to who has it', async () => {
    const collecting = await startCollecting()
    const { etag } = (await ask(collecting, path)).headers as { etag: string }
    expect(etag).toMatch(/^"[\w-]+"$/)
    for (const known of [etag, `W/${etag}`, `"other", ${etag}`])
      expect((await ask(collecting, path, { 'if-none-match': known })).status).toBe(304)
    expect((await ask(collecting, path, { 'if-none-match': '"other"' })).status).toBe(200)
    const elsewhere = { 'if-none-match': etag, host: 'other.example' }
    expect((await ask(collecting, path, elsewhere)).status).toBe(200)
  })

  test('is there for a disabled source and, with a slash, for any; not for an unknown key', async () => {
    const collecting = await startCollecting()
    expect((await ask(collecting, '/v1/projects/wk_off/settings/')).status).toBe(200)
    for (const key of ['wk_other', '__proto__', 'x'.repeat(2_000)]) {
      const answer = await ask(collecting, `/v1/projects/${key}/settings`)
      expect([answer.status, answer.json().code]).toEqual([404, 'not_found'])
      expect(answer.headers['cache-control']).toBe('no-store')
    }
  })
})

describe('the source configuration of the RudderStack SDKs', () => {
  const expected = {
    source: {
      id: '1',
      name: 'web',
      writeKey: 'wk_web',
      enabled: true,
      config: { statsCollection: { errors: { enabled: false }, metrics: { enabled: false } } },
      destinations: [],
    },
  }

  test.each<[string, Record<string, string>]>([
    ['/sourceConfig/?p=npm&v=3.34.1&build=modern&writeKey=wk_web&lockPluginsVersion=false', {}],
    ['/sourceConfig', { authorization: basic('wk_web') }],
    ['/v1/sourceConfig/?writeKey=wk_web', {}],
    ['/sourceConfig/?writeKey=wk_other', { authorization: basic('wk_web') }],
  ])('at %s names no destination and no other place to send to', async (path, headers) => {
    const answer = await ask(await startCollecting(), path, headers)
    expect(answer.status).toBe(200)
    expect(answer.json()).toMatchObject(expected)
    expect(answer.json().source).not.toHaveProperty('dataplanes')
  })

  test.each(['/sourceConfig', '/sourceConfig?writeKey=wk_other'])('at %s is 401', async (path) => {
    const answer = await ask(await startCollecting(), path)
    expect([answer.status, answer.json().success]).toEqual([401, false])
    expect(answer.headers['www-authenticate']).toBeUndefined()
  })
})

describe('the counters of clients', () => {
  const counter = (metric: string, value: unknown = 1) => ({
    type: 'Counter',
    metric,
    value,
    tags: {},
  })

  test('are added up by the names we know, without a key', async () => {
    const { post, counted } = await startCollecting()
    const series = [
      counter('analytics_js.invoke', 3),
      counter('analytics_js.invoke', 2),
      counter('analytics_mobile.invoke.error'),
      counter('made up by somebody'),
      counter('analytics_js.invoke', -1),
      counter('analytics_js.invoke', '7'),
      { ...counter('analytics_js.invoke'), type: 'Gauge' },
      counter('analytics_js.invoke', 1e9),
      null,
    ]
    const reply = await post('/v1/m', { series }, { 'content-type': 'text/plain' })
    expect([reply.status, reply.json]).toEqual([200, { success: true }])
    expect(Object.fromEntries(counted)).toEqual({
      'clients.counted analytics_js.invoke': 5,
      'clients.counted analytics_mobile.invoke.error': 1,
      'clients.counted other': 1,
    })
  })

  test.each<[string, unknown]>([
    ['series_not_array', {}],
    ['body_not_object', []],
    ['invalid_json', '{'],
    ['request_too_large', ' '.repeat(524_289)],
  ])('that cannot be read are refused: %s', async (code, body) => {
    const { post } = await startCollecting()
    expect(await post('/v1/m', body)).toMatchObject({ status: 400, json: { code } })
  })

  test('hold nothing once they are answered', async () => {
    const { post } = await startCollecting({ limits: { inFlightBytesMax: 500 } })
    const body = JSON.stringify({ series: [counter('analytics_js.invoke')] }).padEnd(400)
    for (let at = 0; at < 3; at++) expect((await post('/v1/m', body)).status).toBe(200)
  })
})
