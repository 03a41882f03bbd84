// Published server-side clients, unchanged but for their host: what their applications call is what a webhook receives.
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest'
import { drive, type Order, type Outcome, scriptOf } from './driver.ts'
import {
  aMinuteAgo,
  expectEveryCall,
  expectEveryFault,
  expectNumbers,
  freshId,
  type Line,
  openLine,
  proxyTo,
  unsteadyProxyTo,
} from './line.ts'
import { pythonVersions } from './setup.ts'

const { node, python, go } = inject('runtimes')
const writeKey = freshId('wk')
let line: Line

beforeAll(async () => {
  line = await openLine(freshId('servers'), [{ name: 'server', class: 'server', writeKey }])
})

afterAll(() => line.close())

type Client = {
  readonly name: string
  /** `null` where it cannot run. */
  readonly command: readonly string[] | null
  /** Header of every request it makes. */
  readonly headers: Readonly<Record<string, unknown>>
  readonly options?: Pick<Order, 'gzip'>
}

const script = (runtime: string | null | undefined, path: string) =>
  runtime === null || runtime === undefined ? null : [runtime, scriptOf(path)]

const basic = { authorization: `Basic ${Buffer.from(`${writeKey}:`).toString('base64')}` }
const gzipped = { 'content-encoding': 'gzip' }

const clients: readonly Client[] = [
  { name: 'analytics-node 3.1.0', command: script(node, 'node/segment.mjs'), headers: basic },
  {
    name: 'rudder-sdk-node 3.0.13',
    command: script(node, 'node/rudder.mjs'),
    headers: { ...basic, ...gzipped, 'content-type': 'application/x-www-form-urlencoded' },
  },
  {
    name: 'rudder-sdk-node 3.0.13 without gzip',
    command: script(node, 'node/rudder.mjs'),
    headers: { ...basic, 'content-encoding': undefined },
    options: { gzip: false },
  },
  ...pythonVersions.flatMap((version): Client[] => {
    const command = script(python[version], 'python/drive.py')
    // The older one names its source in the body only.
    const headers = { authorization: version === '2.3.4' ? undefined : basic.authorization }
    return [
      { name: `analytics-python ${version}`, command, headers },
      {
        name: `analytics-python ${version} with gzip`,
        command,
        headers: { ...headers, ...gzipped },
        options: { gzip: true },
      },
    ]
  }),
  { name: 'analytics-go 3.3.0', command: go === null ? null : [go], headers: basic },
]

describe.each(clients)('$name', ({ command, headers, options }) => {
  const runs = (order: Omit<Order, 'writeKey'>): Promise<Outcome> =>
    drive(command ?? [], { writeKey, ...options, ...order } as Order)

  test.skipIf(command === null)('delivers every kind of call once', async () => {
    const proxy = await proxyTo(line)
    const wanted = { writeKey, userId: freshId('u'), newId: freshId('n'), at: aMinuteAgo() }
    const outcome = await runs({ host: proxy.url, kind: 'every', ...wanted })
    expect(outcome).toMatchObject({ sent: 6, errors: [] })
    await expectEveryCall(line, wanted)
    expect(proxy.posts().length).toBeGreaterThan(0)
    for (const post of proxy.posts()) {
      expect(post.path).toBe('/v1/batch')
      expect({ ...noHeaders(headers), ...post.headers }).toMatchObject(headers)
    }
  })

  test.skipIf(command === null)(
    'delivers each call once though one request in a hundred fails',
    async () => {
      const proxy = await unsteadyProxyTo(line)
      const chain = { writeKey, userId: freshId('u'), newId: freshId('n') }
      const count = 300
      const outcome = await runs({ host: proxy.url, kind: 'many', count, ...chain })
      const printed = outcome.printed.slice(-2_000)
      expect(outcome, printed).toMatchObject({ sent: count, errors: [] })
      expectEveryFault(proxy)
      await expectNumbers(line, chain, count)
    },
  )
})

const noHeaders = (headers: Readonly<Record<string, unknown>>) =>
  Object.fromEntries(Object.keys(headers).map((name) => [name, undefined]))

describe.each(pythonVersions)('analytics-python %s', (version) => {
  const command = script(python[version], 'python/drive.py')

  test.skipIf(command === null)(
    'reads why a batch is refused for good, and sends it once',
    async () => {
      const proxy = await proxyTo(line)
      const outcome = await drive(command ?? [], {
        host: proxy.url,
        writeKey,
        kind: 'bomb',
        userId: freshId('u'),
        gzip: true,
      })
      expect(outcome.errors).toEqual([
        { kind: 'APIError', code: 'request_too_large', status: 400, calls: 10 },
      ])
      expect(outcome.printed).not.toContain('KeyError')
      expect(proxy.posts()).toHaveLength(1)
    },
  )

  test.skipIf(command === null)('reads that nobody has its write key, and sends once', async () => {
    const proxy = await proxyTo(line)
    const userId = freshId('u')
    const outcome = await drive(command ?? [], {
      host: proxy.url,
      writeKey: freshId('nobody'),
      kind: 'every',
      userId,
      newId: freshId('n'),
      at: aMinuteAgo(),
    })
    expect(outcome.errors).toEqual([
      { kind: 'APIError', code: 'unknown_write_key', status: 401, calls: 6 },
    ])
    expect(proxy.posts()).toHaveLength(1)
    expect(line.bodiesOf(userId)).toEqual([])
  })
})
