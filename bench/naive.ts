// The same audiences kept up to date by the product, and recomputed as SQL every three hours: what a day costs.
import { setTimeout as sleep } from 'node:timers/promises'
import pino from 'pino'
import { openCodecs } from '../src/log/avro.ts'
import { memoryLog } from '../src/log/memory.ts'
import { startProject } from '../src/project/project.ts'
import { findSyncRun, requestSync } from '../src/sync/request.ts'
import { startSync } from '../src/sync/sync.ts'
import { aConfiguration, aDestination } from '../test/support/configuration.ts'
import { demand } from './deliver-stand.ts'
import { loadPast } from './naive-past.ts'
import { callsOf, dayMs, names, openShop, pastDays, type Shop } from './naive-scene.ts'
import { createTables, indexEvents, insertEvents, recompute, tidy } from './naive-sql.ts'
import type { Span } from './pairs.ts'
import { audiencesOf, one } from './project-audiences.ts'
import { countLive, lookMs, type Place, reached, withPlace } from './project-place.ts'
import { partitions } from './project-scene.ts'

const sizesLong = [1_000_000, 10_000_000]
const sizesShort = [100_000, 1_000_000]
/** Syncs of a day: one each three hours. */
const syncs = 8
/** What a user's state may take at most, with 20 audiences. */
const bytesMax = 2_000
/** Of the past, taken at a time. */
const loadEvents = 20_000

export const run = async (span: Span): Promise<void> => {
  const long = span.total === undefined
  const sizes = long ? sizesLong : sizesShort
  // What fits into a minute is the smaller one alone.
  const wanted = long || (span.total ?? 0) >= 80 ? sizes : sizes.slice(0, 1)
  let ratio = 0
  for (const pastEvents of wanted) ratio = await compare(pastEvents)
  console.log(`naive ratio ${ratio.toFixed(3)} budget none`)
}

/** How many times as much CPU a day of the naive way takes. */
const compare = (pastEvents: number): Promise<number> =>
  withPlace(async (place) => {
    const shop = openShop(pastEvents)
    const ours = await openOurs(place, shop)
    await createTables(place.pool, shop)
    const loadDays = (loadEvents / pastEvents) * pastDays
    for (let day = 0; day < pastDays; day += loadDays) {
      const until = Math.min(day + loadDays, pastDays)
      await insertEvents(place.pool, shop.between(day, until))
    }
    await indexEvents(place.pool)
    await loadPast(place.pool, shop, names)
    await ours.sync(pastDays)
    await tidy(place.pool)
    await recompute(place.pool, shop.instant(pastDays))
    await tidy(place.pool)
    await place.pool.query('vacuum analyze ustate, membership, identity')
    const meter = openMeter(place)
    const costs = { fold: 0, sync: 0, insert: 0, recompute: 0 }
    let changes = 0
    for (let step = 0; step < syncs; step += 1) {
      const [from, until] = [pastDays + step / syncs, pastDays + (step + 1) / syncs]
      const events = shop.between(from, until)
      const prepared = ours.prepare(from, until)
      costs.fold += await meter(() => ours.append(prepared, until))
      costs.sync += await meter(() => ours.sync(until))
      costs.insert += await meter(() => insertEvents(place.pool, events))
      costs.recompute += await meter(async () => {
        changes += await recompute(place.pool, shop.instant(until))
      })
    }
    const differ = await differences(place)
    demand(differ.length === 0, `the two disagree on audiences ${differ.join(', ')}`)
    await ours.stop()
    const [product, naive] = [costs.fold + costs.sync, costs.insert + costs.recompute]
    const each = costs.recompute / audiencesOf(one).length
    const day = Math.round(pastEvents / pastDays)
    console.log(
      `${told(pastEvents)} events of ${pastDays} days, ${told(shop.users)} users; ${told(day)} events and ${told(changes)} changes a day`,
    )
    console.log(`  ${await bytesTold(place)}`)
    console.log(
      `  ours: ${seconds(product)} of CPU a day, ${seconds(costs.fold)} to fold, ${seconds(costs.sync)} to sync ${syncs} times`,
    )
    console.log(
      `  naive: ${seconds(naive)} of CPU a day, ${seconds(costs.insert)} to insert events, ${seconds(costs.recompute)} to recompute, ${seconds(each)} an audience`,
    )
    const even = Math.max(0, product - costs.insert) / each
    console.log(`  break-even at ${even.toFixed(1)} audiences, ours costing what 20 cost`)
    return naive / product
  })

const told = (count: number) => count.toLocaleString('en-US')
const seconds = (micros: number) => `${(micros / 1e6).toFixed(2)} s`

/** Microseconds of CPU of this process and of Postgres. */
const openMeter = (place: Place) => async (work: () => Promise<unknown>) => {
  const postgres = place.postgresCpuUs()
  const before = process.cpuUsage()
  await work()
  const { user, system } = process.cpuUsage(before)
  return user + system + place.postgresCpuUs() - postgres
}

const openOurs = async ({ pool }: Place, shop: Shop) => {
  let now = shop.instant(0)
  const clock = () => new Date(now)
  const log = memoryLog({ partitions, clock })
  const codecs = await openCodecs({})
  const audiences = audiencesOf(one).map((it) => ({ ...it, syncEveryMs: 1_000 * dayMs }))
  const configuration = aConfiguration({ audiences, destinations: [aDestination()] })
  const live = { now: () => configuration, onChange: () => () => undefined }
  const logger = pino({ level: process.env['BENCH_LOG'] ?? 'silent' })
  const [source, appender] = [log.source(), log.appender()]
  const deps = { source, codecs, pool, live, clock, logger }
  const running = [startProject(deps), startSync({ ...deps, appender })]
  for (const { done } of running)
    done.catch((error) => {
      console.error(error)
      process.exit(1)
    })
  while ((await countLive(pool)) < audiences.length) await sleep(20)
  let end = 0
  const append = async (entries: ReturnType<typeof callsOf>, until: number) => {
    for (const [partition, bounds] of (await source.bounds('calls')).entries())
      log.truncate('calls', partition, bounds.end)
    end += entries.length
    now = shop.instant(until)
    await appender.append('calls', entries)
    await reached(pool, end)
  }
  const prepare = (from: number, until: number) => callsOf(shop.between(from, until), codecs.call)
  return {
    prepare,
    append,
    sync: async (until: number): Promise<void> => {
      now = shop.instant(until)
      const audienceIds = audiences.map(({ id }) => id)
      const id = await requestSync(pool, { audienceIds, at: clock() })
      while ((await findSyncRun(pool, id))?.state !== 'finished') await sleep(lookMs)
    },
    stop: () => Promise.all(running.map((stage) => stage.stop())),
  }
}

/** Of a user's packed state, for all definitions together. */
const bytesTold = async ({ pool }: Place): Promise<string> => {
  const { rows } = await pool.query<{ mean: number; most: number }>(
    `select avg(octet_length(st))::float8 as mean, max(octet_length(st))::float8 as most from ustate`,
  )
  const { mean = 0, most = 0 } = rows[0] ?? {}
  demand(most < bytesMax, 'a user takes too many bytes')
  return `state: ${Math.round(mean)} bytes a user, ${most} at most, of ${told(bytesMax)}`
}

/** Numbers of the audiences in which the two do not hold the very same users, the trait's values included. */
const differences = async ({ pool }: Place): Promise<readonly number[]> => {
  const { rows } = await pool.query<{ audience: number }>(
    `with ours as (
       select case when audience_id = 1 then 21 else audience_id - 1 end as audience,
              substr(user_id, 6)::int as user_key, value::int as value
         from membership where cur
     )
     select distinct audience from (
       (select * from ours except select * from naive_member)
       union all (select * from naive_member except select * from ours)
     ) d order by 1`,
  )
  return rows.map(({ audience }) => audience)
}
