// A destination that was down is well again, with a great many rows parked for it: how fast they go, that the
// receiver is never asked for more than it may be, and what the others notice of it.
import { setTimeout as sleep } from 'node:timers/promises'
import { deliverLimits } from '../src/deliver/limits.ts'
import type { Pool } from '../src/postgres/sql.ts'
import {
  demand,
  megabytes,
  type Receivers,
  rssMaxBytes,
  type Stand,
  withStand,
} from './deliver-stand.ts'
import type { Span } from './pairs.ts'

const budget = 1.2
const rowsLong = 1_000_000
const rowsShort = 50_000
const healthy = 20
const healthyPerSecond = 200
const delayMs = 10
const fillCalls = 5_000
/** Parking lags behind appending by no more than this: what is measured is a store, not a queue. */
const aheadMax = 20_000
const beforeMs = 5_000

export const run = (span: Span): Promise<void> =>
  withStand(async (stand) => {
    const isShort = span.total !== undefined
    const receivers = await stand.receivers([
      { kind: 'healing', ports: 1, delayMs },
      { kind: 'well', ports: healthy, delayMs },
    ])
    await stand.onPlace(async (place, pool) => {
      const rows = isShort ? rowsShort : rowsLong
      await stand.load({ type: 'open', ...place })
      await stand.send({ type: 'start', ...place, urls: receivers.urls.flat() })
      await parkAll({ stand, pool, rows })
      await printTables('parked', pool)
      const secondsMax = span.total ?? Number.POSITIVE_INFINITY
      const drained = await drain({ stand, receivers, pool, rows, secondsMax })
      await printTables('drained', pool)
      const usage = await stand.send({ type: 'stop' })
      await stand.load({ type: 'close' })
      judge(drained, { isShort, rssMostBytes: usage.rssMostBytes })
    })
  })

type Parking = { readonly stand: Stand; readonly pool: Pool; readonly rows: number }

const parkAll = async ({ stand, pool, rows }: Parking): Promise<void> => {
  const began = performance.now()
  let appended = 0
  while (appended < rows) {
    const calls = Math.min(fillCalls, rows - appended)
    await stand.load({ type: 'fill', calls, sourceIds: [1] })
    appended += calls
    while (appended - (await countParked(pool)) > aheadMax) await sleep(50)
  }
  while ((await countParked(pool)) < rows) await sleep(100)
  const seconds = (performance.now() - began) / 1_000
  console.log(`parked ${rows} rows at ${Math.round(rows / seconds)} a second`)
}

/** By the ledger: counting the rows themselves would cost more than parking them. */
const countParked = async (pool: Pool): Promise<number> => {
  const { rows } = await pool.query<{ parked: bigint }>(
    `select coalesce(sum(taken - delivered - dead - cancelled), 0)::bigint as parked
       from delivery_ledger where destination_id = 1`,
  )
  return Number(rows[0]?.parked ?? 0)
}

const printTables = async (when: string, pool: Pool): Promise<void> => {
  const { rows } = await pool.query<{ name: string; bytes: bigint }>(
    `select regexp_replace(relname, '_[0-9]+$', '') as name, sum(pg_total_relation_size(oid))::bigint as bytes
       from pg_class where relkind = 'r' and relname ~ '^(parked|attempt|delivery_ledger)(_|$)'
      group by 1 order by 1`,
  )
  const sizes = rows.map(({ name, bytes }) => `${name} ${megabytes(Number(bytes))}`)
  console.log(`tables when ${when}: ${sizes.join(', ')}`)
}

type Draining = Parking & { readonly receivers: Receivers; readonly secondsMax: number }

type Drained = { readonly most: number; readonly inFlightMost: number; readonly seconds: number }

const drain = async (draining: Draining): Promise<Drained> => {
  const { stand, receivers, pool, rows, secondsMax } = draining
  const sourceIds = Array.from({ length: healthy }, (_, at) => at + 2)
  await stand.load({ type: 'run', perSecond: healthyPerSecond, sourceIds })
  await sleep(beforeMs / 2)
  await receivers.ask('reset')
  await sleep(beforeMs)
  const before = await receivers.ask('reset')
  const healed = performance.now()
  await receivers.ask('heal')
  while ((await receivers.ask('count')).healing === 0) await sleep(20)
  console.log(
    `asked again ${((performance.now() - healed) / 1_000).toFixed(1)} s after it was well`,
  )
  await receivers.ask('reset')
  const cpu = {
    sender: (await stand.send({ type: 'usage' })).cpuUs,
    postgres: stand.postgresCpuUs(),
  }
  const began = performance.now()
  const perSecond: number[] = []
  let inFlightMost = 0
  let seen = 0
  while (perSecond.length < secondsMax && (await countParked(pool)) > 0) {
    await sleep(began + (perSecond.length + 1) * 1_000 - performance.now())
    const { healing, healingInFlight } = await receivers.ask('count')
    perSecond.push(healing - seen)
    seen = healing
    inFlightMost = Math.max(inFlightMost, healingInFlight)
  }
  const { p50Us, p99Us, well } = await receivers.ask('count')
  await stand.load({ type: 'halt' })
  const sender = (await stand.send({ type: 'usage' })).cpuUs - cpu.sender
  const postgres = stand.postgresCpuUs() - cpu.postgres
  printPace(perSecond)
  console.log(
    `healthy, p50 and p99 from append to receiver: before ${before.p50Us} and ${before.p99Us} µs, meanwhile ${p50Us} and ${p99Us} µs, of ${well} calls`,
  )
  console.log(
    `CPU a row, healthy calls included: sender ${Math.round(sender / seen)} µs, Postgres ${Math.round(postgres / seen)} µs`,
  )
  console.log(`${seen} of ${rows} rows in ${perSecond.length} s, ${inFlightMost} at a time at most`)
  return { most: Math.max(...perSecond), inFlightMost, seconds: perSecond.length }
}

const parts = 20

/** Of a long time so many parts; of each the mean. */
const printPace = (perSecond: readonly number[]): void => {
  const size = Math.max(1, Math.ceil(perSecond.length / parts))
  const means: number[] = []
  for (let at = 0; at < perSecond.length; at += size) {
    const part = perSecond.slice(at, at + size)
    means.push(Math.round(part.reduce((sum, count) => sum + count, 0) / part.length))
  }
  console.log(`rows a second, each over ${size} s: ${means.join(' ')}`)
}

type Judged = { readonly isShort: boolean; readonly rssMostBytes: number }

/** What so many requests at a time of so many milliseconds come to is the most it may be asked. */
const judge = (drained: Drained, { isShort, rssMostBytes }: Judged): void => {
  const cap = deliverLimits.urlConcurrencyMax
  const ratio = (drained.most * delayMs) / 1_000 / cap
  demand(drained.inFlightMost <= cap, `${drained.inFlightMost} at a time, more than ${cap}`)
  demand(ratio <= budget, `a second saw ${drained.most} requests`)
  if (!isShort) demand(rssMostBytes < rssMaxBytes, `the sender took ${megabytes(rssMostBytes)}`)
  console.log(`the sender's RSS: ${megabytes(rssMostBytes)} at most`)
  console.log(`drain ratio ${ratio.toFixed(3)} budget at most ${budget}`)
}
