// How URLs that fail are left alone, found well again, and come back to work.
import { readFileSync } from 'node:fs'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { enableUrl, loadStandings } from '../../src/admin/url-store.ts'
import { recoveredKeys } from '../../src/deliver/alert-about.ts'
import { aDestination, aLive, aWebhook, to } from '../support/configuration.ts'
import { until } from '../support/until.ts'
import { useRig } from './rig.ts'

const { receiver, open, rowsOf, drained, events, database } = await useRig()

const hour = 3_600_000

type Rig = ReturnType<typeof open>

const fromUsers = (rig: Rig, count: number, name = 'u') =>
  Array.from({ length: count }, (_, at) => rig.aCall({ userId: `${name}${at}` }))

const reasonsOf = async () => {
  const counts: Record<string, number> = {}
  for (const { reason } of await rowsOf('parked')) counts[reason] = (counts[reason] ?? 0) + 1
  return counts
}

/** Nothing is leased or due: whatever was to be done at this instant is done. */
const still = async (rig: Rig) => {
  let before = ''
  await until(async () => {
    const rows = await rowsOf('parked')
    const now = JSON.stringify(rows.map((row) => [row.lease_owner, row.next_at, row.attempts]))
    const isStill = now === before && rows.every(({ lease_owner }) => lease_owner === null)
    before = now
    if (!isStill) await new Promise((resolve) => setTimeout(resolve, 300))
    return isStill
  }, `nothing moves at ${rig.now()}`)
}

test('a URL that fails is left alone: what waits is parked, and one message at a time finds out', async () => {
  const hook = await receiver()
  hook.reply(() => 503)
  const rig = open(aLive({ destinations: [aDestination({ webhooks: to(hook.url) })] }))
  rig.start()
  await rig.append(fromUsers(rig, 100, 'old'))
  await drained(rig)
  const wave = hook.requests.length
  expect(wave).toBeGreaterThanOrEqual(10)
  // Its cap, and what took the places of the nine results before it opened.
  expect(wave).toBeLessThanOrEqual(29)
  expect(await reasonsOf()).toEqual({ temporary: wave, breaker_open: 100 - wave })
  expect(events).toMatchObject([{ to: { breaker: 'open' }, url: hook.url, origin: 'here' }])
  rig.setNow(rig.now() + 1_000)
  await rig.append(fromUsers(rig, 50, 'new'))
  await drained(rig)
  expect(hook.requests.length).toBe(wave)
  rig.setNow(rig.now() + 4_000)
  await until(() => hook.requests.length === wave + 1, 'a probe')
  await still(rig)
  expect(hook.requests.length).toBe(wave + 1)
  expect(hook.requests.at(-1)?.json['userId']).toMatch(/^old/)
  expect((await rowsOf('dead')).length).toBe(0)
})

test('a receiver that is back gets one message, then two, four and so on, never more than its cap', async () => {
  const hook = await receiver()
  hook.reply(() => 503)
  const webhooks = [aWebhook({ url: hook.url, concurrencyMax: 8 })]
  const rig = open(aLive({ destinations: [aDestination({ webhooks })] }))
  rig.start()
  await rig.append(fromUsers(rig, 400))
  await drained(rig)
  let atOnce = 0
  const seen: number[] = []
  hook.reply(() => {
    atOnce += 1
    seen.push(atOnce)
    return new Promise((resolve) =>
      setTimeout(() => {
        atOnce -= 1
        resolve(200)
      }, 5),
    )
  })
  // A probe answers within the real second; what failed before is due after ten.
  rig.setNow(rig.now() + 15_000)
  await until(async () => (await rowsOf('parked')).length === 0, 'all is delivered')
  expect(seen.length).toBe(400)
  seen.forEach((count, at) => {
    // The probe is the first; limit n comes after n - 1 more successes.
    expect(count, `request ${at}`).toBeLessThanOrEqual(Math.min(8, Math.max(1, at)))
  })
  expect(Math.max(...seen)).toBe(8)
  expect(events.map(({ to: { breaker } }) => breaker)).toEqual(['open', 'ramp', 'closed'])
})

test('a dead URL beside a healthy one parks nothing, and is asked again only as a probe', async () => {
  const [dead, healthy] = [await receiver(), await receiver()]
  await dead.close()
  const webhooks = to(dead.url, healthy.url)
  const rig = open(aLive({ destinations: [aDestination({ webhooks })] }))
  rig.start()
  await rig.append(fromUsers(rig, 200))
  await drained(rig)
  await until(() => healthy.requests.length === 200, 'all arrive')
  expect(await rowsOf('parked')).toEqual([])
  const asked = async () =>
    (await rowsOf('attempt')).filter(({ reason }) => reason === 'connection_refused').length
  await until(async () => (await rowsOf('attempt')).length >= 200, 'attempts are logged')
  const before = await asked()
  expect(before).toBeLessThanOrEqual(24)
  rig.setNow(rig.now() + 6_000)
  await rig.append(fromUsers(rig, 20, 'later'))
  await until(() => healthy.requests.length === 220, 'the later ones arrive')
  await until(async () => (await asked()) > before, 'the probe is logged')
  expect(await asked()).toBe(before + 1)
})

test('a slow URL beside a fast one holds back no more than its own requests', async () => {
  const [slow, fast] = [await receiver(), await receiver()]
  const answered = Promise.withResolvers<number>()
  slow.reply(() => answered.promise)
  const webhooks = [aWebhook({ url: slow.url, concurrencyMax: 3 }), aWebhook({ url: fast.url })]
  const rig = open(aLive({ destinations: [aDestination({ webhooks })] }))
  // No timeout makes room: the test gives up before.
  rig.start({}, 600_000)
  await rig.append(fromUsers(rig, 100))
  await until(() => fast.requests.length === 100, 'the fast one has all')
  expect(slow.requests.length).toBe(3)
  answered.resolve(200)
})

test('a URL that refuses everything is held, so that a bad deploy costs few messages', async () => {
  const hook = await receiver()
  hook.reply(() => 404)
  const webhooks = [aWebhook({ url: hook.url, concurrencyMax: 1 })]
  const rig = open(aLive({ destinations: [aDestination({ webhooks })] }))
  rig.start()
  await rig.append(fromUsers(rig, 60))
  await drained(rig)
  expect(hook.requests.length).toBe(20)
  expect((await rowsOf('dead')).length).toBe(20)
  expect(await reasonsOf()).toEqual({ breaker_open: 40 })
  rig.setNow(rig.now() + 60_000)
  await until(() => hook.requests.length === 21, 'a probe')
  await still(rig)
  // What a URL says that refuses everything is not held against the message.
  expect((await rowsOf('dead')).length).toBe(20)
  expect(hook.requests.length).toBe(21)
  hook.reply(() => 200)
  rig.setNow(rig.now() + 60_000)
  await until(async () => (await rowsOf('parked')).length === 0, 'the rest is delivered')
  expect(hook.requests.length).toBe(61)
  expect(events.map(({ to: { state } }) => state)).toEqual(['rejecting', 'ok'])
  await until(async () => (await storedUrls()).length === 0, 'nothing is said against it')
})

const storedUrls = async () =>
  (await database.pool.query<{ state: string; url: string }>('select * from webhook_url')).rows

test('a URL that says 410 is disabled for every process, until an operator enables it', async () => {
  const [gone, other] = [await receiver(), await receiver()]
  gone.reply(() => 410)
  const destinations = [
    aDestination({ id: 1, name: 'A', webhooks: to(gone.url) }),
    aDestination({ id: 2, name: 'B', webhooks: to(other.url) }),
  ]
  const rig = open(aLive({ destinations }))
  const life = rig.start()
  await rig.append([rig.aCall()])
  await drained(rig)
  await rig.append(fromUsers(rig, 3))
  await drained(rig)
  expect((await rowsOf('dead')).map(({ reason }) => reason)).toEqual([
    'status_410',
    'url_disabled',
    'url_disabled',
    'url_disabled',
  ])
  await until(async () => (await storedUrls()).length === 1, 'it is on record')
  expect(await storedUrls()).toMatchObject([{ state: 'disabled', url: gone.url, status: 410 }])
  await life.running.stop()
  rig.start()
  await rig.append([rig.aCall()])
  await drained(rig)
  expect(gone.requests.length).toBe(1)
  expect(other.requests.length).toBe(5)
  gone.reply(() => 200)
  await database.pool.query('delete from webhook_url')
  await until(() => events.at(-1)?.to.state === 'ok', 'the operator is heard')
  await rig.append([rig.aCall()])
  await drained(rig)
  expect(gone.requests.length).toBe(2)
})

test('a URL that was saved longer than an index takes is shared all the same, and holds up no other', async () => {
  const [gone, other] = [await receiver(), await receiver()]
  gone.reply(() => 410)
  other.reply(() => 410)
  // Nothing that Postgres could pack into less than a page's third.
  const letters = Array.from({ length: 1_300 }, (_, at) => 0x4e00 + ((at * at * 7_919) % 20_011))
  const long = `${gone.url}/${String.fromCharCode(...letters)}`
  const destinations = [
    aDestination({ id: 1, name: 'A', webhooks: to(long) }),
    aDestination({ id: 2, name: 'B', webhooks: to(other.url) }),
  ]
  const rig = open(aLive({ destinations }))
  const life = rig.start()
  await rig.append([rig.aCall()])
  await drained(rig)
  await until(async () => (await storedUrls()).length === 2, 'both are on record')
  await life.running.stop()
  rig.start()
  await rig.append([rig.aCall()])
  await drained(rig)
  expect([gone.requests.length, other.requests.length]).toEqual([1, 1])
  const standings = { destinationId: 1, urls: [long], at: new Date(rig.now()) }
  expect(await loadStandings(database.pool, standings)).toMatchObject([{ state: 'disabled' }])
  gone.reply(() => 200)
  expect(await enableUrl(database.pool, { destinationId: 1, url: long })).toBe(true)
  await until(() => events.at(-1)?.to.state === 'ok', 'the operator is heard')
  expect(events.at(-1)?.url).toBe(long)
  expect((await storedUrls()).map(({ url }) => url)).toEqual([other.url])
  // Alerts are looked up by such keys.
  for (const key of recoveredKeys(1, long)) expect(key.length).toBeLessThan(2_700)
})

const pem = (name: string) => readFileSync(new URL(`../http/tls/${name}`, import.meta.url), 'utf8')

const openTls = async () => {
  const seen = { connections: 0, requests: 0 }
  const sockets = new Set<{ destroy(): void }>()
  const server = createServer(
    { cert: pem('self.crt'), key: pem('self.key') },
    (request, answer) => {
      seen.requests += 1
      request.resume().on('end', () => answer.end())
    },
  )
  server.on('connection', (socket) => {
    seen.connections += 1
    sockets.add(socket)
    socket.on('error', () => undefined)
  })
  await new Promise<void>((resolve) => server.listen(0, 'localhost', resolve))
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  return {
    url: `https://localhost:${(server.address() as AddressInfo).port}/hook`,
    seen,
    repair: () => server.setSecureContext({ cert: pem('leaf.crt'), key: pem('leaf.key') }),
  }
}

test('a self-signed certificate holds its URL: no handshake for a message, one a minute to look', async () => {
  const hook = await openTls()
  const webhooks = [aWebhook({ url: hook.url, ca: pem('ca.crt') })]
  const rig = open(aLive({ destinations: [aDestination({ webhooks })] }))
  const life = rig.start()
  await rig.append([rig.aCall()])
  await drained(rig)
  expect(await rowsOf('dead')).toMatchObject([{ reason: 'tls_self_signed', attempts: 1 }])
  await until(async () => (await storedUrls()).length === 1, 'it is on record')
  const handshakes = hook.seen.connections
  await life.running.stop()
  rig.start()
  await rig.append(fromUsers(rig, 20))
  await drained(rig)
  const dead = await rowsOf('dead')
  expect(dead.length).toBe(21)
  expect(new Set(dead.map(({ reason }) => reason))).toEqual(new Set(['tls_self_signed']))
  expect(hook.seen).toEqual({ connections: handshakes, requests: 0 })
  rig.setNow(rig.now() + 60_000)
  await until(() => hook.seen.connections > handshakes, 'a look at it')
  expect((await storedUrls()).length).toBe(1)
  hook.repair()
  rig.setNow(rig.now() + 60_000)
  await until(() => events.at(-1)?.to.state === 'ok', 'it is well')
  expect(hook.seen.requests).toBe(0)
  await rig.append([rig.aCall()])
  await drained(rig)
  expect(hook.seen.requests).toBe(1)
  expect((await rowsOf('dead')).length).toBe(21)
})

test('with its breaker open for four hours each message gets one try just before, and none after', async () => {
  const state = { now: 0 }
  const hook = await receiver('secret', () => state.now)
  hook.reply(() => 503)
  const webhooks = [aWebhook({ url: hook.url, concurrencyMax: 4 })]
  const rig = open(aLive({ destinations: [aDestination({ webhooks })] }))
  const turn = (ms: number) => {
    state.now = ms
    rig.setNow(ms)
  }
  const start = rig.now()
  turn(start)
  rig.start()
  await rig.append(fromUsers(rig, 12, 'first'))
  await drained(rig)
  const held = fromUsers(rig, 60, 'held')
  await rig.append(held)
  await drained(rig)
  const before = hook.requests.length
  expect(await reasonsOf()).toMatchObject({ breaker_open: expect.any(Number) })
  turn(start + 4 * hour - 10_001)
  await still(rig)
  const probed = new Set(hook.requests.slice(before).map(({ json }) => json['userId']))
  const from = hook.requests.length
  hook.atOnceMax = 0
  turn(start + 4 * hour - 7_500)
  await still(rig)
  turn(start + 4 * hour - 5_000)
  await until(async () => (await rowsOf('parked')).length === 0, 'all are given up')
  const last = hook.requests.slice(from)
  const tried = new Set(last.map(({ json }) => json['userId']))
  expect(hook.atOnceMax).toBeLessThanOrEqual(4)
  for (const { userId } of held) expect(tried.has(userId) || probed.has(userId)).toBe(true)
  expect((await rowsOf('dead')).length).toBe(72)
  expect(new Set((await rowsOf('dead')).map(({ reason }) => reason))).toEqual(new Set(['expired']))
  expect((await rowsOf('dead')).every(({ attempts }) => attempts >= 1)).toBe(true)
  for (const { at } of last) expect(at).toBeLessThanOrEqual(start + 4 * hour)
})

test('a URL gets no more requests a second than its operator allows', async () => {
  const hook = await receiver()
  const webhooks = [aWebhook({ url: hook.url, requestsPerSecondMax: 10 })]
  const rig = open(aLive({ destinations: [aDestination({ webhooks })] }))
  rig.start()
  await rig.append(fromUsers(rig, 6))
  for (let count = 1; count <= 6; count += 1) {
    await until(() => hook.requests.length === count, `${count} requests`)
    rig.setNow(rig.now() + 50)
    await new Promise((resolve) => setTimeout(resolve, 100))
    expect(hook.requests.length).toBe(count)
    rig.setNow(rig.now() + 50)
  }
  await drained(rig)
})

test('retries leave most of the rounds to first tries', async () => {
  const [sick, healthy] = [await receiver(), await receiver()]
  sick.reply(() => 503)
  const destinations = Array.from({ length: 9 }, (_, at) =>
    aDestination({ id: at + 1, name: `S${at}`, webhooks: to(`${sick.url}/${at}`) }),
  )
  const last = aDestination({ id: 10, name: 'H', webhooks: to(healthy.url) })
  const rig = open(aLive({ destinations: [...destinations, last] }), { limits: { roundsMax: 10 } })
  rig.start({}, 9_500)
  await rig.append(fromUsers(rig, 4))
  await drained(rig)
  expect((await rowsOf('parked')).length).toBe(36)
  sick.reply(() => 'hang')
  const before = sick.requests.length
  rig.setNow(rig.now() + 10_000)
  await until(() => sick.requests.length === before + 4, 'retries have their share')
  await rig.append(fromUsers(rig, 50, 'more').map((call) => ({ ...call, body: onlyHealthy })))
  await until(() => healthy.requests.length === 54, 'first tries go on')
  expect(sick.requests.length).toBe(before + 4)
  sick.reply(() => 200)
})

const onlyHealthy = Buffer.from(
  JSON.stringify({ properties: {}, integrations: { All: false, H: true } }),
)
