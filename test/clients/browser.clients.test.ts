// Published browser SDKs in Chromium, told nothing but the host: their settings, preflights, batches and last words.
import { afterAll, beforeAll, describe, expect, inject, onTestFinished, test } from 'vitest'
import { type Driven, type Order, scriptOf, startDriver } from './driver.ts'
import {
  aMinuteAgo,
  type Chain,
  expectEveryCall,
  expectEveryFault,
  expectNumbers,
  freshId,
  type Line,
  openLine,
  proxyTo,
  settled,
  unsteadyProxyTo,
} from './line.ts'

const { node, chromium } = inject('runtimes')
const writeKey = freshId('wk')
/** Of a source that takes one call a second. */
const limitedKey = freshId('wk')
const authorization = `Basic ${Buffer.from(`${writeKey}:`).toString('base64')}`
let line: Line

beforeAll(async () => {
  line = await openLine(freshId('browsers'), [
    { name: 'web', class: 'web', writeKey },
    { name: 'limited', class: 'web', writeKey: limitedKey, callsPerSecondMax: 1 },
  ])
})

afterAll(() => line.close())

const runs = test.skipIf(node === null || chromium === null)

type Visit = Partial<Pick<Order, 'writeKey'>> &
  Omit<Order, 'writeKey' | 'host' | 'kind' | 'userId'> &
  Pick<Order, 'host' | 'kind' | 'userId'>

const visit = async (order: Visit): Promise<Driven> => {
  const command = [node ?? '', scriptOf('browser/drive.mjs')]
  const driven = await startDriver(command, { writeKey, chromium, ...order })
  onTestFinished(driven.finish)
  return driven
}

const visitorOf = ({ outcome }: Driven, chain: Omit<Chain, 'anonymousId'>): Chain => ({
  ...chain,
  anonymousId: outcome['anonymousId'] as string,
})

/** What the SDKs add to a page call. */
const segmentPage = { path: '/segment', referrer: '', search: '', title: 'Shop' }
const rudderPage = {
  path: '/rudder',
  search: '',
  title: 'Shop',
  tab_url: expect.stringMatching(/^http:.*\/rudder$/),
  referrer: '$direct',
  referring_domain: '',
  initial_referrer: '$direct',
  initial_referring_domain: '',
}

const newVisitor = () => ({ writeKey, userId: freshId('u'), newId: freshId('n') })

describe('analytics-next 1.84.3', () => {
  runs('loads its settings and sends each call on a route of its own', async () => {
    const proxy = await proxyTo(line)
    const wanted = { ...newVisitor(), at: aMinuteAgo() }
    const visited = await visit({ host: proxy.url, page: 'segment', kind: 'every', ...wanted })
    expect(visited.outcome).toMatchObject({ sent: 6, errors: [] })
    await expectEveryCall(line, { ...visitorOf(visited, wanted), at: wanted.at, page: segmentPage })
    const asked = (method: string) =>
      proxy.requests.filter((request) => request.method === method).map(({ path }) => path)
    expect(asked('GET')).toEqual([`/v1/projects/${writeKey}/settings`])
    expect(asked('POST').toSorted()).toEqual(['/v1/a', '/v1/g', '/v1/i', '/v1/p', '/v1/s', '/v1/t'])
    // Its address is ours to say; a page has no say in it.
    expect(line.bodiesOf(wanted.userId).find(({ type }) => type === 'screen')).toMatchObject({
      context: { ip: '127.0.0.1', userAgent: expect.stringContaining('Chrome/') },
    })
    // One preflight for each, because each carries its key as Basic authentication.
    expect(asked('OPTIONS').toSorted()).toEqual(asked('POST').toSorted())
    for (const { headers } of proxy.posts())
      expect(headers).toMatchObject({ authorization, 'content-type': 'text/plain' })
    // Nothing went to anybody else.
    for (const request of visited.outcome['requests'] as string[])
      expect(request).toContain(` ${proxy.url}/`)
  })

  runs('sends batches', async () => {
    const proxy = await proxyTo(line)
    const wanted = { ...newVisitor(), at: aMinuteAgo() }
    const strategy = { strategy: 'batching', config: { size: 6 } }
    const order = { host: proxy.url, page: 'segment', kind: 'every', strategy, ...wanted }
    const visited = await visit(order)
    expect(visited.outcome).toMatchObject({ sent: 6, errors: [] })
    await expectEveryCall(line, { ...visitorOf(visited, wanted), at: wanted.at, page: segmentPage })
    expect(proxy.posts().map(({ path }) => path)).toEqual(['/v1/b'])
  })

  runs.each(['navigate', 'hide'] as const)(
    'sends what it holds when the page goes: %s',
    async (leave) => {
      const proxy = await proxyTo(line)
      const visitor = newVisitor()
      const strategy = { strategy: 'batching', config: { size: 1_000, timeout: 3_600_000 } }
      const count = 20
      const order = { host: proxy.url, page: 'segment', kind: 'many', strategy, count, leave }
      const visited = await visit({ ...order, ...visitor })
      expect(visited.outcome.errors).toEqual([])
      await expectNumbers(line, visitorOf(visited, visitor), leave === 'hide' ? count + 1 : count)
      expect(proxy.posts().map(({ path }) => path)).toEqual(
        leave === 'hide' ? ['/v1/b', '/v1/b'] : ['/v1/b'],
      )
    },
  )

  runs('sends from the next page what nobody took while the last one was open', async () => {
    const proxy = await proxyTo(line)
    const visitor = newVisitor()
    const count = 5
    const order = { host: proxy.url, page: 'segment', kind: 'many', count, leave: 'navigate' }
    proxy.setDown(true)
    const visited = await visit({ ...order, ...visitor })
    expect(visited.outcome).toMatchObject({ sent: count + 1, errors: [] })
    expect(proxy.posts().length).toBeGreaterThan(count)
    proxy.setDown(false)
    visited.say({ ...order, ...visitor, kind: 'load' })
    await expectNumbers(line, visitorOf(visited, visitor), count)
  })

  runs('sends what was called before its snippet had loaded', async () => {
    const visitor = newVisitor()
    const visited = await visit({
      host: line.collectUrl,
      page: 'snippet',
      kind: 'every',
      ...visitor,
    })
    expect(visited.outcome).toMatchObject({ sent: 2, errors: [] })
    await settled(line, visitorOf(visited, visitor))
    const early = line.bodies().filter(({ event }) => event === 'Before Load')
    expect(early.map(({ properties }) => properties)).toEqual([{ visitor: visitor.userId }])
  })
})

describe('a source over its quota', () => {
  runs('tells a page how long to wait', async () => {
    const userId = freshId('u')
    const host = line.collectUrl
    const order = { host, page: 'segment', kind: 'limited', userId, leave: 'stay' }
    const { outcome } = await visit({ ...order, writeKey: limitedKey })
    expect(outcome).toMatchObject({ errors: [], answer: { success: false } })
    expect(Number(outcome['retryAfter'])).toBeGreaterThanOrEqual(1)
    expect(Number(outcome['retryAfter'])).toBeLessThanOrEqual(300)
    expect(Number(outcome['reset'])).toBeGreaterThanOrEqual(1)
  })

  runs('gets every call of a page all the same, later', async () => {
    const visitor = { ...newVisitor(), writeKey: limitedKey }
    const count = 5
    const order = { host: line.collectUrl, page: 'segment', kind: 'many', count, isLimited: true }
    const { outcome, ...driven } = await visit({ ...order, ...visitor })
    expect(outcome).toMatchObject({ sent: count + 1, errors: [] })
    const posts = (outcome['requests'] as string[]).filter((request) => request.startsWith('POST'))
    expect(posts.length - (outcome['tries'] as number)).toBeGreaterThan(count + 1)
    await expectNumbers(line, visitorOf({ outcome, ...driven }, visitor), count)
  })
})

describe('rudder analytics-js 3.34.1', () => {
  runs.each([false, true])('delivers every kind of call once (beacon: %s)', async (beacon) => {
    const proxy = await proxyTo(line)
    const wanted = { ...newVisitor(), at: aMinuteAgo() }
    const order = { host: proxy.url, page: 'rudder', kind: 'every', beacon, leave: 'stay' }
    const visited = await visit({ ...order, ...wanted })
    expect(visited.outcome).toMatchObject({ sent: 5, errors: [] })
    await expectEveryCall(line, {
      ...visitorOf(visited, wanted),
      at: wanted.at,
      page: rudderPage,
      hasScreen: false,
    })
    const paths = proxy.posts().map(({ path }) => path)
    expect(paths.toSorted()).toEqual(
      beacon
        ? [`/beacon/v1/batch?writeKey=${writeKey}`]
        : ['/v1/alias', '/v1/group', '/v1/identify', '/v1/page', '/v1/track'],
    )
    for (const request of visited.outcome['requests'] as string[])
      expect(request).toContain(` ${proxy.url}/`)
  })
})

describe.each(['segment', 'rudder'])('when one request in a hundred of %s fails', (page) => {
  runs('each call is delivered once', async () => {
    const proxy = await unsteadyProxyTo(line)
    const visitor = newVisitor()
    const count = 300
    const visited = await visit({ host: proxy.url, page, kind: 'many', count, ...visitor })
    expect(visited.outcome).toMatchObject({ sent: count + 1, errors: [] })
    expectEveryFault(proxy)
    await expectNumbers(line, visitorOf(visited, visitor), count)
  })
})
