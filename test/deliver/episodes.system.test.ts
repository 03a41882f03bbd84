// An episode of failures is told once as failing and once as recovered, though processes die in the middle of it.
import { pino } from 'pino'
import { afterEach, expect, test } from 'vitest'
import { type Alerts, openAlerts } from '../../src/deliver/alerts.ts'
import { undiciPost } from '../../src/http/undici-post.ts'
import type { Pool } from '../../src/postgres/sql.ts'
import { aDestination, aLive, to } from '../support/configuration.ts'
import { until } from '../support/until.ts'
import { useRig } from './rig.ts'

const { receiver, database } = await useRig()
const posts: ReturnType<typeof undiciPost>[] = []
const opened: Alerts[] = []
afterEach(async () => {
  for (const alerts of opened.splice(0)) await alerts.stop()
  for (const post of posts.splice(0)) await post.close()
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
  const openOne = (pool: Pool = database.pool) => {
    const post = undiciPost({ addresses: { allowPrivate: true, allowed: [] } })
    posts.push(post)
    const common = { url: operator.url, secret: 'operators', post, live, logger }
    const limits = { lookEveryMs: 10 }
    return openAlerts({ ...common, pool, clock: () => new Date(now), limits })
  }
  const open = (): Alerts => {
    const alerts = openOne()
    opened.push(alerts)
    return alerts
  }
  /** One that is gone after so many of its transactions began or ended, without a word to anybody. */
  const openMortal = (steps: number) => {
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
    return { alerts, isDead: () => left <= 0 }
  }
  const pass = (ms: number) => {
    now += ms
  }
  const told = () =>
    operator.requests.map(({ json }) => [json['type'], json['failurePercent'] ?? 0].join(' '))
  const ids = () => new Set(operator.requests.map(({ json }) => json['id']))
  return { operator, live, open, openMortal, pass, told, ids }
}

const fail = (alerts: Alerts, times: number) => {
  for (let n = 0; n < times; n += 1) alerts.answered(1, url, failed)
}
const succeed = (alerts: Alerts, times: number) => {
  for (let n = 0; n < times; n += 1) alerts.answered(1, url, delivered)
}
const rows = async () =>
  (await database.pool.query<{ owner: string; level: number; told: boolean }>(
    'select owner, level, told_at is not null as told from failing_url',
  )).rows
/** Everything before it was told: another type of alert, put after what is waited for. */
const sentinel = async (alerts: Alerts, told: () => readonly string[]) => {
  const before = told().filter((one) => one.startsWith('lag')).length
  alerts.lagging(1)
  await until(() => told().filter((one) => one.startsWith('lag')).length > before, 'the sentinel')
}

test('a process that was killed after it told of a failure leaves the recovery to the next one', async () => {
  const { open, openMortal, pass, told } = await setUp()
  const { alerts: first } = openMortal(1_000)
  fail(first, 5)
  await until(() => told().length === 1, 'it fails')
  const second = open()
  fail(second, 3)
  await sentinel(second, told)
  expect(told()).toEqual(['destination.failing 100', 'lag 0'])
  // By then it is known that the first one is gone.
  pass(61_000)
  await until(async () => (await rows()).length === 1 && (await rows())[0]?.told === true)
  succeed(second, 20)
  await until(() => told().length === 3, 'it recovered')
  expect(told()[2]).toBe('destination.recovered 0')
  expect(await rows()).toEqual([])
})
