// An episode of failures is told once as failing and once as recovered, though processes die in the middle of it.
import { pino } from 'pino'
import { afterAll, afterEach, expect, test } from 'vitest'
import { type Alerts, openAlerts } from '../../src/deliver/alerts.ts'
import { openPost } from '../../src/http/open-post.ts'
import { openPool } from '../../src/postgres/pool.ts'
import type { Pool } from '../../src/postgres/sql.ts'
import { aDestination, aLive, to } from '../support/configuration.ts'
import { openPostgresProxy } from '../support/postgres-proxy.ts'
import { seed } from '../support/seed.ts'
import { seeded } from '../support/seeded.ts'
import { until } from '../support/until.ts'
import { useRig } from './rig.ts'

const { receiver, database } = await useRig()
const posts: ReturnType<typeof openPost>[] = []
const opened: Alerts[] = []
afterEach(async () => {
  for (const alerts of opened.splice(0)) await alerts.stop()
  for (const post of posts.splice(0)) await post.close()
})

const proxy = await openPostgresProxy(database.url)
const lossy = openPool({ url: proxy.url, connectionsMax: 5, name: 'test' })
afterAll(async () => {
  await lossy.close()
  await proxy.close()
})

const hour = 3_600_000
const url = 'http://crm.test/hook'
const never = new Promise<never>(() => undefined)
const result = {
  ...{ status: null, durationMs: 1, head: '', reused: false },
  phases: { dnsMs: null, connectMs: null, tlsMs: null, firstByteMs: null, totalMs: 1 },
}
const failed = {
  ...result,
  answer: {
    ...{ type: 'temporary' as const, reason: 'status_503', status: 503, retryAfterMs: null },
  },
}
const delivered = { ...result, answer: { type: 'delivered' as const } }

const setUp = async () => {
  const operator = await receiver('operators')
  let now = Date.UTC(2024, 0, 1)
  const live = aLive({ destinations: [aDestination({ webhooks: to(url) })] })
  const logger = pino({ level: 'silent' })
  const meter = { alerts: new Map<string, number>() }
  const openOne = (pool: Pool = database.pool) => {
    const post = openPost({ addresses: { allowPrivate: true, allowed: [] } })
    posts.push(post)
    const common = { url: operator.url, secret: 'operators', post, live, logger, meter }
    const limits = { lookEveryMs: 10 }
    return openAlerts({ ...common, pool, clock: () => new Date(now), limits })
  }
  const open = (pool?: Pool): Alerts => {
    const alerts = openOne(pool)
    opened.push(alerts)
    return alerts
  }
  /** One that is gone, at the latest after so many of its transactions began or ended, without a word to anybody. */
  const openMortal = (steps = Number.POSITIVE_INFINITY) => {
    let left = steps
    const step = async <R>(work: () => Promise<R>): Promise<R> => {
      left -= 1
      if (left <= 0) return never
      const done = await work()
      left -= 1
      return left <= 0 ? never : done
    }
    const { pool } = database
    const alerts = openOne({
      ...pool,
      query: (text, values) => (left <= 0 ? never : pool.query(text, values)),
      transaction: (work, options) => step(() => pool.transaction(work, options)),
    })
    const kill = () => {
      left = 0
    }
    return { alerts, isDead: () => left <= 0, kill }
  }
  const pass = (ms: number) => {
    now += ms
  }
  /** One whose answer was lost comes again under its id. */
  const told = () => {
    const byId = new Map(operator.requests.map(({ json }) => [json['id'], json]))
    return [...byId.values()].map((json) => [json['type'], json['failurePercent'] ?? 0].join(' '))
  }
  const time = () => new Date(now)
  return { operator, live, meter, open, openMortal, pass, time, told }
}

const fail = (alerts: Alerts, times: number, to = url) => {
  for (let n = 0; n < times; n += 1) alerts.answered(idOf(to), to, failed)
}
const succeed = (alerts: Alerts, times: number, to = url) => {
  for (let n = 0; n < times; n += 1) alerts.answered(idOf(to), to, delivered)
}
const idOf = (to: string): number => Number(/\d+$/.exec(to)?.[0] ?? 1)
const rows = async () =>
  (
    await database.pool.query<{ owner: string; level: number; told: boolean }>(
      'select owner, level, told_at is not null as told from failing_url',
    )
  ).rows
/** Everything before it was told: another type of alert, put after what is waited for. */
const sentinel = async (alerts: Alerts, told: () => readonly string[]) => {
  const before = told().filter((one) => one.startsWith('lag')).length
  alerts.lagging(1)
  await until(() => told().filter((one) => one.startsWith('lag')).length > before, 'the sentinel')
}

test('a process that was killed after it told of a failure leaves the recovery to the next one', async () => {
  const { open, openMortal, pass, told } = await setUp()
  const first = openMortal()
  fail(first.alerts, 5)
  await until(() => told().length === 1, 'it fails')
  const [before] = await rows()
  first.kill()
  const second = open()
  fail(second, 10)
  await sentinel(second, told)
  expect(told()).toEqual(['destination.failing 100', 'lag 0'])
  // By then it is known that the first one is gone.
  pass(61_000)
  await until(
    async () => (await rows()).every(({ owner }) => owner !== before?.owner),
    'it is taken over',
  )
  expect(await rows()).toMatchObject([{ level: 100, told: true }])
  succeed(second, 20)
  await until(() => told().length === 3, 'it recovered')
  expect(told()[2]).toBe('destination.recovered 0')
  expect(await rows()).toEqual([])
})

test('a URL that is well when the next process begins is told to have recovered, once', async () => {
  const { open, openMortal, pass, told } = await setUp()
  const first = openMortal()
  fail(first.alerts, 5)
  await until(() => told().length === 1, 'it fails')
  first.kill()
  pass(61_000)
  const both = [open(), open()]
  await until(async () => {
    for (const alerts of both) succeed(alerts, 1)
    return told().includes('destination.recovered 0')
  }, 'it recovered')
  for (const alerts of both) succeed(alerts, 20)
  for (const alerts of both) await alerts.stop()
  expect(told()).toEqual(['destination.failing 100', 'destination.recovered 0'])
})

test('one that stops by itself hands over at once', async () => {
  const { open, told, pass } = await setUp()
  const first = open()
  fail(first, 5)
  await until(() => told().length === 1, 'it fails')
  await first.stop()
  const second = open()
  pass(10_000)
  await until(async () => {
    succeed(second, 1)
    return told().length === 2
  }, 'it recovered')
  expect(told()).toEqual(['destination.failing 100', 'destination.recovered 0'])
})

test('of two processes the last one that finds it well says so', async () => {
  const { open, told } = await setUp()
  const [one, other] = [open(), open()]
  fail(one, 5)
  await until(() => told().length === 1, 'it fails')
  fail(other, 5)
  await until(async () => (await rows()).length === 2, 'both find it')
  succeed(one, 20)
  await until(async () => (await rows()).length === 1, 'one finds it well')
  await sentinel(one, told)
  expect(told()).toEqual(['destination.failing 100', 'lag 0'])
  succeed(other, 20)
  await until(() => told().includes('destination.recovered 0'), 'both find it well')
  expect(await rows()).toEqual([])
})

test('what fails again within the hour is told after it, where it still fails then', async () => {
  const { open, told, pass } = await setUp()
  const alerts = open()
  const levels = ['50', '70', '90', '100'].map((level) => `destination.failing ${level}`)
  const again = [...levels, 'destination.recovered 0']
  succeed(alerts, 20)
  fail(alerts, 20)
  succeed(alerts, 20)
  await until(() => told().length === 5, 'an episode')
  pass(hour / 2)
  fail(alerts, 20)
  succeed(alerts, 20)
  fail(alerts, 20)
  await sentinel(alerts, told)
  expect(told().toSorted()).toEqual([...again, 'lag 0'].toSorted())
  expect(await rows()).toMatchObject([{ told: false }])
  pass(hour / 2 + 1)
  await until(() => told().length === 7, 'it is told again')
  expect(told().at(-1)).toBe('destination.failing 100')
  succeed(alerts, 20)
  await until(() => told().length === 8, 'it recovered')
  expect(told().at(-1)).toBe('destination.recovered 0')
  expect(await rows()).toEqual([])
})

test('URLs that differ in their query alone are told as one, and hold up nobody', async () => {
  const { open, told, pass } = await setUp()
  const alerts = open()
  const all = [`${url}/other`, `${url}?t=a`, `${url}?t=b`]
  // While the first is written, the other two come to wait for the same transaction.
  for (const each of all) fail(alerts, 5, each)
  pass(1)
  await sentinel(alerts, told)
  expect(told()).toEqual(['destination.failing 100', 'destination.failing 100', 'lag 0'])
  expect(await rows()).toMatchObject(all.map(() => ({ level: 100, told: true })))
  for (const each of all) succeed(alerts, 20, each)
  await until(() => told().length === 5, 'they recovered')
  expect(told().slice(3)).toEqual(['destination.recovered 0', 'destination.recovered 0'])
  expect(await rows()).toEqual([])
})

test(`a URL that Postgres refuses is dropped, and holds up nobody (seed ${seed})`, async () => {
  const { open, meter, told, pass } = await setUp()
  const alerts = open()
  const random = seeded(seed)
  const letters = Array.from({ length: 2_000 }, () => 0x4e00 + Math.floor(random() * 0x5000))
  const all = [`${url}/first`, `${url}/${String.fromCodePoint(...letters)}`, `${url}/third`]
  for (const each of all) fail(alerts, 5, each)
  pass(1)
  await sentinel(alerts, told)
  expect(told()).toEqual(['destination.failing 100', 'destination.failing 100', 'lag 0'])
  expect(meter.alerts.get('dropped')).toBe(1)
  for (const each of all) succeed(alerts, 20, each)
  await until(() => told().length === 5, 'they recovered')
  expect(told().slice(3)).toEqual(['destination.recovered 0', 'destination.recovered 0'])
  expect(await rows()).toEqual([])
})

test('what a process that is gone never told takes nothing from those who told of it', async () => {
  const { open, openMortal, pass, time, told } = await setUp()
  const earlier = open()
  const half = (alerts: Alerts) => {
    succeed(alerts, 10)
    fail(alerts, 10)
  }
  half(earlier)
  succeed(earlier, 20)
  await until(() => told().length === 2, 'an episode before')
  await earlier.stop()
  pass(hour / 2)
  const first = openMortal()
  // Told within the hour, so not again.
  half(first.alerts)
  await until(async () => (await rows()).length === 1, 'it is known')
  const [untold] = await rows()
  expect(untold).toMatchObject({ level: 50, told: false })
  const second = open()
  succeed(second, 3)
  fail(second, 7)
  await until(() => told().at(-1) === 'destination.failing 70', 'another one tells more')
  first.kill()
  // The second one looked just now; the first one is silent for too long when the third one comes.
  pass(55_000)
  const seen = async () => {
    const { rows } = await database.pool.query('select from failing_watch where seen_at = $1', [
      time(),
    ])
    return rows.length
  }
  await until(async () => (await seen()) === 1, 'the second one watches')
  pass(6_000)
  open()
  await until(
    async () => (await rows()).every(({ owner }) => owner !== untold?.owner),
    'what the first one said is taken over',
  )
  expect(await rows()).toMatchObject([{ level: 70, told: true }])
  succeed(second, 20)
  await until(() => told().length === 4, 'it recovered')
  expect(told().at(-1)).toBe('destination.recovered 0')
  expect(await rows()).toEqual([])
})

test('what was taken over by a commit that was not answered is told as recovered', async () => {
  const { open, openMortal, pass, told } = await setUp()
  const first = openMortal()
  fail(first.alerts, 5)
  await until(() => told().length === 1, 'it fails')
  const [before] = await rows()
  first.kill()
  pass(61_000)
  let commits = 0
  proxy.loseCommits(() => {
    commits += 1
    return commits === 1
  })
  const second = open(lossy)
  await until(
    async () => (await rows()).every(({ owner }) => owner !== before?.owner),
    'it is taken over',
  )
  await until(async () => {
    succeed(second, 1)
    return told().length === 2
  }, 'it recovered')
  expect(told()).toEqual(['destination.failing 100', 'destination.recovered 0'])
  expect(commits).toBeGreaterThan(1)
})

test('killed before or after any of its transactions, an episode is told once', async () => {
  const { operator, live, open, openMortal, pass } = await setUp()
  let kills = 0
  for (let steps = 1; steps <= 12; steps += 1) {
    // Each has a URL of its own: the same one would be told once an hour.
    const own = `${url}/${steps}`
    live.replace({ destinations: [aDestination({ id: steps, webhooks: to(own) })] })
    const told = () => operator.requests.filter(({ json }) => json['destinationId'] === steps)
    const typesTold = () => told().map(({ json }) => json['type'])
    const mortal = openMortal(steps)
    fail(mortal.alerts, 5, own)
    await until(() => mortal.isDead() || typesTold().length === 1, `${steps}: it fails`)
    if (!mortal.isDead()) succeed(mortal.alerts, 20, own)
    await until(() => mortal.isDead() || typesTold().length === 2, `${steps}: it recovered`)
    if (mortal.isDead()) kills += 1
    else mortal.kill()
    pass(61_000)
    const heir = open()
    const isOver = typesTold().includes('destination.recovered')
    if (!isOver) {
      fail(heir, 5, own)
      await until(() => typesTold().includes('destination.failing'), `${steps}: it is told`)
      await until(async () => {
        succeed(heir, 1, own)
        return typesTold().includes('destination.recovered') && (await rows()).length === 0
      }, `${steps}: it recovered after a kill`)
    }
    await heir.stop()
    const ids = new Set(told().map(({ json }) => json['id']))
    expect(new Set(typesTold()).size, `killed at step ${steps}`).toBe(2)
    expect(ids.size, `killed at step ${steps}`).toBe(2)
    expect(await rows(), `killed at step ${steps}`).toEqual([])
  }
  expect(kills).toBeGreaterThan(3)
}, 300_000)
