// What each fault of a receiver does to the message, to its URL, and not to anybody else: alone, and as one of five URLs.
import { expect, onTestFinished, test } from 'vitest'
import { loadLedger, sumLedger } from '../../src/deliver/ledger.ts'
import { useRig } from '../deliver/rig.ts'
import { aDestination, aLive, aWebhook, to } from '../support/configuration.ts'
import { until } from '../support/until.ts'
import { type FaultName, faults, openFaulty } from './faults.ts'

const { receiver, open, rowsOf, database, events } = await useRig()

const total = 20

type Expected = {
  readonly name: FaultName
  /** What becomes of a message whose only URL this is. */
  readonly fate: 'delivered' | 'parked' | 'dead'
  readonly reason: string | null
  /** What the URL is taken for afterwards. */
  readonly url: { readonly state?: string; readonly breaker?: string } | null
  /** Requests that its receiver gets: all, or none at all. */
  readonly isAsked: boolean
  /** How long its answers are waited for; the five seconds of the specification where absent. */
  readonly patienceMs?: number
}

/** Others would wait as long as for a receiver that hangs, if they waited at all. */
const hangMs = 12_000
const unnoticedMs = 10_000

const open_ = { state: 'ok', breaker: 'open' }

const matrix: readonly Expected[] = [
  { name: 'refused', fate: 'parked', reason: 'connection_refused', url: open_, isAsked: false },
  {
    name: 'hang',
    fate: 'parked',
    reason: 'timeout',
    url: open_,
    isAsked: true,
    patienceMs: hangMs,
  },
  {
    name: 'an answer after 4.9 s',
    fate: 'delivered',
    reason: null,
    url: null,
    isAsked: true,
    // A tenth of a second is nothing on a busy machine: that nobody is given up before 5 s is tested with the port.
    patienceMs: 60_000,
  },
  { name: 'an answer after 5.1 s', fate: 'parked', reason: 'timeout', url: open_, isAsked: true },
  { name: '500', fate: 'parked', reason: 'status_500', url: open_, isAsked: true },
  { name: '429 with Retry-After', fate: 'parked', reason: 'status_429', url: open_, isAsked: true },
  { name: '302', fate: 'dead', reason: 'redirect', url: { state: 'rejecting' }, isAsked: true },
  { name: '410', fate: 'dead', reason: 'status_410', url: { state: 'disabled' }, isAsked: true },
  { name: 'a reset mid-body', fate: 'delivered', reason: null, url: null, isAsked: true },
  { name: 'an endless body', fate: 'delivered', reason: null, url: null, isAsked: true },
  {
    name: 'a self-signed certificate',
    fate: 'dead',
    reason: 'tls_self_signed',
    url: { state: 'held_tls' },
    isAsked: false,
  },
  {
    name: 'a private root',
    fate: 'dead',
    reason: 'tls_private_root',
    url: { state: 'held_tls' },
    isAsked: false,
  },
  {
    name: 'an expired certificate',
    fate: 'parked',
    reason: 'tls_expired',
    url: open_,
    isAsked: false,
  },
  { name: 'a wrong name', fate: 'parked', reason: 'tls_wrong_name', url: open_, isAsked: false },
]

test('the matrix names every fault', () => {
  expect(matrix.map(({ name }) => name).sort()).toEqual(Object.keys(faults).sort())
})

const faulty = async (name: FaultName) => {
  const opened = await openFaulty(name)
  onTestFinished(() => opened.close())
  return opened
}

const usersOf = (requests: readonly { readonly json: Record<string, unknown> }[]) =>
  new Set(requests.map(({ json }) => json['userId'] as string))

const sick = 1
const other = 2

const balance = async () => sumLedger(await loadLedger(database.pool))

/** Every pair has been consumed and has its outcome, and the ledger says so. */
const balanced = async (pairs: number) => {
  await until(async () => {
    const { consumed, inFlight } = await balance()
    return consumed >= BigInt(pairs) && inFlight === 0n
  }, `${pairs} pairs are settled`)
  const ledger = await balance()
  expect(ledger.gap).toBe(0n)
  const { consumed, gap, ...outcomes } = ledger
  expect(Object.values(outcomes).reduce((sum, some) => sum + some, 0n)).toBe(consumed)
  expect(consumed).toBe(BigInt(pairs))
}

type Dest = { readonly reason: string; readonly last_reason: string; readonly next_at: Date | null }

const rowsFor = async (table: 'parked' | 'dead') =>
  (await database.pool.query<Dest>(`select * from ${table} where destination_id = $1`, [sick])).rows

test.each(matrix)(
  '$name, 1 URL: messages are $fate, and another destination does not notice',
  async ({ name, fate, reason, url, isAsked, patienceMs }) => {
    const [bad, healthy] = [await faulty(name), await receiver()]
    const destinations = [
      aDestination({ id: sick, name: 'S', webhooks: [aWebhook({ url: bad.url, ...bad.webhook })] }),
      aDestination({ id: other, name: 'H', webhooks: to(healthy.url) }),
    ]
    const rig = open(aLive({ destinations }))
    rig.start({}, patienceMs)
    const users = Array.from({ length: total }, (_, at) => `u${at}`)
    const began = performance.now()
    await rig.append(users.map((userId) => rig.aCall({ userId })))
    await until(() => healthy.requests.length === total, 'the healthy one has all')
    if (name === 'hang') expect(performance.now() - began).toBeLessThan(unnoticedMs)
    await balanced(2 * total)
    expect(healthy.requests.length).toBe(total)

    const [parked, dead] = [await rowsFor('parked'), await rowsFor('dead')]
    expect(parked.length).toBe(fate === 'parked' ? total : 0)
    expect(dead.length).toBe(fate === 'dead' ? total : 0)
    const given = fate === 'dead' ? dead : parked.filter((row) => row.reason === 'temporary')
    const said = new Set(given.map((row) => (fate === 'dead' ? row.reason : row.last_reason)))
    said.delete('url_disabled')
    expect([...said]).toEqual(reason === null ? [] : [reason])
    if (name === '429 with Retry-After')
      for (const { next_at } of given)
        expect(next_at?.getTime()).toBeGreaterThanOrEqual(rig.now() + 120_000)
    const changes = events.filter(({ destinationId }) => destinationId === sick)
    if (url) expect(changes.at(-1)?.to).toMatchObject(url)
    else expect(changes).toEqual([])
    if (isAsked) expect(bad.users.length).toBeGreaterThan(0)
    else expect(bad.users).toEqual([])
    if (name === 'an endless body') expect(bad.seen.written / total).toBeLessThan(16_777_216)

    // Repaired, it gets what waited, once more and whole; what is dead stays so.
    const before = new Set(bad.users)
    await bad.repair()
    await until(async () => {
      rig.setNow(rig.now() + 5_000)
      return (await rowsFor('parked')).length === 0
    }, 'nothing is parked')
    expect((await rowsFor('dead')).length).toBe(fate === 'dead' ? total : 0)
    if (fate === 'parked') expect(new Set(bad.repaired)).toEqual(new Set(users))
    else expect(bad.repaired).toEqual([])
    if (fate === 'delivered') expect(before).toEqual(new Set(users))
    await balanced(2 * total)
    expect(bad.seen.unstable).toBe(0)
    expect(healthy.requests.length).toBe(total)
  },
)

test.each(matrix)(
  '$name, one of 5 URLs: every message is delivered by the others, and nothing waits',
  async ({ name, url, isAsked, patienceMs }) => {
    const bad = await faulty(name)
    const hooks = [await receiver(), await receiver(), await receiver(), await receiver()]
    const webhooks = [
      aWebhook({ url: bad.url, ...bad.webhook }),
      ...to(...hooks.map((hook) => hook.url)),
    ]
    const rig = open(aLive({ destinations: [aDestination({ id: sick, webhooks })] }))
    rig.start({}, patienceMs)
    const users = Array.from({ length: total }, (_, at) => `u${at}`)
    const began = performance.now()
    await rig.append(users.map((userId) => rig.aCall({ userId })))
    await until(() => hooks.every(({ requests }) => requests.length === total), 'all four have all')
    if (name === 'hang') expect(performance.now() - began).toBeLessThan(unnoticedMs)
    for (const hook of hooks) expect(usersOf(hook.requests)).toEqual(new Set(users))
    await until(async () => (await balance()).delivered === BigInt(total), 'all are settled')
    // Long before the slow ones have answered.
    if (name === 'hang') expect(performance.now() - began).toBeLessThan(unnoticedMs)
    const changed = () => events.filter(({ destinationId }) => destinationId === sick)
    if (url)
      await until(() => changed().length > 0, 'the URL is known to be at fault').then(() =>
        expect(changed().at(-1)?.to).toMatchObject(url),
      )
    const asked = bad.seen.connections
    await rig.append(users.map((userId) => rig.aCall({ userId: `later ${userId}` })))
    await until(
      () => hooks.every(({ requests }) => requests.length === 2 * total),
      'the later ones',
    )
    if (url) expect(bad.seen.connections).toBe(asked)
    else expect(changed()).toEqual([])
    await balanced(2 * total)
    expect(await rowsOf('parked')).toEqual([])
    expect(await rowsOf('dead')).toEqual([])
    expect(bad.users.length > 0).toBe(isAsked)
    expect(bad.seen.unstable).toBe(0)
  },
)
