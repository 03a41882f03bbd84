import { expect, test } from 'vitest'
import { aDestination, aLive, to } from '../support/configuration.ts'
import { until } from '../support/until.ts'
import { useRig } from './rig.ts'

const { receiver, open, rowsOf, drained, database } = await useRig()

const hour = 3_600_000

/** When the next parked row is due, once its last try is on record. */
const nextDue = async (tries: number): Promise<number | null> => {
  let due: number | null = null
  await until(async () => {
    const { rows } = await database.pool.query<{ next_at: Date; attempts: number }>(
      'select next_at, attempts from parked where lease_owner is null',
    )
    if ((await rowsOf('dead')).length > 0) return true
    due = rows[0]?.attempts === tries ? rows[0].next_at.getTime() : null
    return due !== null
  }, `try ${tries} is on record`)
  return due
}

test('a message is tried for four hours, last just before they are over, and never after', async () => {
  let rig: ReturnType<typeof open> | null = null
  const hook = await receiver('secret', () => rig?.now() ?? 0)
  hook.reply(({ json }) => (json['event'] === 'failing' ? 500 : 200))
  rig = open(aLive({ destinations: [aDestination({ webhooks: to(hook.url) })] }))
  rig.start()
  const first = rig.now()
  await rig.append([rig.aCall({ event: 'failing' })])
  await drained(rig)
  let tries = 1
  for (;;) {
    const due = await nextDue(tries)
    if (due === null) break
    rig.setNow(due)
    tries += 1
    await until(() => hook.requests.length === tries, `try ${tries}`)
  }
  expect(hook.requests.map(({ at }) => (at - first) / 1_000)).toEqual([
    0, 10, 40, 100, 220, 520, 1_120, 2_020, 3_220, 5_020, 6_820, 8_620, 10_420, 12_220, 14_020,
    14_395,
  ])
  expect(await rowsOf('dead')).toMatchObject([{ reason: 'expired', attempts: 16, status: 500 }])
  expect(await rowsOf('parked')).toEqual([])
  rig.setNow(first + 24 * hour)
  await rig.append([rig.aCall({ event: 'sentinel' })])
  await until(() => hook.requests.at(-1)?.json['event'] === 'sentinel', 'the sentinel')
  expect(hook.requests.length).toBe(17)
})

test('a last try that waits for room at a URL does not start there after the window', async () => {
  const [slow, full] = [await receiver(), await receiver()]
  for (const hook of [slow, full]) hook.reply(() => 500)
  const webhooks = to(slow.url, full.url).map((webhook) => ({ ...webhook, concurrencyMax: 1 }))
  const [first, second] = webhooks
  if (!first || !second) throw new Error('two URLs')
  const destination = aDestination({ webhooks: [{ ...first, concurrencyMax: null }, second] })
  const rig = open(aLive({ destinations: [destination] }))
  rig.start({}, 60_000)
  const start = rig.now()
  await rig.append([rig.aCall({ event: 'failing' })])
  await drained(rig)
  const [failing, other] = [Promise.withResolvers<number>(), Promise.withResolvers<number>()]
  slow.reply(({ json }) => (json['event'] === 'failing' ? failing.promise : other.promise))
  full.reply(({ json }) => (json['event'] === 'failing' ? 200 : other.promise))
  await rig.append([rig.aCall({ event: 'other', userId: 'u2' })])
  await until(() => full.requests.length === 2, 'another message has the room')
  rig.setNow(start + 4 * hour - 5_000)
  await until(() => slow.requests.length === 3, 'the last try is under way')
  rig.setNow(start + 4 * hour + 1_000)
  failing.resolve(500)
  other.resolve(200)
  await until(async () => (await rowsOf('parked')).length === 0, 'its end')
  expect(full.requests.map(({ json }) => json['event'])).toEqual(['failing', 'other'])
  expect(await rowsOf('dead')).toMatchObject([{ reason: 'expired', attempts: 2 }])
})

test('a message due while nobody ran is given up without a try once its window is over', async () => {
  const hook = await receiver()
  hook.reply(({ json }) => (json['event'] === 'failing' ? 500 : 200))
  const rig = open(aLive({ destinations: [aDestination({ webhooks: to(hook.url) })] }))
  const life = rig.start()
  await rig.append([rig.aCall({ event: 'failing' })])
  await drained(rig)
  await life.running.stop()
  rig.setNow(rig.now() + 4 * hour)
  rig.start()
  await until(async () => (await rowsOf('dead')).length === 1, 'it is given up')
  expect(await rowsOf('dead')).toMatchObject([{ reason: 'expired', attempts: 1 }])
  expect(hook.requests.length).toBe(1)
})

test('the window starts at the first try: what waits behind a failing message has its own', async () => {
  const hook = await receiver()
  hook.reply(() => 500)
  const rig = open(aLive({ destinations: [aDestination({ webhooks: to(hook.url) })] }))
  rig.start()
  await rig.append([rig.aCall({ event: 'first' }), rig.aCall({ event: 'second' })])
  await drained(rig)
  expect(hook.requests.length).toBe(1)
  hook.reply(({ json }) => (json['event'] === 'first' ? 500 : 200))
  rig.setNow(rig.now() + 5 * hour)
  await until(async () => (await rowsOf('parked')).length === 0, 'nothing is parked')
  expect(await rowsOf('dead')).toMatchObject([{ reason: 'expired', attempts: 1 }])
  expect(hook.requests.map(({ json }) => json['event'])).toEqual(['first', 'second'])
})

test('Retry-After moves the next try', async () => {
  const hook = await receiver()
  hook.reply(() => ({ status: 429, headers: { 'retry-after': '120' } }))
  const rig = open(aLive({ destinations: [aDestination({ webhooks: to(hook.url) })] }))
  rig.start()
  const first = rig.now()
  await rig.append([rig.aCall()])
  await drained(rig)
  expect(await nextDue(1)).toBe(first + 120_000)
})
