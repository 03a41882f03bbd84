// Every call and option of the library, through each consumer, to a running Millrace: read at a webhook.
import { describe, expect } from 'vitest'
import { aMinuteAgo, expectEveryCall, freshId, once, settled } from '../clients/line.ts'
import { device } from '../support/every-call.ts'
import { until } from '../support/until.ts'
import { lineOfFile, visit, writeKey } from './line.ts'
import { consumers, type Order, phpTest } from './page.ts'
import { openForward } from './servers.ts'

const held = lineOfFile()
const collectUrl = () => held.line.collectUrl

type Who = { readonly userId: string; readonly newId: string; readonly at: string }

const everyCallOf = ({ userId, newId, at }: Who): Order['calls'] => {
  const head = { userId, timestamp: at }
  return [
    ['identify', { ...head, traits: { email: 'a@example.org', plan: 'pro' } }],
    ['track', { ...head, event: 'Order Completed', properties: { price: 9.5 } }],
    ['page', { ...head, name: 'Home', properties: { url: 'https://example.org/' } }],
    ['screen', { ...head, name: 'Cart', context: device }],
    ['group', { ...head, groupId: 'g1', traits: { 'total seats': 5 } }],
    ['alias', { userId: newId, previousId: userId, timestamp: at }],
  ]
}

const forms: readonly (readonly [string, Readonly<Record<string, unknown>>])[] = [
  ['as it is', {}],
  ['with debug', { debug: true }],
  ['with gzip', { gzip: true }],
  ['one call at a time', { batch_size: 1 }],
]
const ways = consumers.flatMap((consumer) =>
  forms.map(([form, options]) => ({ consumer, form, options })),
)

phpTest.for(ways)('every call arrives once through $consumer $form', async (way) => {
  const who = { userId: freshId('user'), newId: freshId('new'), at: aMinuteAgo() }
  const calls = everyCallOf(who)

  const { results, heard } = await visit(collectUrl(), { ...way, calls })

  expect(heard).toEqual([])
  expect(results).toEqual(calls.map(() => true))
  await expectEveryCall(held.line, { ...who, writeKey })
})

/** In the order in which they arrived, without what the test does not look at. */
const arrivedOf = async (userId: string, count: number) => {
  await until(
    () => held.line.bodiesOf(userId).length >= count,
    `${count} calls of ${userId} arrive`,
  )
  await settled(held.line, { writeKey, userId, newId: userId })
  const arrived = await once(held.line, held.line.bodiesOf(userId))
  expect(arrived).toHaveLength(count)
  return arrived
}

describe.for(consumers.map((consumer) => ({ consumer })))('through $consumer', ({ consumer }) => {
  phpTest('the integrations map chooses destinations, case and all', async () => {
    const userId = freshId('user')
    const maps = [
      [0, { All: false }],
      [1, { All: false, Webhooks: true }],
      [2, { Webhooks: false }],
      [3, { webhooks: false }],
      [4, { All: true }],
    ] as const
    const calls = maps.map(
      ([n, integrations]) =>
        ['track', { userId, event: 'Chosen', properties: { n }, integrations }] as const,
    )
    const { heard } = await visit(collectUrl(), { consumer, calls })
    expect(heard).toEqual([])
    const arrived = await arrivedOf(userId, 3)
    expect(arrived.map(({ properties }) => (properties as { n: number }).n)).toEqual([1, 3, 4])
  })

  phpTest('a past timestamp arrives as the instant it names, however it is written', async () => {
    const userId = freshId('user')
    const timestamps = [
      1_354_408_208,
      1_354_408_208.276,
      '2012-12-02T00:30:08.276Z',
      '2012-12-02T02:30:08+02:00',
    ]
    const calls = timestamps.map(
      (timestamp, n) => ['track', { userId, event: 'Past', properties: { n }, timestamp }] as const,
    )
    await visit(collectUrl(), { consumer, calls })
    const arrived = await arrivedOf(userId, 4)
    expect(arrived.map(({ timestamp }) => timestamp)).toEqual([
      '2012-12-02T00:30:08.000Z',
      '2012-12-02T00:30:08.276Z',
      '2012-12-02T00:30:08.276Z',
      '2012-12-02T00:30:08.000Z',
    ])
  })

  phpTest('a page call tells of the request that is served, and a string is its name', async () => {
    const userId = freshId('user')
    const server = {
      HTTP_HOST: 'shop.example.org',
      HTTPS: 'on',
      REQUEST_URI: '/cart?step=2',
      HTTP_REFERER: 'https://search.example.org/',
    }
    const calls: Order['calls'] = [
      ['identify', { userId }],
      ['page', 'Cart'],
      ['page', { userId, name: 'Mine', properties: { url: 'https://a/', coupon: 'X' } }],
    ]
    const { heard } = await visit(collectUrl(), { consumer, calls, server })
    expect(heard).toEqual([])
    const [, first, second] = await arrivedOf(userId, 3)
    const request = {
      path: '/cart',
      referrer: server.HTTP_REFERER,
      url: 'https://shop.example.org/cart?step=2',
    }
    expect(first?.['properties']).toEqual({ ...request, name: 'Cart', title: 'Cart' })
    expect(second?.['properties']).toEqual({
      ...request,
      ...{ url: 'https://a/', coupon: 'X', name: 'Mine', title: 'Mine' },
    })
  })

  phpTest('a call that is none costs itself alone, and the handler hears why', async () => {
    const userId = freshId('user')
    const calls: Order['calls'] = [
      ['track', { userId, event: 'First' }],
      ['track', { userId }],
      ['page', { userId, category: 'Docs' }],
      ['alias', { userId }],
      ['group', { userId }],
      ['track', 'no array'],
      ['track', { userId, event: 'Large', properties: { text: 'x'.repeat(33_000) } }],
      ['track', { userId, event: 'When', timestamp: 'tomorrow' }],
      ['track', { userId, event: 'Traits', properties: 'none' }],
      ['track', { userId, event: 'Last' }],
    ]
    const { results, heard } = await visit(collectUrl(), { consumer, calls })
    expect(heard.map(({ code }) => code)).toEqual([
      'missing_field',
      'category_without_name',
      'missing_field',
      'missing_field',
      'invalid_call',
      'call_too_large',
      'invalid_timestamp',
      'invalid_field',
    ])
    expect(results).toEqual([true, ...heard.map(() => false), true])
    const arrived = await arrivedOf(userId, 2)
    expect(arrived.map(({ event }) => event)).toEqual(['First', 'Last'])
  })

  phpTest(
    'who calls without ids is the user identified last, else a new visitor each time',
    async () => {
      const userId = freshId('user')
      const forward = await openForward(collectUrl())
      const calls: Order['calls'] = [
        ['track', { event: 'Nobody' }],
        ['track', { event: 'Nobody again' }],
        ['identify', { userId, anonymousId: 'a1' }],
        ['track', { event: 'Somebody' }],
      ]
      await visit(forward.url, { consumer, calls })
      await until(() => forward.calls().length === 4, 'four calls are sent')
      const ids = forward.calls().map((call) => [call['userId'], call['anonymousId']])
      expect(ids[0]?.[0]).toBeUndefined()
      expect(ids[0]?.[1]).toMatch(/^[0-9a-f-]{36}$/)
      expect(ids[1]?.[1]).not.toBe(ids[0]?.[1])
      expect(ids[2]).toEqual([userId, 'a1'])
      expect(ids[3]).toEqual([userId, 'a1'])
    },
  )

  phpTest('names itself and the consumer to Millrace', async () => {
    const forward = await openForward(collectUrl())
    await visit(forward.url, {
      consumer,
      calls: [['track', { userId: freshId('user'), event: 'E' }]],
    })
    await until(() => forward.calls().length === 1, 'the call is sent')
    expect(forward.calls()[0]?.['context']).toEqual({
      library: {
        name: 'millrace-php',
        version: expect.stringMatching(/^\d+\.\d+\.\d+$/),
        consumer,
      },
    })
    expect(forward.seen[0]?.headers['authorization']).toBe(
      `Basic ${Buffer.from(`${writeKey}:`).toString('base64')}`,
    )
  })
})

describe.for([{ consumer: 'lib_curl' }, { consumer: 'fork_curl' }] as const)(
  '$consumer queues and',
  ({ consumer }) => {
    /** How much is sent at once is asked here, and not how soon a busy machine answers. */
    const patient = { connect_timeout: 120, request_timeout: 120 }
    const counted = (count: number, padding = ''): Order['calls'] =>
      Array.from({ length: count }, (_, n) => [
        'track',
        { userId: `${freshId('user')}-${n}`, event: 'Counted', properties: { n, padding } },
      ])

    phpTest('sends every hundred calls, and the rest at the end of the page', async () => {
      const forward = await openForward(collectUrl())
      await visit(forward.url, { consumer, options: patient, calls: counted(250) })
      await until(() => forward.calls().length === 250, 'all are sent')
      expect(forward.seen.map((_, at) => forward.messageIds()[at]?.length).toSorted()).toEqual([
        100, 100, 50,
      ])
      expect(new Set(forward.messageIds().flat()).size).toBe(250)
    })

    phpTest('splits what would be larger than 500,000 bytes', async () => {
      const forward = await openForward(collectUrl())
      const { heard } = await visit(forward.url, {
        consumer,
        options: patient,
        calls: counted(60, 'x'.repeat(30_000)),
      })
      await until(() => forward.calls().length === 60, 'all are sent')
      expect(heard).toEqual([])
      expect(forward.seen.length).toBeLessThanOrEqual(5)
      for (const { body } of forward.seen) expect(body.byteLength).toBeLessThanOrEqual(500_000)
    })

    phpTest(
      'refuses calls over max_queue_size, tells the handler, and sends the others',
      async () => {
        const forward = await openForward(collectUrl())
        const options = { ...patient, max_queue_size: 10 }
        const { results, heard } = await visit(forward.url, {
          consumer,
          options,
          calls: counted(15),
        })
        await until(() => forward.calls().length >= 10, 'ten are sent')
        expect(results).toEqual([...Array(10).fill(true), ...Array(5).fill(false)])
        expect(heard.map(({ code }) => code)).toEqual(Array(5).fill('queue_full'))
        expect(forward.calls()).toHaveLength(10)
      },
    )
  },
)

describe('the host is', () => {
  const call: Order['calls'] = [['track', { userId: 'u1', event: 'Addressed' }]]
  const hosts = ['lib_curl', 'fork_curl', 'socket'].flatMap(
    (consumer) =>
      [
        { consumer, form: 'an address with scheme and port', of: (url: string) => ({ host: url }) },
        {
          consumer,
          form: 'an address with its path',
          of: (url: string) => ({ host: `${url}/v1/` }),
        },
        {
          consumer,
          form: 'host and port, with ssl off',
          of: (url: string) => ({ host: new URL(url).host, ssl: false }),
        },
        {
          consumer,
          form: 'an address whose scheme wins over ssl',
          of: (url: string) => ({ host: url, ssl: true }),
        },
        {
          consumer,
          form: 'the region eu',
          of: (url: string) => ({ host: 'eu', regions: { eu: `${url}/v1` } }),
        },
        {
          consumer,
          form: 'the default region, where none is named',
          of: (url: string) => ({ host: 'default', regions: { default: `${url}/v1` } }),
        },
      ] as const,
  )

  phpTest.for(hosts)('$form, for $consumer', async ({ consumer, of }) => {
    const forward = await openForward(collectUrl())
    const options = { consumer, ...of(forward.url) }
    const { heard } = await visit(forward.url, {
      consumer: consumer as 'socket',
      options,
      calls: call,
    })
    await until(() => forward.seen.length === 1, 'the call is sent')
    expect(heard).toEqual([])
    expect(forward.seen[0]?.path).toBe('/v1/batch')
  })
})
