// replay against bare reading of the same log and appending the same bytes, on the log in Postgres.
import { setTimeout as sleep } from 'node:timers/promises'
import pino from 'pino'
import { findReplay, insertReplay } from '../src/admin/replay-store.ts'
import { nobodySuppressed } from '../src/domain/suppression.ts'
import { openCodecs } from '../src/log/avro.ts'
import type { Appender, Entry, Source, Topic } from '../src/log/log.ts'
import { postgresAppender, postgresSource } from '../src/log/postgres.ts'
import type { Pool } from '../src/postgres/sql.ts'
import { replayLimits } from '../src/replay/limits.ts'
import { startReplay } from '../src/replay/replay.ts'
import { aDestination, aLive, to } from '../test/support/configuration.ts'
import { type Figure, runPairs, type Span } from './pairs.ts'
import { withPlace } from './project-place.ts'
import { propertiesOf, trackOf } from './project-scene.ts'

const callsLong = 200_000
const callsShort = 20_000
const appendMax = 2_000
const partitions = 4

export const run = (span: Span): Promise<void> =>
  withPlace(async ({ pool }) => {
    const calls = span.total === undefined ? callsLong : callsShort
    const logger = pino({ level: 'silent' })
    const clock = () => new Date()
    const options = { pool, partitions, clock, logger }
    const source = postgresSource(options)
    const appender = postgresAppender(options)
    const codecs = await openCodecs({})
    for (let first = 0; first < calls; first += appendMax) {
      const entries = Array.from({ length: Math.min(appendMax, calls - first) }, (_, at) =>
        trackOf(first + at, {
          ...{ userId: `u${first + at}`, event: 'Product Viewed', at: Date.now() },
          ...{ properties: propertiesOf(first + at), codec: codecs.call },
        }),
      )
      await appender.append('calls', entries)
    }
    const live = aLive({ destinations: [aDestination({ webhooks: to('http://127.0.0.1:9/') })] })
    const replays = startReplay({
      ...{ history: source, source, appender, codecs, pool, live, clock, logger },
      suppressions: nobodySuppressed,
      // Nobody delivers here: what is outstanding only grows.
      limits: { outstandingMax: Number.MAX_SAFE_INTEGER, creditMs: 60_000 },
    })
    replays.done.catch((error) => {
      console.error(error)
      process.exit(1)
    })
    await runPairs({
      ...{ name: 'replay', budget: 0.5, unit: 'calls/s', ...span },
      bare: () => figureOf(calls, () => copy({ source, appender })),
      product: () => figureOf(calls, () => replay(pool, calls)),
    })
    await replays.stop()
    await appender.close()
    await source.close()
  })

const figureOf = async (calls: number, work: () => Promise<void>): Promise<Figure> => {
  const before = process.cpuUsage()
  const began = performance.now()
  await work()
  const seconds = (performance.now() - began) / 1_000
  const { user, system } = process.cpuUsage(before)
  return {
    rate: calls / seconds,
    notes: {
      'CPU µs/call': (user + system) / calls,
      'RSS MB': process.memoryUsage.rss() / 1e6,
    },
  }
}

type Ends = { readonly source: Source; readonly appender: Appender }

/** One partition after the other, the next batch read while the last is appended. */
const copy = async ({ source, appender }: Ends): Promise<void> => {
  const topic: Topic = 'calls'
  let appending: Promise<unknown> = Promise.resolve()
  for (const [partition, { start, end }] of (await source.bounds(topic)).entries())
    for await (const { entries } of source.read({ topic, partition, from: start, until: end }))
      for (let at = 0; at < entries.length; at += appendMax) {
        const part: readonly Entry[] = entries.slice(at, at + appendMax)
        await appending
        appending = appender.append('outbound.replay', part)
      }
  await appending
}

const replay = async (pool: Pool, calls: number): Promise<void> => {
  const at = new Date()
  const id = await insertReplay(pool, {
    ...{ workspaceId: 1, destinationId: 1, actor: 'bench', by: 'receivedAt', sourceIds: [1], at },
    ...{ since: new Date(0), until: new Date(at.getTime() + 3_600_000) },
    ...{ types: null, events: null, userIds: null, anonymousIds: null, reasons: null },
    ratePerSecond: 10_000_000,
  })
  if (typeof id !== 'number') throw new Error(id)
  for (;;) {
    const found = await findReplay(pool, id)
    if (found?.state === 'draining') {
      if (found.sent !== calls) throw new Error(`${found.sent} sent of ${calls}`)
      break
    }
    if (found?.trouble) throw new Error(found.trouble)
    await sleep(replayLimits.paceMs / 4)
  }
  await pool.query('update replay set settled = true where id = $1', [id])
}
