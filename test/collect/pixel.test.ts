import { describe, expect, test } from 'vitest'
import { basic, type Collecting, startCollecting } from '../support/collecting.ts'

const encoded = (value: unknown, form: 'base64' | 'base64url' = 'base64') =>
  Buffer.from(JSON.stringify(value)).toString(form)

const show = async ({ url }: Collecting, path: string, headers: Record<string, string> = {}) => {
  const response = await fetch(`${url}${path}`, { headers })
  const bytes = Buffer.from(await response.arrayBuffer())
  return { response, bytes }
}

const expectImage = ({ response, bytes }: Awaited<ReturnType<typeof show>>) => {
  expect(response.status).toBe(200)
  expect(response.headers.get('content-type')).toBe('image/gif')
  expect(response.headers.get('cache-control')).toBe('no-store')
  expect(bytes.length).toBe(43)
  expect(bytes.subarray(0, 6).toString()).toBe('GIF89a')
}

const bodies = ({ log }: Collecting) =>
  log.appended.map(({ message }) => JSON.parse(Buffer.from(message.body).toString()))

describe('a pixel', () => {
  test.each<[string, object]>([
    ['identify', { userId: 'u1', traits: { plan: 'pro' } }],
    ['track', { userId: 'u1', event: 'Email Opened' }],
    ['page', { anonymousId: 'a1', name: 'Home' }],
    ['screen', { userId: 'u1', name: 'Home' }],
    ['group', { userId: 'u1', groupId: 'g1' }],
    ['alias', { userId: 'u1', previousId: 'a1' }],
  ])('of %s appends its call', async (type, call) => {
    const collecting = await startCollecting()
    const data = encoded({ ...call, type: 'nonsense', writeKey: 'wk_web' })
    expectImage(await show(collecting, `/v1/pixel/${type}?data=${encodeURIComponent(data)}`))
    expect(bodies(collecting)).toMatchObject([{ ...call, type }])
    expect(JSON.stringify(bodies(collecting))).not.toContain('wk_web')
  })

  test.each(['track', 'page'])('of /pixel/v1/%s takes its key from the query', async (type) => {
    const collecting = await startCollecting()
    const query = 'writeKey=wk_web&anonymousId=a1&event=Opened'
    expectImage(await show(collecting, `/pixel/v1/${type}/?${query}`))
    expect(bodies(collecting)).toMatchObject([{ type, anonymousId: 'a1', event: 'Opened' }])
  })

  test('takes base64 and base64url, with and without padding, escaped or not', async () => {
    const collecting = await startCollecting()
    // In base64 this has +, / and =; its url form has - and _.
    const call = { userId: '>>>???ÿÿ~~', event: 'Opened', writeKey: 'wk_web', n: 1 }
    const text = encoded(call)
    expect(text).toMatch(/\+.*\/|\/.*\+/)
    const url = encoded(call, 'base64url')
    for (const data of [
      encodeURIComponent(text),
      text,
      text.replace(/=+$/, ''),
      url,
      `${url}${text.match(/=*$/)?.[0]}`,
    ])
      expectImage(await show(collecting, `/v1/pixel/track?data=${data}`))
    expect(bodies(collecting).map(({ userId }) => userId)).toEqual(Array(5).fill(call.userId))
  })

  test('without data nests dotted keys, and leaves numbers text', async () => {
    const collecting = await startCollecting()
    const query =
      'userId=u1&event=Opened&properties.subject=Big%20sale&properties.item.price=25&context.campaign.name=May'
    expectImage(await show(collecting, `/v1/pixel/track?${query}&writeKey=wk_web`))
    const [body] = bodies(collecting)
    expect(body).toMatchObject({ userId: 'u1', context: { campaign: { name: 'May' } } })
    expect(body).not.toHaveProperty('writeKey')
    expectImage(
      await show(
        collecting,
        '/v1/pixel/track?properties=x&properties.subject=Big%20sale&properties.item.price=25&userId=u1&event=e&writeKey=wk_web',
      ),
    )
    expect(bodies(collecting)[1].properties).toEqual({ subject: 'Big sale', item: { price: '25' } })
  })

  test('without data switches integrations on and off', async () => {
    const collecting = await startCollecting()
    const query =
      'userId=u1&event=e&integrations.All=false&integrations.CRM=true&integrations.Mail=0&properties.All=false'
    expectImage(await show(collecting, `/v1/pixel/track?${query}&writeKey=wk_web`))
    expect(bodies(collecting)).toMatchObject([
      { integrations: { All: false, CRM: true, Mail: '0' }, properties: { All: 'false' } },
    ])
  })

  test('comes from whoever looks at it, whatever the class of its source', async () => {
    const collecting = await startCollecting()
    const query = 'writeKey=wk_web&userId=u1&event=Opened'
    await show(collecting, `/v1/pixel/track?${query}`, { 'user-agent': 'mail/1' })
    expect(bodies(collecting)[0].context).toMatchObject({ ip: '127.0.0.1', userAgent: 'mail/1' })
  })

  test.each<[string, string, string]>([
    ['a missing key', '/v1/pixel/track?userId=u1&event=e', 'requests.refused no_write_key'],
    ['an unknown key', '/v1/pixel/track?writeKey=wk_no', 'requests.refused unknown_write_key'],
    ['broken base64', '/v1/pixel/track?data=%25%25&writeKey=wk_web', 'requests.refused empty_body'],
    ['broken JSON', '/v1/pixel/track?data=e30x&writeKey=wk_web', 'requests.refused invalid_json'],
    ['an unknown type', '/v1/pixel/merge?writeKey=wk_web', 'calls.rejected 1 unknown_type'],
    ['a deletion', '/v1/pixel/delete?writeKey=wk_web', 'calls.rejected 1 unknown_type'],
    ['no user', '/v1/pixel/track?writeKey=wk_web&event=e', 'calls.rejected 1 no_user_anon_id'],
    [
      'a nesting beyond all bounds',
      `/v1/pixel/track?writeKey=wk_web&userId=u&event=e&${'a.'.repeat(3_000)}b=1`,
      'calls.rejected 1 too_deep',
    ],
  ])('with %s is answered with the image, and counted', async (_what, path, counter) => {
    const collecting = await startCollecting()
    expectImage(await show(collecting, path))
    expect(collecting.counted.get(counter)).toBe(1)
    expect(collecting.log.appended).toEqual([])
  })

  test('is answered with the image while the log is away, and a HEAD appends nothing', async () => {
    const collecting = await startCollecting()
    const path = '/v1/pixel/track?writeKey=wk_web&userId=u1&event=e'
    const head = await fetch(`${collecting.url}${path}`, { method: 'HEAD' })
    expect([head.status, head.headers.get('content-type')]).toEqual([200, 'image/gif'])
    expect(collecting.log.appended).toEqual([])
    collecting.log.behave('fail')
    expectImage(await show(collecting, path))
    expect(collecting.counted.get('requests.refused log_unavailable')).toBe(1)
  })

  test('strips a key called __proto__ like any other call', async () => {
    const collecting = await startCollecting()
    const query = 'writeKey=wk_web&userId=u1&event=e&__proto__.polluted=1&properties.__proto__=2'
    await show(collecting, `/v1/pixel/track?${query}`)
    expect(collecting.log.appended).toHaveLength(1)
    expect(collecting.counted.get('calls.changed proto_key_stripped')).toBe(2)
    expect(({} as { polluted?: unknown }).polluted).toBeUndefined()
  })
})

describe('a beacon', () => {
  const batch = { batch: [{ type: 'track', userId: 'u1', event: 'e', messageId: 'm1' }] }

  test('is a batch whose key stands in the query, as plain text', async () => {
    const { post, log } = await startCollecting()
    const headers = { 'content-type': 'text/plain;charset=UTF-8' }
    const reply = await post('/beacon/v1/batch?writeKey=wk_web', batch, headers)
    expect([reply.status, reply.json]).toEqual([200, { success: true }])
    expect(log.appended.map(({ message }) => message.messageId)).toEqual(['m1'])
  })

  test('goes by the header, then the body, then the query, then its calls', async () => {
    const { post, log } = await startCollecting()
    const path = '/beacon/v1/batch?writeKey=wk_web'
    await post(path, batch, { authorization: basic('wk_site') })
    await post(path, { ...batch, writeKey: 'wk_site' }, {})
    await post(path, { batch: [{ ...batch.batch[0], writeKey: 'wk_site' }] }, {})
    expect(log.appended.map(({ message }) => message.sourceId)).toEqual([3, 3, 1])
  })

  test('is the only POST that takes a key there', async () => {
    const { post } = await startCollecting()
    for (const path of ['/v1/batch?writeKey=wk_web', '/v1/b?writeKey=wk_web'])
      expect(await post(path, batch, {})).toMatchObject({
        status: 401,
        json: { code: 'no_write_key' },
      })
  })
})
