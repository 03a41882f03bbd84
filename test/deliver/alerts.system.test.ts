// Operators hear of what needs them: signed, once in an hour, retried, and never in the way of delivery.
import { createHmac } from 'node:crypto'
import { pino } from 'pino'
import { afterEach, describe, expect, test } from 'vitest'
import {
  type AlertDeps,
  type Alerts,
  type alertLimits,
  openAlerts,
} from '../../src/deliver/alerts.ts'
import { failureLevels, openFailing } from '../../src/deliver/failing.ts'
import { openMeter } from '../../src/deliver/meter.ts'
import { openPost } from '../../src/http/open-post.ts'
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
  const posts: ReturnType<typeof openPost>[] = []
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
    const post = openPost({ addresses: { allowPrivate: true, allowed: [] } })
    posts.push(post)
    const meter = openMeter()
    const alertsOf = (over: Partial<AlertDeps> = {}) => {
      const alerts = openAlerts({
        url: operator.url,
        secret: 'operators',
        post,
        pool: database.pool,
        live,
        clock: () => new Date(line.now()),
        logger: pino({ level: 'silent' }),
        meter,
        limits: { gatherMs: 20, lookEveryMs: 10, ...limits },
        ...over,
      })
      opened.push(alerts)
      return alerts
    }
    return { operator, target, line, live, alertsOf, meter }
  }
  /** What waits for a later try, or for more of its kind, waits by the line's clock. */
  const untilLater = (
    line: { now(): number; setNow(ms: number): void },
    holds: () => boolean | Promise<boolean>,
    what: string,
  ) =>
    until(async () => {
      line.setNow(line.now() + 50)
      return holds()
    }, what)
  const waiting = async () =>
    (
      await database.pool.query<{ type: string; tries: number; id: string }>(
        'select type, tries, id from alert_outbox order by type',
      )
    ).rows
  const typesOf = (requests: readonly { readonly json: Record<string, unknown> }[]) =>
    requests.map(({ json }) => json['type'])

  test('a URL that is gone, its dead message, and nothing of the message itself', async () => {
    const { operator, target, line, alertsOf } = await setUp()
    line.start({}, 5_000, { alerts: alertsOf() })
    target.reply(() => 410)
    await line.append([line.aCall({ userId: 'private-user' }, { properties: { card: '4242' } })])
    await drained(line)
    await untilLater(line, () => operator.requests.length === 2, 'two alerts')
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
    await until(async () => operator.requests.length === 2 && (await waiting()).length === 0)
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

  test('a refused alert is tried again for a day, always the same, and then given up', async () => {
    const { operator, line, alertsOf, meter } = await setUp()
    const alerts = alertsOf()
    operator.reply((_, index) => (index < 2 ? 503 : 200))
    alerts.gapFound(1)
    await untilLater(line, () => operator.requests.length === 3, 'the third try')
    const [one, two] = operator.requests
    expect(two?.body.equals(one?.body ?? Buffer.alloc(0))).toBe(true)
    operator.reply(() => 503)
    alerts.lagging(10)
    const began = line.now()
    const tries: number[] = []
    await until(async () => {
      line.setNow(line.now() + 120_000)
      for (const { tries: made } of await waiting()) tries.push(made)
      return meter.alerts.get('given_up') === 1
    }, 'it is given up')
    expect(line.now() - began).toBeGreaterThan(85_700_000)
    expect(Math.max(...tries)).toBeGreaterThan(20)
    expect(await waiting()).toEqual([])
    expect(Object.fromEntries(meter.alerts)).toEqual({ sent: 1, given_up: 1 })
    const asked = operator.requests.length
    operator.reply(() => 200)
    alerts.gapFound(2)
    await untilLater(line, () => operator.requests.length > asked, 'the next one')
    expect(typesOf(operator.requests).at(-1)).toBe('ledger.gap')
  })

  test('an operator who does not answer holds up no delivery, and no more than so many wait', async () => {
    const { operator, target, line, alertsOf, meter } = await setUp({ rowsMax: 3 })
    const { promise: answered, resolve: answer } = Promise.withResolvers<number>()
    operator.reply(() => answered)
    // However slow the machine is: it is still waited for when the rest has come.
    const limits = { answerMs: 60_000, totalMs: 60_000 }
    const patient = openPost({ addresses: { allowPrivate: true, allowed: [] }, limits })
    posts.push(patient)
    const alerts = alertsOf({ post: patient })
    line.start({}, 5_000, { alerts })
    alerts.gapFound(1)
    await until(() => operator.requests.length === 1)
    for (let n = 1; n <= 50; n += 1)
      alerts.quotaChanged({ destinationId: n, state: 'spilling', rows: 1, bytes: 1 })
    target.reply(({ json }) => (String(json['userId']).endsWith('7') ? 410 : 200))
    await line.append(Array.from({ length: 30 }, (_, n) => line.aCall({ userId: `${n}` })))
    await drained(line)
    await until(() => meter.alerts.get('dropped') === 50, 'the rest is dropped')
    expect(await waiting()).toHaveLength(3)
    expect(operator.requests).toHaveLength(1)
    expect(lines.some(({ msg }) => msg === 'desk.failed')).toBe(false)
    answer(200)
  })

  test('deaths are told with how many there were before the first try', async () => {
    const { operator, target, line, alertsOf } = await setUp({ gatherMs: 5_000 })
    const both = [alertsOf(), alertsOf()]
    for (const alerts of both) line.start({}, 5_000, { alerts })
    target.reply(() => 400)
    for (let n = 0; n < 12; n += 1) await line.append([line.aCall({ userId: `${n}` })])
    await drained(line)
    expect(typesOf(operator.requests)).not.toContain('dead_letter')
    operator.reply((_, index) => (index < 3 ? 503 : 200))
    await untilLater(
      line,
      async () => operator.requests.length > 3 && (await waiting()).length === 0,
      'it is told',
    )
    const dead = operator.requests.filter(({ json }) => json['type'] === 'dead_letter')
    expect(new Set(dead.map(({ body }) => body.toString())).size).toBe(1)
    expect(dead[0]?.json).toMatchObject({ destinationId: 1, reason: 'status_400', count: 12 })
  })

  describe('killed', () => {
    const types = (requests: readonly { readonly json: Record<string, unknown> }[]) =>
      [...new Set(typesOf(requests))].toSorted().join(' ')

    /** How many steps after it took the first one; `answer`: as soon as the operator answered. */
    type Kill = number | 'answer'

    /** A process's alerts, which are gone by then. */
    const mortalAlerts = (
      alertsOf: (over: Partial<AlertDeps>) => Alerts,
      { steps, crash }: { readonly steps: Kill; readonly crash: () => void },
    ) => {
      let left = steps === 'answer' ? Number.POSITIVE_INFINITY : steps
      let hasTaken = false
      const pass = () => {
        if (!hasTaken || left <= 0) return
        left -= 1
        if (left === 0) crash()
      }
      const step = async <R>(work: () => Promise<R>): Promise<R> => {
        pass()
        if (left <= 0) return never
        const result = await work()
        pass()
        return left <= 0 ? never : result
      }
      const post = openPost({ addresses: { allowPrivate: true, allowed: [] } })
      posts.push(post)
      const { pool } = database
      const alerts = alertsOf({
        post: (request) =>
          step(async () => {
            const result = await post(request)
            if (steps === 'answer') left = 1
            return result
          }),
        pool: {
          ...pool,
          query: (text, values) =>
            step(async () => {
              const result = await pool.query(text, values)
              hasTaken ||= result.rows.length > 0
              return result as never
            }),
          transaction: (work, options) => step(() => pool.transaction(work, options)),
        },
      })
      // It never ends, as it is gone.
      opened.splice(opened.indexOf(alerts), 1)
      return { alerts, isDead: () => left <= 0 }
    }

    test('between any two steps of telling, nothing is lost and nothing told twice but for a lost answer', async () => {
      const { operator, target, line, live, alertsOf } = await setUp()
      target.reply(() => 410)
      let repeats = 0
      let kills = 0
      // Enough to be killed before and after each: take, count, post, forget, of two alerts.
      const all: readonly Kill[] = ['answer', ...Array.from({ length: 16 }, (_, at) => at + 1)]
      for (const [at, steps] of all.entries()) {
        const id = 100 + at
        const url = `${target.url}/${id}`
        live.replace({ destinations: [aDestination({ id, webhooks: to(url) })] })
        const { alerts, isDead } = mortalAlerts(alertsOf, { steps, crash: () => life.crash() })
        const life = line.start({ urlEveryMs: 20 }, 5_000, { alerts })
        await line.append([line.aCall({ userId: `${id}` })])
        const own = () => operator.requests.filter(({ json }) => json['destinationId'] === id)
        /** Of everything that Postgres says has happened. */
        const isTold = async () => {
          const types = new Set(typesOf(own()))
          const happened = await database.pool.query<{ type: string }>(
            `select 'url.disabled' as type from webhook_url where destination_id = $1
             union select 'dead_letter' from dead where destination_id = $1`,
            [id],
          )
          return (
            happened.rows.every(({ type }) => types.has(type)) &&
            types.has('dead_letter') &&
            (await waiting()).length === 0
          )
        }
        const isDone = async () => types(own()) === 'dead_letter url.disabled' && (await isTold())
        await untilLater(line, async () => isDead() || (await isDone()), `step ${steps}`)
        // Stopping takes steps, too: the kill may come in one of them, and then nothing ends.
        if (!isDead())
          await Promise.race([life.running.stop(), until(isDead, 'a kill while stopping')])
        if (isDead()) kills += 1
        const next = alertsOf()
        const heir = line.start({ urlEveryMs: 20 }, 5_000, { alerts: next })
        await drained(line)
        line.setNow(line.now() + 31_000)
        await untilLater(line, isTold, `after a kill at step ${steps}`)
        await heir.running.stop()
        await next.stop()
        const ids = new Set(own().map(({ json }) => json['id']))
        expect(ids.size, `killed at step ${steps}`).toBe(new Set(typesOf(own())).size)
        const again = own().length - ids.size
        repeats += again
        // One process, one request at a time: one answer can be lost.
        expect(again, `killed at step ${steps}`).toBeLessThanOrEqual(1)
      }
      expect(kills).toBeGreaterThan(10)
      // The kill between the operator's answer and its being written down was among them.
      expect(repeats).toBeGreaterThan(0)
    }, 900_000)

    test('after the state is written and before anything is sent, the next process tells it', async () => {
      const { operator, target, line, alertsOf } = await setUp()
      target.reply(() => 410)
      const silent = alertsOf({ post: () => never })
      opened.splice(opened.indexOf(silent), 1)
      const first = line.start({ urlEveryMs: 20 }, 5_000, { alerts: silent })
      await line.append([line.aCall()])
      await until(async () => (await waiting()).length === 2, 'both are written')
      first.crash()
      const { rows } = await database.pool.query('select state from webhook_url')
      expect(rows).toEqual([{ state: 'disabled' }])
      line.start({ urlEveryMs: 20 }, 5_000, { alerts: alertsOf() })
      line.setNow(line.now() + 31_000)
      await untilLater(
        line,
        async () => operator.requests.length === 2 && (await waiting()).length === 0,
        'both are told',
      )
      expect(new Set(typesOf(operator.requests))).toEqual(new Set(['url.disabled', 'dead_letter']))
    })
  })
})

const never = new Promise<never>(() => undefined)
