// Order switched off, and order suspended because it holds up too much.
import { expect, test } from 'vitest'
import { aDestination, aLive, aWebhook, to } from '../support/configuration.ts'
import { until } from '../support/until.ts'
import { useRig } from './rig.ts'

const { receiver, open, rowsOf, drained, lines, database } = await useRig()

const minute = 60_000

/** Turns the clock until nothing is parked any more, never while a lease runs or something is due. */
const untilUnparked = (rig: ReturnType<typeof open>) =>
  until(async () => {
    const rows = await rowsOf('parked')
    const now = rig.now()
    const isBusy = rows.some(
      ({ lease_owner, next_at }) => lease_owner !== null || (next_at && next_at.getTime() <= now),
    )
    if (!isBusy) rig.setNow(now + 10_000)
    return rows.length === 0
  }, 'nothing is parked')

const eventsOf = (requests: readonly { readonly json: Record<string, unknown> }[]) =>
  requests.map(({ json }) => json['event'])

test('where order is switched off, nothing waits for a message that failed', async () => {
  const hook = await receiver()
  hook.reply(({ json }) => (json['event'] === 'sick' ? 503 : 200))
  const rig = open(
    aLive({ destinations: [aDestination({ order: 'none', webhooks: to(hook.url) })] }),
  )
  const life = rig.start()
  await rig.append(['sick', 'e2', 'e3'].map((event) => rig.aCall({ event })))
  await drained(rig)
  expect(eventsOf(hook.requests).sort()).toEqual(['e2', 'e3', 'sick'])
  expect(await rowsOf('parked')).toMatchObject([{ reason: 'temporary', attempts: 1 }])
  // Nor after a restart.
  await life.running.stop()
  rig.start()
  await rig.append([rig.aCall({ event: 'e4' })])
  await drained(rig)
  expect(eventsOf(hook.requests).at(-1)).toBe('e4')
  hook.reply(() => 200)
  rig.setNow(rig.now() + 10_000)
  await until(async () => (await rowsOf('parked')).length === 0, 'the sick one is delivered')
  expect(hook.requests.length).toBe(5)
})

test('where order is switched off, one visitor is sent for as fast as anybody', async () => {
  const hook = await receiver()
  hook.reply(() => until(() => hook.atOnceMax > 5).then(() => 200))
  const rig = open(
    aLive({ destinations: [aDestination({ order: 'none', webhooks: to(hook.url) })] }),
  )
  rig.start()
  await rig.append(Array.from({ length: 60 }, () => rig.aCall()))
  await drained(rig)
  expect(hook.requests.length).toBe(60)
  expect(hook.atOnceMax).toBeGreaterThan(5)
})

const sickHead =
  () =>
  ({ json }: { readonly json: Record<string, unknown> }) =>
    json['event'] === 'sick' ? 503 : 200

test('a chain whose first has failed for 15 minutes at a well destination loses its order for ten', async () => {
  const hook = await receiver()
  hook.reply(sickHead())
  const rig = open(aLive({ destinations: [aDestination({ webhooks: to(hook.url) })] }))
  rig.start()
  await rig.append(['sick', 'e2', 'e3'].map((event) => rig.aCall({ event })))
  await drained(rig)
  rig.setNow(rig.now() + 5 * minute)
  await until(() => hook.requests.length === 2, 'a second try')
  expect(eventsOf(hook.requests)).toEqual(['sick', 'sick'])
  rig.setNow(rig.now() + 11 * minute)
  await until(async () => (await rowsOf('parked')).length === 1, 'the others go')
  expect(eventsOf(hook.requests).slice(2).sort()).toEqual(['e2', 'e3', 'sick'])
  await rig.append([rig.aCall({ event: 'e4' })])
  await drained(rig)
  expect(eventsOf(hook.requests).at(-1)).toBe('e4')
  expect(lines.filter(({ msg }) => msg === 'order.suspended').length).toBe(1)
  const marked = async () =>
    (
      await database.pool.query<{ message_id: string }>(
        'select distinct message_id from attempt where order_suspended',
      )
    ).rows.length
  await until(async () => (await marked()) === 4, 'the attempts out of order are marked')
  rig.setNow(rig.now() + 11 * minute)
  // Claimed while another waits behind it, the first would be found too old at once.
  const tries = () => eventsOf(hook.requests).filter((event) => event === 'sick').length
  await until(() => tries() === 4, 'a fourth try')
  await rig.append([rig.aCall({ event: 'e5' })])
  await drained(rig)
  expect(eventsOf(hook.requests)).not.toContain('e5')
  hook.reply(() => 200)
  await untilUnparked(rig)
  // Still older than 15 minutes at its next try, the first no longer holds up the other.
  expect(eventsOf(hook.requests).slice(-2).sort()).toEqual(['e5', 'sick'])
})

test('more than 200 waiting in one chain suspend its order', async () => {
  const hook = await receiver()
  const isSuspended = () => lines.some(({ msg }) => msg === 'order.suspended')
  hook.reply(async () => {
    await new Promise((resolve) => setTimeout(resolve, 10))
    if (isSuspended()) await until(() => hook.atOnceMax > 5)
    return 200
  })
  const rig = open(aLive({ destinations: [aDestination({ webhooks: to(hook.url) })] }))
  rig.start()
  await rig.append(Array.from({ length: 400 }, () => rig.aCall()))
  await drained(rig)
  expect(hook.requests.length).toBe(400)
  expect(hook.atOnceMax).toBeGreaterThan(5)
  expect(lines.filter(({ msg }) => msg === 'order.suspended').length).toBe(1)
})

test('while a destination is down its chains keep their order, however much waits', async () => {
  const hook = await receiver()
  hook.reply(() => 503)
  const webhooks = [aWebhook({ url: hook.url, concurrencyMax: 1 })]
  const rig = open(aLive({ destinations: [aDestination({ webhooks })] }))
  rig.start()
  await rig.append(Array.from({ length: 15 }, (_, at) => rig.aCall({ userId: `other${at}` })))
  await drained(rig)
  await rig.append(Array.from({ length: 250 }, () => rig.aCall({ userId: 'one' })))
  await drained(rig)
  const taken: number[] = []
  hook.reply(({ json }) => {
    if (json['userId'] === 'one') taken.push((json['properties'] as { n: number }).n)
    return 200
  })
  await untilUnparked(rig)
  expect(taken.length).toBe(250)
  expect(taken).toEqual([...taken].sort((a, b) => a - b))
})
