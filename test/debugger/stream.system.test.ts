// The debugger from a call over HTTP to its watcher over HTTP: collecting, projecting and serving each on a pool of its own.
import pino from 'pino'
import { afterAll, afterEach, describe, expect, test } from 'vitest'
import { type Debugger, openDebugger } from '../../src/debugger/debugger.ts'
import { defaultSourceSettings } from '../../src/domain/configuration.ts'
import { openCodecs } from '../../src/log/avro.ts'
import { memoryLog } from '../../src/log/memory.ts'
import { openPool } from '../../src/postgres/pool.ts'
import { startProject } from '../../src/project/project.ts'
import { startTestAdmin } from '../admin/start.ts'
import { startCollecting } from '../support/collecting.ts'
import { aLive, aSource } from '../support/configuration.ts'
import { until } from '../support/until.ts'
import { type Watcher, watchSource } from './watching.ts'

const token = 'given-admin-token'
const logger = pino({ level: 'silent' })
const clock = () => new Date()

const { url, admin, databaseUrl, pool, running, lines, viewer, nobody } = await startTestAdmin()
await admin('POST', '/admin/v1/workspaces', { name: 'shop' })
await admin('POST', '/admin/v1/sources', { name: 'web', class: 'server' })
await admin('POST', '/admin/v1/sources', { name: 'off', class: 'server' })

const pools = ['collecting', 'projecting'].map((name) =>
  openPool({ url: databaseUrl, connectionsMax: 5, name }),
)
const [collecting, projecting] = await Promise.all(
  // However slow the machine is: what is lost by masking too slowly is another test's.
  pools.map((own) => openDebugger({ pool: own, clock, logger, limits: { maskMsMax: 600_000 } })),
)
if (!collecting || !projecting) throw new Error('two were opened')

const path = `${url}/admin/v1/sources/1/debugger`
const watchers: Watcher[] = []
const watching = async (query = '', lastEventId?: string) => {
  const watcher = await watchSource(
    path + query,
    lastEventId === undefined ? { token } : { token, lastEventId },
  )
  watchers.push(watcher)
  if (watcher.status === 200) await until(() => collecting.isWatched(1) && projecting.isWatched(1))
  return watcher
}
afterEach(async () => {
  for (const watcher of watchers.splice(0)) await watcher.close()
})
afterAll(async () => {
  await collecting.close()
  await projecting.close()
  for (const own of pools) await own.close()
})

const plan = {
  mode: 'block' as const,
  unplanned: 'forbid' as const,
  events: { 'Order Completed': {} },
}
const live = aLive({
  sources: [
    aSource({
      settings: {
        ...defaultSourceSettings,
        trackingPlan: plan,
        allowedOrigins: ['https://shop.example'],
      },
    }),
    aSource({ id: 2, name: 'off', writeKey: 'wk_off', enabled: false }),
  ],
})

test('all outcomes of calls are told in order, masked, whichever process knew them', async () => {
  const log = memoryLog({ clock, partitions: 1 })
  const codecs = await openCodecs({})
  const project = startProject({
    ...{ source: log.source(), codecs, pool: pools[1] ?? pool, clock, logger, live },
    debugger: projecting,
  })
  const collect = await startCollecting({
    ...{ appender: log.appender(), codecs, live, clock },
    debugger: collecting,
  })
  const watcher = await watching()
  expect(watcher.headers.get('content-type')).toBe('text/event-stream')
  expect(watcher.headers.get('cache-control')).toBe('no-store')
  const order = {
    event: 'Order Completed',
    messageId: '0199b1a2-7c1e-7b52-8d3f-1c2d3e4f5a6b',
    userId: 'jane@example.com',
    properties: { total: 12, note: 'for Jane Doe', coupon: { code: 'SPRING-4711' } },
  }
  await collect.post('/v1/track', order)
  await watcher.heard(1)
  await collect.post('/v1/track', {
    ...order,
    userId: 'jane@example.com',
    event: 7,
    messageId: 'order of jane',
  })
  await watcher.heard(2)
  await collect.post('/v1/track', { ...order, event: 'Cart Viewed', messageId: 'm-2' })
  await watcher.heard(3)
  await collect.post('/v1/track', order)
  await watcher.heard(5)
  await fetch(`${collect.url}/v1/track`, {
    method: 'POST',
    headers: { authorization: `Basic ${btoa('wk_web:')}`, origin: 'https://evil.example' },
    body: JSON.stringify(order),
  })
  await watcher.heard(6)
  await collect.post('/v1/track', '{')
  const calls = await watcher.heard(7)
  // What collect tells of a repeated call and what project does may come in either order.
  const steps = calls.map(({ step, reason, type, event }) => [step, reason, type, event])
  expect(steps.slice(0, 3)).toEqual([
    ['accepted', null, 'track', 'Order Completed'],
    ['rejected', 'event_not_string', 'track', null],
    ['filtered', 'event_not_planned', 'track', 'Cart Viewed'],
  ])
  expect(steps.slice(3, 5).toSorted()).toEqual([
    ['accepted', null, 'track', 'Order Completed'],
    ['duplicate', null, 'track', 'Order Completed'],
  ])
  expect(steps.slice(5)).toEqual([
    ['refused', 'origin_not_allowed', 'unknown', null],
    ['refused', 'invalid_json', 'unknown', null],
  ])
  expect(calls[0]).toMatchObject({
    messageId: order.messageId,
    isCut: false,
    call: {
      type: 'track',
      userId: 'ja…16',
      properties: { total: 12, note: '…12', coupon: { code: '…11' } },
      context: { library: { name: 'http', version: 'v1' } },
    },
  })
  expect(calls[1]?.messageId).toBe('or…13')
  expect(calls[2]?.call.properties).toEqual(calls[0]?.call.properties)
  expect(watcher.text()).not.toMatch(/jane|Doe|SPRING|evil/)
  expect(watcher.skipped()).toBe(0)
  expect([...lines, ...collect.lines].join('\n')).not.toMatch(/Jane|SPRING|order of/)
  await project.stop()
})

test('a call that the log did not take is told as refused, and one of a disabled source as filtered', async () => {
  const collect = await startCollecting({ live, clock, debugger: collecting })
  const watcher = await watching()
  collect.log.behave('fail')
  await collect.post('/v1/identify', { userId: 'u1' })
  const unavailable = () => watcher.calls().find(({ reason }) => reason === 'log_unavailable')
  await until(() => unavailable() !== undefined)
  expect(unavailable()).toMatchObject({ step: 'refused', type: 'identify', call: { userId: '…2' } })
  const off = await watchSource(`${url}/admin/v1/sources/2/debugger`, { token })
  watchers.push(off)
  await until(() => collecting.isWatched(2))
  await collect.post(
    '/v1/identify',
    { userId: 'u1' },
    { authorization: `Basic ${btoa('wk_off:')}` },
  )
  expect(await off.heard(1)).toMatchObject([{ step: 'filtered', reason: 'source_disabled' }])
})

test('nothing is gathered of a source that nobody watches', async () => {
  const asked: number[] = []
  let told = 0
  const counting: Debugger = {
    isWatching: () => false,
    isWatched: (sourceId) => {
      asked.push(sourceId)
      return false
    },
    tell: () => {
      told += 1
    },
  }
  const collect = await startCollecting({ live, clock, debugger: counting })
  const batch = Array.from({ length: 200 }, () => ({ type: 'identify', userId: 'u1' }))
  expect((await collect.post('/v1/batch', { batch: [...batch, 7] })).status).toBe(200)
  expect((await collect.post('/v1/batch', '{')).status).toBe(400)
  // Once a request, not once a call.
  expect(asked).toEqual([1])
  expect(told).toBe(0)
})

describe('a stream', () => {
  const tell = (...events: readonly string[]) =>
    collecting.tell(
      1,
      events.map((event) => ({
        ...{ step: 'accepted', at: Date.now(), reason: null, type: 'track', event },
        ...{
          messageId: null,
          call: { event, properties: { list: Array(20).fill('x'.repeat(50)) } },
        },
      })),
    )

  test('is for viewers, of a source that is there, by filters that are known', async () => {
    expect((await nobody('GET', '/admin/v1/sources/1/debugger')).status).toBe(401)
    expect((await viewer('GET', '/admin/v1/sources/99/debugger')).body.error.code).toBe('not_found')
    const refused = await viewer('GET', '/admin/v1/sources/1/debugger?step=lost&until=now')
    expect(
      refused.body.error.problems.map(({ path: at }: { path: string }) => at).toSorted(),
    ).toEqual(['/step', '/until'])
  })

  test('shows only what was asked for', async () => {
    const watcher = await watching('?event=Wanted&step=accepted&type=track')
    tell('Unwanted', 'Wanted', 'Unwanted')
    const calls = await watcher.heard(1)
    expect(calls.map(({ event }) => event)).toEqual(['Wanted'])
    const none = await watching('?step=duplicate&event=Wanted')
    tell('Wanted')
    await watcher.heard(2)
    expect(none.calls()).toEqual([])
  })

  test('begins with what is there and resumes after the id that was heard last', async () => {
    const first = await watching()
    tell('Resumed A', 'Resumed B')
    await until(() => first.calls().some(({ event }) => event === 'Resumed B'))
    const at = first.calls().findIndex(({ event }) => event === 'Resumed A')
    const { id } = first.events.filter(({ event }) => event === 'call')[at] ?? {}
    await first.close()
    tell('Resumed C')
    const again = await watching('', id ?? '')
    await until(() => again.calls().length === 2)
    expect(again.calls().map(({ event }) => event)).toEqual(['Resumed B', 'Resumed C'])
    expect(again.skipped()).toBe(0)
    const whole = await watching()
    await until(() => whole.calls().some(({ event }) => event === 'Resumed C'))
    expect(whole.calls().some(({ event }) => event === 'Resumed A')).toBe(true)
    const nonsense = await watching('', '12; drop')
    await until(() => nonsense.calls().length === whole.calls().length)
  })

  test('loses what a slow reader does not take, tells how much, and holds up nobody', async () => {
    const slow = await fetch(path, { headers: { authorization: `Bearer ${token}` } })
    const reader = slow.body?.getReader()
    if (!reader) throw new Error('it has a body')
    await until(() => collecting.isWatched(1))
    const quick = await watching()
    tell('The Beginning')
    await until(() => quick.calls().at(-1)?.event === 'The Beginning')
    const already = quick.events.length
    const before = process.memoryUsage().rss
    // Far more than sockets hold, in rounds that the quick one can follow.
    for (let round = 0; round < 60; round += 1) {
      tell(...Array.from({ length: 200 }, () => `Round ${round}`))
      await collecting.flush()
      await until(() => quick.events.length >= already + 200 * (round + 1))
    }
    expect(quick.skipped()).toBe(0)
    expect(process.memoryUsage().rss - before).toBeLessThan(300_000_000)
    tell('The End')
    let text = ''
    while (!text.includes('The End')) {
      const { value, done } = await reader.read()
      if (done) throw new Error('ended early')
      text += Buffer.from(value).toString()
    }
    await reader.cancel()
    const amounts = [...text.matchAll(/"skipped":(\d+)/g)].map(([, amount]) => Number(amount))
    const skipped = amounts.reduce((sum, amount) => sum + amount, 0)
    const rounds = [...text.matchAll(/^data: .*"event":"Round \d+"/gm)].length
    expect(skipped).toBeGreaterThan(0)
    expect(rounds + skipped).toBeGreaterThanOrEqual(12_000)
    expect(quick.calls().filter(({ event }) => event?.startsWith('Round'))).toHaveLength(12_000)
  })

  test('ends cleanly when the process stops', async () => {
    const watcher = await watching()
    const stopped = running.stop()
    // The deadline of the drain, which other connections may need, would have broken it off.
    expect(await watcher.ended).toBe(true)
    await stopped
    expect(watcher.text().endsWith('\n\n')).toBe(true)
    expect(lines.join('\n')).not.toContain('debugger.broken')
  })
})
