// Operators hear of what needs them: signed, once in an hour, retried, and never in the way of delivery.
import { createHmac } from 'node:crypto'
import { pino } from 'pino'
import { afterEach, describe, expect, test } from 'vitest'
import { type Alerts, type alertLimits, openAlerts } from '../../src/deliver/alerts.ts'
import { failureLevels, openFailing } from '../../src/deliver/failing.ts'
import { undiciPost } from '../../src/http/undici-post.ts'
import { aDestination, aLive, to } from '../support/configuration.ts'
import { until } from '../support/until.ts'
import { useRig } from './rig.ts'

test('a level of failure is reached once on the way up, and recovery is told once', () => {
  const failing = openFailing()
  const note = (outcomes: string) =>
    [...outcomes].map((outcome) => failing.note(1, 'http://a.test', outcome === 'x'))
  // Four answers say nothing; at the fifth all have failed.
  expect(note('xxxxx')).toEqual([null, null, null, null, 100])
  expect(note('xxx')).toEqual([null, null, null])
  expect(note('................').filter((level) => level !== null)).toEqual([0])
  expect(note('....................').filter((level) => level !== null)).toEqual([])
  const levels = note('xxxxxxxxxxxxxxxxxxxx').filter((level) => level !== null)
  expect(levels).toEqual([...failureLevels])
  expect(failing.note(2, 'http://a.test', true)).toBeNull()
})

const unanswered = {
  ...{ status: null, durationMs: 1, head: '', reused: false },
  phases: { dnsMs: null, connectMs: null, tlsMs: null, firstByteMs: null, totalMs: 1 },
}

describe('alerts', async () => {
  const { open, receiver, database, drained, lines } = await useRig()
  const posts: ReturnType<typeof undiciPost>[] = []
  const opened: Alerts[] = []
  afterEach(async () => {
    for (const alerts of opened.splice(0)) await alerts.stop()
    for (const post of posts.splice(0)) await post.close()
  })

  const setUp = async (limits: Partial<typeof alertLimits> = {}) => {
    const operator = await receiver('operators')
    const target = await receiver()
    const hook = `${target.url}?token=t0ps3cret`
    const live = aLive({ destinations: [aDestination({ webhooks: to(hook) })] })
    const line = open(live, { partitions: 1 })
    const post = undiciPost({ addresses: { allowPrivate: true, allowed: [] } })
    posts.push(post)
    const alertsOf = () => {
      const alerts = openAlerts({
        url: operator.url,
        secret: 'operators',
        post,
        sql: database.pool,
        live,
        clock: () => new Date(line.now()),
        logger: pino({ level: 'silent' }),
        limits: { gatherMs: 20, pausesMs: [0, 10, 20], ...limits },
      })
      opened.push(alerts)
      return alerts
    }
    return { operator, target, line, alertsOf }
  }
  const typesOf = (requests: readonly { readonly json: Record<string, unknown> }[]) =>
    requests.map(({ json }) => json['type'])

  test('a URL that is gone, its dead message, and nothing of the message itself', async () => {
    const { operator, target, line, alertsOf } = await setUp()
    line.start({}, 5_000, { alerts: alertsOf() })
    target.reply(() => 410)
    await line.append([line.aCall({ userId: 'private-user' }, { properties: { card: '4242' } })])
    await drained(line)
    await until(() => operator.requests.length === 2, 'two alerts')
    expect(operator.badSignatures).toEqual([])
    const gone = operator.requests.find(({ json }) => json['type'] === 'url.disabled')
    expect(gone?.json).toEqual({
      ...{ version: 1, id: expect.stringMatching(/^[0-9a-f-]{36}$/), type: 'url.disabled' },
      ...{ timestamp: '2024-01-01T00:00:00.000Z', workspaceId: 1, destinationId: 1 },
      ...{ destination: 'Webhooks', url: target.url, reason: 'status_410', status: 410 },
    })
    const dead = operator.requests.find(({ json }) => json['type'] === 'dead_letter')
    expect(dead?.json).toMatchObject({ destinationId: 1, reason: 'status_410', count: 1 })
    const sent = Buffer.concat(operator.requests.map(({ body }) => body)).toString('utf8')
    for (const secret of ['private-user', '4242', 't0ps3cret']) expect(sent).not.toContain(secret)
    const [first] = operator.requests
    expect(first?.headers['x-signature']).toBe(
      createHmac('sha1', 'operators')
        .update(first?.body ?? '')
        .digest('hex'),
    )
  })

  test('the same thing is told once an hour, whatever the number of processes', async () => {
    const { operator, line, alertsOf } = await setUp()
    const both = [alertsOf(), alertsOf()]
    for (const alerts of both) for (let n = 0; n < 5; n += 1) alerts.gapFound(7)
    for (const alerts of both) alerts.lagging(10)
    await until(() => operator.requests.length === 2)
    line.setNow(line.now() + 3_500_000)
    for (const alerts of both) alerts.gapFound(8)
    line.setNow(line.now() + 200_000)
    for (const alerts of both) alerts.gapFound(9)
    await until(() => operator.requests.length >= 3)
    for (const alerts of both) await alerts.stop()
    expect(typesOf(operator.requests).toSorted()).toEqual(['lag', 'ledger.gap', 'ledger.gap'])
  })

  test('failing and recovered are told by the share of answers', async () => {
    const { operator, target, line, alertsOf } = await setUp()
    line.start({}, 5_000, { alerts: alertsOf() })
    const send = async (calls: number, status: number) => {
      target.reply(() => status)
      for (let n = 0; n < calls; n += 1) await line.append([line.aCall({ userId: `${n}` })])
      await drained(line)
    }
    await send(10, 200)
    await send(10, 400)
    await until(() => operator.requests.some(({ json }) => json['failurePercent'] === 50))
    await send(17, 200)
    await until(() => typesOf(operator.requests).includes('destination.recovered'))
    const told = operator.requests.filter(({ json }) => json['type'] !== 'dead_letter')
    expect(typesOf(told)).toEqual(['destination.failing', 'destination.recovered'])
    expect(told[0]?.json).toMatchObject({ url: target.url, status: 400, reason: 'status_400' })
  })

  test('what this machine could not send says nothing of a URL', async () => {
    const { operator, target, alertsOf } = await setUp()
    const alerts = alertsOf()
    const failed = (reason: string) => {
      const answer = { type: 'temporary' as const, reason, status: null, retryAfterMs: null }
      alerts.answered(1, target.url, { ...unanswered, answer })
    }
    for (let n = 0; n < 20; n += 1) failed('local_resources')
    for (let n = 0; n < 5; n += 1) failed('timeout')
    await until(() => operator.requests.length === 1)
    expect(operator.requests[0]?.json).toMatchObject({ failurePercent: 100, reason: 'timeout' })
  })

  test('a quota of parked rows is told when it begins, when it brakes and when it is over', async () => {
    const { operator, target, line, alertsOf } = await setUp()
    const quotas = { parkedRowsMax: 10, parkedRowsHardMax: 30, quotaEveryMs: 10 }
    line.start(quotas, 5_000, { alerts: alertsOf() })
    const told = () => typesOf(operator.requests).filter((type) => String(type).startsWith('quota'))
    target.reply(() => 503)
    await line.append(Array.from({ length: 15 }, (_, n) => line.aCall({ userId: `${n}` })))
    await until(() => told().length === 1, 'the quota begins')
    await line.append(Array.from({ length: 45 }, (_, n) => line.aCall({ userId: `${15 + n}` })))
    await until(() => told().length === 2, 'the quota brakes')
    target.reply(() => 200)
    await until(() => {
      line.setNow(line.now() + 1_000)
      return told().includes('quota.free')
    }, 'the quota ends')
    expect(told().slice(0, 2)).toEqual(['quota.spilling', 'quota.braked'])
    const first = operator.requests.find(({ json }) => json['type'] === 'quota.spilling')
    expect(first?.json).toMatchObject({ destinationId: 1, destination: 'Webhooks', workspaceId: 1 })
    expect(first?.json['parkedRows']).toBeGreaterThanOrEqual(10)
    expect(operator.badSignatures).toEqual([])
  })

  test('a refused alert is tried again a few times and then given up', async () => {
    const { operator, alertsOf } = await setUp()
    const alerts = alertsOf()
    operator.reply((_, index) => (index < 2 ? 503 : 200))
    alerts.gapFound(1)
    await until(() => operator.requests.length === 3)
    operator.reply(() => 503)
    alerts.lagging(10)
    await until(() => operator.requests.length === 6)
    operator.reply(() => 200)
    alerts.died(1, 'status_400')
    await until(() => typesOf(operator.requests).includes('dead_letter'))
    expect(typesOf(operator.requests)).toEqual([
      ...['ledger.gap', 'ledger.gap', 'ledger.gap', 'lag', 'lag', 'lag', 'dead_letter'],
    ])
    const [one, two] = operator.requests
    expect(two?.body.equals(one?.body ?? Buffer.alloc(0))).toBe(true)
  })

  test('an operator who does not answer holds up no delivery, and no more than the queue waits', async () => {
    const { operator, target, line, alertsOf } = await setUp({ queueMax: 3 })
    operator.reply(() => 'hang')
    const alerts = alertsOf()
    line.start({}, 5_000, { alerts })
    alerts.gapFound(1)
    await until(() => operator.requests.length === 1)
    for (let n = 0; n < 50; n += 1) alerts.lagging(n)
    await line.append(Array.from({ length: 30 }, (_, n) => line.aCall({ userId: `${n}` })))
    await drained(line)
    expect(target.requests).toHaveLength(30)
    expect(operator.requests).toHaveLength(1)
    expect(lines.some(({ msg }) => msg === 'desk.failed')).toBe(false)
  })
})
