import { expect, test } from 'vitest'
import { aDestination, aLive, aSource, aWebhook, to } from '../support/configuration.ts'
import { until } from '../support/until.ts'
import { anOutbound, useRig } from './rig.ts'

const { receiver, open, rowsOf, drained, lines, database } = await useRig()

test('a call of every type arrives signed, with the body its table gives', async () => {
  const hook = await receiver()
  const rig = open(aLive({ destinations: [aDestination({ webhooks: to(hook.url) })] }))
  rig.start()
  const timestamp = '2024-01-01T00:00:00.000Z'
  await rig.append([
    rig.aCall({ type: 'identify' }, { traits: { plan: 'pro' } }),
    rig.aCall({ type: 'track', event: 'Paid' }, { properties: { price: 5 } }),
    rig.aCall({ type: 'page' }, { name: 'Home', properties: { path: '/' } }),
    rig.aCall({ type: 'screen' }, { name: 'Main', context: { app: { name: 'Shop' } } }),
    rig.aCall({ type: 'group', groupId: 'g1' }, { traits: { plan: 'x' } }),
    rig.aCall({ type: 'alias', previousId: 'anon' }),
  ])
  await until(() => hook.requests.length === 6, 'all six arrive')
  expect(hook.requests.map(({ body }) => body.toString())).toEqual([
    `{"version":1,"type":"identify","userId":"u1","timestamp":"${timestamp}","traits":{"plan":"pro"}}`,
    `{"version":1,"type":"track","userId":"u1","timestamp":"${timestamp}","properties":{"price":5},"event":"Paid"}`,
    `{"version":1,"type":"page","userId":"u1","timestamp":"${timestamp}","properties":{"path":"/","name":"Home"}}`,
    `{"version":1,"type":"screen","userId":"u1","timestamp":"${timestamp}","name":"Main","context":{"app":{"name":"Shop"}}}`,
    `{"version":1,"type":"group","userId":"u1","timestamp":"${timestamp}","traits":{"plan":"x"},"groupId":"g1"}`,
    `{"version":1,"type":"alias","timestamp":"${timestamp}","Previous ID":"anon","User ID":"u1"}`,
  ])
  expect(hook.badSignatures).toEqual([])
  await drained(rig)
})

test('without a shared secret there is no signature; static headers come along', async () => {
  const hook = await receiver(null)
  const webhooks = [
    aWebhook({ url: hook.url, headers: { 'X-Team': 'growth', 'content-type': 'text/plain' } }),
  ]
  const rig = open(aLive({ destinations: [aDestination({ sharedSecret: null, webhooks })] }))
  rig.start()
  await rig.append([rig.aCall()])
  await until(() => hook.requests.length === 1, 'it arrives')
  expect(hook.badSignatures).toEqual([])
  expect(hook.requests[0]?.headers).toMatchObject({
    'x-team': 'growth',
    'content-type': 'application/json',
  })
})

test('of five URLs any one success settles the message, and nothing is sent again', async () => {
  const hooks = await Promise.all(Array.from({ length: 5 }, () => receiver()))
  hooks.forEach((hook, at) => {
    hook.reply(() => [500, 404, 200, 'reset', 503][at] as number)
  })
  const webhooks = to(...hooks.map(({ url }) => url))
  const rig = open(aLive({ destinations: [aDestination({ webhooks })] }))
  rig.start()
  await rig.append([rig.aCall()])
  await drained(rig)
  await until(async () => (await rowsOf('attempt')).length === 5, 'five attempts are logged')
  rig.setNow(rig.now() + 3_600_000)
  await rig.append([rig.aCall()])
  await until(() => hooks.every(({ requests }) => requests.length === 2), 'the next one arrives')
  expect(await rowsOf('parked')).toEqual([])
  expect(await rowsOf('dead')).toEqual([])
})

test('what fails for a time is parked and sent again with the same bytes, to URLs not refusing it', async () => {
  const [busy, refusing] = [await receiver(), await receiver()]
  busy.reply((_request, index) => (index === 0 ? 503 : 200))
  refusing.reply(() => 410)
  const webhooks = to(busy.url, refusing.url)
  const rig = open(aLive({ destinations: [aDestination({ webhooks })] }))
  rig.start()
  await rig.append([rig.aCall()])
  await drained(rig)
  expect(await rowsOf('parked')).toMatchObject([
    { reason: 'temporary', attempts: 1, last_reason: 'status_503', final_urls: [refusing.url] },
  ])
  expect(busy.requests.length).toBe(1)
  rig.setNow(rig.now() + 10_000)
  await until(async () => (await rowsOf('parked')).length === 0, 'it is delivered')
  expect(busy.requests.length).toBe(2)
  expect(busy.requests[0]?.body.equals(busy.requests[1]?.body as Buffer)).toBe(true)
  expect(busy.badSignatures).toEqual([])
  expect(refusing.requests.length).toBe(1)
  expect(await rowsOf('dead')).toEqual([])
})

test('what every URL refuses is dead with its reason, and the next message goes on', async () => {
  const hook = await receiver()
  hook.reply((_request, index) => (index === 0 ? 422 : 200))
  const rig = open(aLive({ destinations: [aDestination({ webhooks: to(hook.url) })] }))
  rig.start()
  const [first, second] = [rig.aCall(), rig.aCall()]
  await rig.append([first, second])
  await drained(rig)
  expect(hook.requests.length).toBe(2)
  expect(await rowsOf('parked')).toEqual([])
  const [dead, ...others] = await rowsOf('dead')
  expect(others).toEqual([])
  expect(dead).toMatchObject({ reason: 'status_422', status: 422, message_id: first.messageId })
  expect(dead?.body?.equals(hook.requests[0]?.body as Buffer)).toBe(true)
})

test('a redirect is final: the body is never sent elsewhere', async () => {
  const [hook, elsewhere] = [await receiver(), await receiver()]
  hook.reply(() => ({ status: 302, headers: { location: elsewhere.url } }))
  const rig = open(aLive({ destinations: [aDestination({ webhooks: to(hook.url) })] }))
  rig.start()
  await rig.append([rig.aCall()])
  await drained(rig)
  expect(await rowsOf('dead')).toMatchObject([{ reason: 'redirect' }])
  expect(elsewhere.requests).toEqual([])
})

test('a timeout is logged with destination and host, without body or secret, and tried again', async () => {
  const hook = await receiver()
  hook.reply((_request, index) => (index === 0 ? 'hang' : 200))
  const webhooks = to(`${hook.url}?token=hidden`)
  const rig = open(aLive({ destinations: [aDestination({ webhooks })] }))
  rig.start({}, 200)
  await rig.append([rig.aCall()])
  await drained(rig)
  const { host } = new URL(hook.url)
  expect(lines.filter(({ msg }) => msg === 'attempt.timed_out')).toMatchObject([
    { level: 40, destinationId: 1, host },
  ])
  rig.setNow(rig.now() + 10_000)
  await until(async () => (await rowsOf('parked')).length === 0, 'it is delivered')
  expect(hook.requests.length).toBe(2)
  const attempts = await until(
    async () => (await rowsOf('attempt')).length === 2,
    'two attempts are logged',
  ).then(() => rowsOf('attempt'))
  expect(attempts).toMatchObject([{ reason: 'timeout', url: hook.url }, { outcome: 'delivered' }])
  expect(JSON.stringify(lines)).not.toMatch(/hidden|secret|Order Completed/)
})

test('each destination takes what its integrations name and historical switch allow', async () => {
  const [crm, other, fresh] = [await receiver(), await receiver(), await receiver()]
  const destinations = [
    aDestination({ id: 1, name: 'CRM', webhooks: to(crm.url) }),
    aDestination({ id: 2, name: 'Other', webhooks: to(other.url) }),
    aDestination({ id: 3, name: 'Fresh', historical: false, webhooks: to(fresh.url) }),
  ]
  const rig = open(aLive({ destinations }))
  rig.start()
  const named = (messageId: string, integrations: object, timestamp = rig.now()) =>
    rig.aCall({ messageId, event: messageId, timestamp }, { integrations })
  await rig.append([
    named('all', {}),
    named('only-crm', { All: false, CRM: true }),
    named('nobody', { Webhooks: false }),
    named('not-other', { Other: false }),
    named('old', {}, rig.now() - 86_400_001),
  ])
  await drained(rig)
  const eventsOf = ({ requests }: typeof crm) => requests.map(({ json }) => json['event'])
  expect(eventsOf(crm)).toEqual(['all', 'only-crm', 'not-other', 'old'])
  expect(eventsOf(other)).toEqual(['all', 'old'])
  expect(eventsOf(fresh)).toEqual(['all', 'not-other'])
})

test('of an import a destination whose historical switch is off takes what is not of the past', async () => {
  const [all, fresh, lenient] = [await receiver(), await receiver(), await receiver()]
  const day = 86_400_000
  const off = { historical: false }
  const destinations = [
    aDestination({ id: 1, name: 'All', webhooks: to(all.url) }),
    aDestination({ id: 2, name: 'Fresh', ...off, webhooks: to(fresh.url) }),
    aDestination({
      ...{ id: 3, name: 'Lenient', ...off, historicalAfterMs: 30 * day },
      webhooks: to(lenient.url),
    }),
  ]
  const rig = open(aLive({ destinations }))
  rig.start()
  const ages = { 'a year': 365 * day, 'a week': 7 * day, 'a day': day, 'an hour': 3_600_000 }
  const calls = Object.entries(ages).map(([event, age]) =>
    rig.aCall({ messageId: event, event, timestamp: rig.now() - age }),
  )
  await rig.append(calls, 'calls.import')
  await drained(rig)
  const eventsOf = ({ requests }: typeof all) => requests.map(({ json }) => json['event'])
  expect(eventsOf(all)).toEqual(Object.keys(ages))
  expect(eventsOf(fresh)).toEqual(['a day', 'an hour'])
  expect(eventsOf(lenient)).toEqual(['a week', 'a day', 'an hour'])
})

test('calls of a source without destinations, and deletion requests, pass by', async () => {
  const hook = await receiver()
  const sources = [aSource(), aSource({ id: 2, writeKey: 'wk_2' })]
  const rig = open(aLive({ sources, destinations: [aDestination({ webhooks: to(hook.url) })] }))
  rig.start()
  const calls = [rig.aCall({ sourceId: 2 }), rig.aCall({ type: 'delete' }), rig.aCall()]
  await rig.append(calls)
  await drained(rig)
  expect(hook.requests.length).toBe(1)
})

test('a call sent twice by its client is posted once', async () => {
  const hook = await receiver()
  const rig = open(aLive({ destinations: [aDestination({ webhooks: to(hook.url) })] }))
  rig.start()
  const call = rig.aCall()
  await rig.append([call, call])
  await rig.append([call, rig.aCall()])
  await drained(rig)
  expect(hook.requests.length).toBe(2)
})

test('what a relay appended twice is posted once, also after a restart', async () => {
  const hook = await receiver()
  const rig = open(aLive({ destinations: [aDestination({ webhooks: to(hook.url) })] }))
  const life = rig.start()
  const [first, second, third] = [1, 2, 3].map((seq) => anOutbound({ seq }))
  if (!first || !second || !third) throw new Error('three')
  await rig.appendOutbound([first, second, first, second])
  await drained(rig)
  await life.running.stop()
  rig.start()
  await rig.appendOutbound([second, third])
  await drained(rig)
  expect(hook.requests.length).toBe(3)
  expect(hook.badSignatures).toEqual([])
  // Without relay coordinates nothing is taken for a repetition.
  await rig.appendOutbound([anOutbound({ shard: -1, seq: 0 }), anOutbound({ shard: -1, seq: 0 })])
  await drained(rig)
  expect(hook.requests.length).toBe(5)
})

test('a hanging destination does not hold up another', async () => {
  const [hanging, healthy] = [await receiver(), await receiver()]
  const answered = Promise.withResolvers<number>()
  hanging.reply(() => answered.promise)
  const destinations = [
    aDestination({ id: 1, name: 'A', webhooks: to(hanging.url) }),
    aDestination({ id: 2, name: 'B', webhooks: to(healthy.url) }),
  ]
  const rig = open(aLive({ destinations }), { limits: { laneMax: 20, roundsPerLaneMax: 2 } })
  // No timeout of the hanging one frees anything: the test gives up before.
  rig.start({}, 600_000)
  const users = Array.from({ length: 200 }, (_, at) => `u${at}`)
  await rig.append(users.map((userId) => rig.aCall({ userId })))
  await until(() => healthy.requests.length === 200, 'all arrive at the healthy one')
  expect(hanging.atOnceMax).toBeLessThanOrEqual(2)
  const parked = await rowsOf('parked')
  expect(parked.length).toBeGreaterThan(100)
  expect(parked.every(({ reason, body_id }) => reason === 'lane_full' && body_id === null)).toBe(
    true,
  )
  hanging.reply(() => 200)
  answered.resolve(503)
  await drained(rig)
  await until(
    async () => (await rowsOf('parked')).every((row) => row.attempts === 1),
    'the rest is delivered',
  )
  const got = new Set(hanging.requests.map(({ json }) => json['userId']))
  expect(got.size).toBe(200)
})

test('what waits for a hanging destination does not stand before the first message of another', async () => {
  const [hanging, healthy] = [await receiver(), await receiver()]
  hanging.reply(() => 'hang')
  const destinations = [
    aDestination({ id: 1, name: 'A', sourceIds: new Set([1]), webhooks: to(hanging.url) }),
    aDestination({ id: 2, name: 'B', sourceIds: new Set([2]), webhooks: to(healthy.url) }),
  ]
  const sources = [aSource({ id: 1 }), aSource({ id: 2, name: 'Other', writeKey: 'wk_2' })]
  const limits = { laneMax: 20, roundsPerLaneMax: 2 }
  const rig = open(aLive({ sources, destinations }), { limits, partitions: 1 })
  rig.start({}, 9_500)
  const users = Array.from({ length: 200 }, (_, at) => `u${at}`)
  await rig.append(users.map((userId) => rig.aCall({ userId })))
  await rig.append([rig.aCall({ sourceId: 2 })])
  await until(() => healthy.requests.length === 1, 'it arrives at the healthy one')
  // Two of 200 have timed out by then, at most: it is not those that made room.
  expect(hanging.requests.length).toBeLessThanOrEqual(4)
  hanging.reply(() => 200)
})

test('a destination switched off or deleted while messages are parked cancels them', async () => {
  const hook = await receiver()
  hook.reply(() => 500)
  const live = aLive({ destinations: [aDestination({ webhooks: to(hook.url) })] })
  const rig = open(live)
  rig.start()
  await rig.append([rig.aCall(), rig.aCall()])
  await drained(rig)
  expect((await rowsOf('parked')).length).toBe(2)
  live.replace({ destinations: [aDestination({ enabled: false })] })
  await until(async () => (await rowsOf('dead')).length === 2, 'both are given up')
  expect(await rowsOf('dead')).toMatchObject([{ reason: 'cancelled' }, { reason: 'cancelled' }])
  expect(await rowsOf('parked')).toEqual([])
})

test('URL, secret and headers are read at each try', async () => {
  const [old, moved] = [await receiver('old'), await receiver('new')]
  old.reply(() => 500)
  const live = aLive({
    destinations: [aDestination({ sharedSecret: 'old', webhooks: to(old.url) })],
  })
  const rig = open(live)
  rig.start()
  await rig.append([rig.aCall()])
  await drained(rig)
  live.replace({ destinations: [aDestination({ sharedSecret: 'new', webhooks: to(moved.url) })] })
  rig.setNow(rig.now() + 10_000)
  await until(async () => (await rowsOf('parked')).length === 0, 'it is delivered')
  expect(old.requests.length + moved.requests.length).toBe(2)
  expect([...old.badSignatures, ...moved.badSignatures]).toEqual([])
})

test('imports are delivered too', async () => {
  const hook = await receiver()
  const rig = open(aLive({ destinations: [aDestination({ webhooks: to(hook.url) })] }))
  rig.start()
  const old = rig.now() - 400 * 86_400_000
  const calls = Array.from({ length: 250 }, (_, at) =>
    rig.aCall({ userId: `u${at}`, timestamp: old }),
  )
  await rig.append(calls, 'calls.import')
  await drained(rig)
  expect(hook.requests.length).toBe(250)
})

test('the counters of the positions add up to the pairs consumed', async () => {
  const hook = await receiver()
  hook.reply((request) =>
    request.json['userId'] === 'bad' ? 400 : request.json['userId'] === 'ill' ? 500 : 200,
  )
  const rig = open(aLive({ destinations: [aDestination({ webhooks: to(hook.url) })] }))
  rig.start()
  const one = rig.aCall()
  await rig.append([
    one,
    one,
    rig.aCall({ userId: 'bad' }),
    rig.aCall({ userId: 'ill' }),
    rig.aCall({}, { integrations: { All: false } }),
  ])
  await drained(rig)
  const { rows } = await database.pool.query<{ state: Buffer; next: bigint }>(
    "select state, next from position where reader = 'deliver' and topic = 'calls'",
  )
  const { decodeState } = await import('../../src/deliver/position-state.ts')
  const sums = { delivered: 0n, parked: 0n, dead: 0n, filtered: 0n, duplicate: 0n }
  for (const { state, next } of rows) {
    const { counters } = decodeState(state, Number(next))
    for (const key of Object.keys(sums) as (keyof typeof sums)[]) sums[key] += counters[key]
  }
  expect(sums).toEqual({ delivered: 1n, parked: 1n, dead: 1n, filtered: 1n, duplicate: 1n })
})

test('a message that cannot be sent is dead at once, and its partition goes on', async () => {
  const hook = await receiver()
  const rig = open(aLive({ destinations: [aDestination({ webhooks: to(hook.url) })] }))
  rig.start()
  await rig.append([rig.aCall({ body: Buffer.from('{') }), rig.aCall()])
  await rig.appendOutbound([
    anOutbound({ seq: 1, body: Buffer.from('{"a": 1}') }),
    anOutbound({ seq: 2 }),
  ])
  await drained(rig)
  expect(hook.requests.length).toBe(2)
  expect(await rowsOf('dead')).toMatchObject([{ reason: 'internal' }, { reason: 'internal' }])
})

test('what was parked by its coordinates is read again, or is dead once the log forgot it', async () => {
  const hook = await receiver()
  const rig = open(aLive({ destinations: [aDestination({ webhooks: to(hook.url) })] }), {
    partitions: 1,
  })
  const life = rig.start()
  await rig.append([rig.aCall(), rig.aCall()])
  await drained(rig)
  await life.running.stop()
  await database.pool.query(
    `insert into parked (topic, partition, log_offset, destination_id, chain, message_id, type, reason,
       parked_at, next_at)
     select 'calls', 0, at, 1, at, 'm', 'track', 'lane_full', $1, $1 from generate_series(0, 1) as at`,
    [new Date(rig.now())],
  )
  rig.log.truncate('calls', 0, 1n)
  rig.start()
  await until(async () => (await rowsOf('parked')).length === 0, 'both are settled')
  expect(await rowsOf('dead')).toMatchObject([{ reason: 'log_expired', log_offset: 0n }])
  expect(hook.requests.length).toBe(3)
  expect(hook.requests[2]?.body.equals(hook.requests[1]?.body as Buffer)).toBe(true)
})
