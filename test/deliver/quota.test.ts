import { expect, test } from 'vitest'
import { loadLedger, sumLedger } from '../../src/deliver/ledger.ts'
import { aDestination, aLive, to } from '../support/configuration.ts'
import { until, untilStill } from '../support/until.ts'
import { useRig } from './rig.ts'

const { receiver, open, rowsOf, drained, database, lines } = await useRig()

const gap = async () => sumLedger(await loadLedger(database.pool)).gap

const bytesKept = async (): Promise<number> => {
  const { rows } = await database.pool.query<{ bytes: number }>(
    'select coalesce(sum(body_bytes), 0)::int as bytes from delivery_ledger',
  )
  return rows[0]?.bytes ?? 0
}

const scene = async (limits: Record<string, number>) => {
  const [sick, well] = [await receiver(), await receiver()]
  sick.reply(() => 503)
  const destinations = [
    aDestination({ id: 1, name: 'Sick', webhooks: to(sick.url) }),
    aDestination({ id: 2, name: 'Well', webhooks: to(well.url), sourceIds: new Set([2]) }),
  ]
  const rig = open(aLive({ destinations }), {
    partitions: 1,
    limits: { quotaEveryMs: 10, ...limits },
  })
  const many = (from: number, count: number) =>
    Array.from({ length: count }, (_, at) => rig.aCall({ userId: `u${from + at}` }))
  /** Lets time pass until nothing is parked. */
  const drainParked = async (reply: Parameters<typeof sick.reply>[0] = () => 200) => {
    sick.reply(reply)
    await until(async () => {
      rig.setNow(rig.now() + 1_000)
      return (await rowsOf('parked')).length === 0
    }, 'nothing is parked')
  }
  return { sick, well, rig, many, drainParked }
}

const parkedRows = async () => (await rowsOf('parked')).length

const stateLines = () =>
  lines.filter(({ msg }) => msg === 'quota.changed').map(({ state }) => state)

test.each([
  ['rows', { parkedRowsMax: 20 }],
  ['bytes', { parkedBytesMax: 20 * 100 }],
])(
  'above its quota of %s a destination has its bodies left in the log, and gets them all',
  async (_, limits) => {
    const { sick, rig, many, drainParked } = await scene(limits)
    rig.start()
    await rig.append(many(0, 15))
    await drained(rig)
    expect((await rowsOf('parked')).every(({ body_id }) => body_id !== null)).toBe(true)
    await rig.append(many(15, 45))
    await drained(rig)
    const rows = await rowsOf('parked')
    expect(rows).toHaveLength(60)
    const kept = rows.filter(({ body_id }) => body_id !== null).length
    expect(kept).toBeGreaterThanOrEqual(15)
    expect(kept).toBeLessThan(30)
    expect(stateLines()).toEqual(['spilling'])
    expect(await bytesKept()).toBeGreaterThan(15 * 80)
    const before = sick.requests.length
    await drainParked()
    const bodies = new Set(sick.requests.slice(before).map(({ body }) => body.toString()))
    expect(bodies.size).toBe(60)
    expect(await rowsOf('dead')).toEqual([])
    expect(sick.badSignatures).toEqual([])
    await until(async () => (await bytesKept()) === 0, 'no bytes are counted as kept')
    await until(() => stateLines().at(-1) === 'free', 'the quota ends')
    expect(await gap()).toBe(0n)
  },
)

test('the same bytes go out in every try, whether they were kept or read from the log again', async () => {
  const { sick, rig, many, drainParked } = await scene({ parkedRowsMax: 3 })
  const tries = new Map<unknown, number>()
  const failTwice = ({ json }: { readonly json: Record<string, unknown> }) => {
    const { n } = json['properties'] as { n: number }
    tries.set(n, (tries.get(n) ?? 0) + 1)
    return n <= 10 && (tries.get(n) ?? 0) < 3 ? 503 : 200
  }
  sick.reply(failTwice)
  rig.start()
  await rig.append(many(0, 30))
  await drained(rig)
  const kept = (await rowsOf('parked')).map(({ body_id }) => body_id !== null)
  expect(new Set(kept)).toEqual(new Set([true, false]))
  await drainParked(failTwice)
  const byNumber = Map.groupBy(sick.requests, ({ json }) => (json['properties'] as { n: number }).n)
  for (let n = 1; n <= 10; n += 1) {
    const requests = byNumber.get(n) ?? []
    expect(requests.length).toBeGreaterThan(2)
    expect(new Set(requests.map(({ body }) => body.toString())).size).toBe(1)
  }
})

test('beyond the hard quota nothing is parked or dropped: the partition waits, and goes on below half', async () => {
  const { sick, rig, many, drainParked } = await scene({
    parkedRowsMax: 10,
    parkedRowsHardMax: 40,
    laneMax: 10,
  })
  rig.start()
  await rig.append(many(0, 200))
  await until(() => stateLines().includes('braked'), 'it is braked')
  await until(async () => (await parkedRows()) >= 40, 'so many are parked')
  // As much as was on its way, and no more, however long it goes on.
  const length = await untilStill(parkedRows, 'nothing more is parked')
  expect(length).toBeLessThan(200)
  expect(await rowsOf('dead')).toEqual([])
  await drainParked()
  await drained(rig)
  await drainParked()
  const delivered = new Set(sick.requests.map(({ json }) => json['userId']))
  expect(delivered.size).toBe(200)
  expect(await rowsOf('dead')).toEqual([])
  expect(await gap()).toBe(0n)
})

test('what one process parked counts for the quota of another', async () => {
  const { rig, many } = await scene({ parkedRowsMax: 20 })
  const first = rig.start()
  await rig.append(many(0, 18))
  await drained(rig)
  await first.running.stop()
  rig.start()
  const own = 20
  for (let sent = 0; sent < own - 1 && !stateLines().includes('spilling'); sent += 1) {
    await rig.append(many(100 + sent, 1))
    await drained(rig)
    // The ledger is read many times before the next one comes.
    await untilStill(parkedRows, 'it is parked')
  }
  expect(stateLines()).toEqual(['spilling'])
  // What it parked itself would not have been enough.
  expect(await parkedRows()).toBeLessThan(18 + own)
})
