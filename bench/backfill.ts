// How fast a new audience gets the log's whole past, against bare reading and decoding of the same log.
import { setTimeout as sleep } from 'node:timers/promises'
import pino from 'pino'
import type { Audience, Configuration } from '../src/domain/configuration.ts'
import { openCodecs } from '../src/log/avro.ts'
import { type MemoryLog, memoryLog } from '../src/log/memory.ts'
import { startProject } from '../src/project/project.ts'
import { anAudience } from '../test/support/configuration.ts'
import { median, type Span } from './pairs.ts'
import { audiencesOf, eventNames, one } from './project-audiences.ts'
import { countLive, type Place, reached, withPlace } from './project-place.ts'
import { callOf, configurationOf, partitions } from './project-scene.ts'

const eventsLong = 500_000
const eventsShort = 50_000
const callsOfUser = 10
const appendMax = 5_000

export const run = (span: Span): Promise<void> =>
  withPlace(async (place) => {
    const events = span.total === undefined ? eventsLong : eventsShort
    const now = Date.now()
    const clock = () => new Date(now)
    const log = memoryLog({ partitions, clock })
    const { call } = await openCodecs({})
    const walk = { users: events / callsOfUser, now, names: eventNames(one), codec: call }
    for (let first = 0; first < events; first += appendMax) {
      const calls = Array.from({ length: appendMax }, (_, at) => callOf(first + at, walk))
      await log.appender().append('calls', calls)
    }
    const live = openLive(audiencesOf(one))
    const logger = pino({ level: 'silent' })
    const deps = { codecs: { call }, pool: place.pool, live, clock, logger }
    const projector = startProject({ source: log.source(), ...deps })
    projector.done.catch((error) => {
      console.error(error)
      process.exit(1)
    })
    await reached(place.pool, events)
    const rates: { readonly bare: number; readonly product: number }[] = []
    for (let pair = 1; pair <= span.pairs; pair += 1) {
      const bare = await measured(place, events, () => readBare(log, call, events))
      const product = await measured(place, events, async () => {
        live.add(newcomer(pair))
        while ((await countLive(place.pool)) < live.now().audiences.size) await sleep(10)
      })
      rates.push({ bare: bare.rate, product: product.rate })
      console.log(`pair ${pair}: bare ${told(bare)}; product ${told(product)}`)
    }
    await projector.stop()
    const ratio = median(rates.map(({ bare, product }) => product / bare))
    console.log(
      `${told({ rate: median(rates.map(({ product }) => product)) })} of ${events.toLocaleString('en-US')} in the log`,
    )
    console.log(`backfill ratio ${ratio.toFixed(3)} budget none`)
  })

type Taken = { readonly rate: number; readonly cpuUs?: number }

const told = ({ rate, cpuUs }: Taken): string =>
  `${Math.round(rate).toLocaleString('en-US')} events/s${cpuUs === undefined ? '' : `, CPU ${cpuUs.toFixed(1)} µs/event`}`

const measured = async (
  place: Place,
  events: number,
  work: () => Promise<void>,
): Promise<Taken> => {
  const postgres = place.postgresCpuUs()
  const before = process.cpuUsage()
  const began = performance.now()
  await work()
  const rate = events / ((performance.now() - began) / 1_000)
  const { user, system } = process.cpuUsage(before)
  return { rate, cpuUs: (user + system + place.postgresCpuUs() - postgres) / events }
}

type Call = Awaited<ReturnType<typeof openCodecs>>['call']

const readBare = async (log: MemoryLog, codec: Call, events: number): Promise<void> => {
  const source = log.source()
  let read = 0
  for (const [partition, { start: from, end: until }] of (await source.bounds('calls')).entries())
    for await (const { entries } of source.read({ topic: 'calls', partition, from, until }))
      read += (await codec.decode(entries.map(({ value }) => value))).length
  if (read !== events) throw new Error(`${read} read of ${events}`)
}

/** One that shares no leaf with those there are. */
const newcomer = (number: number): Audience =>
  anAudience({
    id: 1_000 + number,
    name: `newcomer ${number}`,
    key: `newcomer_${number}`,
    condition: {
      event: { name: 'Product Viewed', window: { last: `${60 - number}d` } },
      sum: { prop: 'price', op: 'gte', value: 200 },
    },
  })

const openLive = (start: readonly Audience[]) => {
  let configuration: Configuration = configurationOf(start, 1n)
  const listeners = new Set<(configuration: Configuration) => void>()
  return {
    now: () => configuration,
    onChange: (changed: (configuration: Configuration) => void) => {
      listeners.add(changed)
      return () => void listeners.delete(changed)
    },
    add: (audience: Audience) => {
      const all = [...configuration.audiences.values(), audience]
      configuration = configurationOf(all, configuration.version + 1n)
      for (const changed of listeners) changed(configuration)
    },
  }
}
