// The deliver stage as a process of its own that dies at the point it is told to: forked by life.ts, never by hand.
import { once } from 'node:events'
import { flushCompileCache } from 'node:module'
import { setTimeout as sleep } from 'node:timers/promises'
import { pino } from 'pino'
import { openAlerts } from '../../src/deliver/alerts.ts'
import { startDeliver } from '../../src/deliver/deliver.ts'
import { openMeter } from '../../src/deliver/meter.ts'
import { watchHeap } from '../../src/heap.ts'
import { openPost } from '../../src/http/open-post.ts'
import { openCodecs } from '../../src/log/avro.ts'
import { kafkaSource } from '../../src/log/kafka.ts'
import type { Lease, Source } from '../../src/log/log.ts'
import { postgresSource } from '../../src/log/postgres.ts'
import { openPool } from '../../src/postgres/pool.ts'
import type { Connection, Pool } from '../../src/postgres/sql.ts'
import { aDestination, aLive, aSource, to } from '../support/configuration.ts'
import type { ChildStart, Failpoint, News } from './failpoint.ts'

// A parent that is gone cannot stop it any more.
process.on('disconnect', () => process.exit(1))
const [start] = (await once(process, 'message')) as [ChildStart]
const { databaseUrl, targets, fail, clock } = start
const tell = (news: News) => void process.send?.(news)

let left = fail?.times ?? 0
const pass = (point: Failpoint): void => {
  if (fail?.at !== point) return
  left -= 1
  if (left === 0) process.kill(process.pid, 'SIGKILL')
}

watchHeap()
const logger = pino({ level: 'warn' }, pino.destination(2))
const pool = openPool({ url: databaseUrl, connectionsMax: 8, name: 'chaos' })
const isPosition = (text: string) => /update position|into position/.test(text)
const isRecording = (text: string) => text.includes('insert into duplicate_chunk')
const mortal: Pool = {
  ...pool,
  query: async (text, values) => {
    if (isRecording(text)) {
      pass('before duplicates are recorded')
      const result = await pool.query(text, values)
      pass('after duplicates are recorded')
      return result as never
    }
    if (!isPosition(text)) return (await pool.query(text, values)) as never
    pass('before a position')
    const began = performance.now()
    const result = await pool.query(text, values)
    tell({ type: 'position', tookMs: performance.now() - began })
    pass('after a position')
    return result as never
  },
  transaction: async (work, options) => {
    const did = { claim: false, settle: false }
    const result = await pool.transaction(async (tx) => {
      const done = await work(watched(tx, did))
      pass('before a commit')
      if (did.settle) pass('before a delivered row is gone')
      return done
    }, options)
    pass('after a commit')
    if (did.claim) pass('after a claim')
    return result
  },
}

const watched = (tx: Connection, did: { claim: boolean; settle: boolean }): Connection => ({
  ...tx,
  query: async (text, values) => {
    const result = await tx.query(text, values)
    if (result.rows.length > 0) {
      did.claim ||= text.includes('set lease_owner = $8')
      did.settle ||= text.startsWith('delete from parked')
    }
    return result as never
  },
})

const sourceOf = (): Source => {
  const { log } = start
  if (log.type === 'postgres') {
    const limits = log.movesSoon ? { beatMs: 200, deadAfterMs: 1_000 } : {}
    return postgresSource({ pool, logger, limits })
  }
  return kafkaSource({ ...log, logger, timing: { sessionMs: log.sessionMs, heartbeatMs: 500 } })
}

const telling = (source: Source): Source => ({
  ...source,
  join: (group, gained) =>
    source.join(group, async (lease: Lease) => {
      const reader = await gained(lease)
      if (lease.lost.aborted) return reader
      tell({ type: 'gained' })
      lease.lost.addEventListener('abort', () => tell({ type: 'lost' }), { once: true })
      return reader
    }),
})

const sourceIds = [...new Set(targets.map(({ sourceId }) => sourceId))]
const destinations = targets.map(({ url, sourceId }, at) =>
  aDestination({
    id: at + 1,
    name: `D${at + 1}`,
    sourceIds: new Set([sourceId]),
    webhooks: to(url),
  }),
)
const post = openPost({
  addresses: { allowPrivate: true, allowed: [] },
  // Each destination may have a host of its own, and all of them are here.
  resolve: async () => [{ address: '127.0.0.1', family: 4 }],
})
const source = telling(sourceOf())
const meter = openMeter()
const shut = new Set<string>()
const underWay = new Map<string, number>()
let unheard = 0
const countUnderWay = (url: string, by: 1 | -1) => {
  const count = (underWay.get(url) ?? 0) + by
  if (count === 0) underWay.delete(url)
  else underWay.set(url, count)
}
const live = aLive({
  destinations,
  sources: sourceIds.map((id) => aSource({ id, name: `s${id}` })),
})
const timeNow = () => new Date(clock.from + Math.floor((Date.now() - clock.from) * clock.speed))
const alerts =
  start.operator === undefined
    ? null
    : openAlerts({
        ...{ url: start.operator, secret: null, post, pool: mortal, live, logger },
        clock: timeNow,
      })
const deliver = startDeliver({
  ...(alerts ? { alerts } : {}),
  source,
  codecs: await openCodecs({}),
  pool: mortal,
  live,
  clock: timeNow,
  post: async (request) => {
    pass('before the request')
    countUnderWay(request.url, 1)
    const result = await post(request)
    countUnderWay(request.url, -1)
    const { answer } = result
    if (answer.type === 'temporary' && answer.status === null) unheard += 1
    pass('after the answer')
    return result
  },
  onUrlChange: ({ url, to: { breaker } }) => {
    if (breaker === 'open') shut.add(url)
    else shut.delete(url)
  },
  logger,
  meter,
  limits: start.limits,
})
const standing = setInterval(() => {
  const paused: Record<string, number> = {}
  for (const partition of meter.standing?.().partitions ?? [])
    if (partition.paused) paused[partition.paused] = (paused[partition.paused] ?? 0) + 1
  let crowded = 0
  for (const count of underWay.values()) if (count > 1) crowded += 1
  const rss = process.memoryUsage.rss()
  tell({ type: 'standing', paused, rss, shut: shut.size, crowded, unheard })
}, 100)
process.on('SIGTERM', () => void deliver.stop())
tell({ type: 'started' })
// Whoever is killed leaves nothing behind for the next one's start.
flushCompileCache()
await deliver.done
await alerts?.stop()
clearInterval(standing)
await source.close()
await post.close()
await Promise.race([pool.close(), sleep(2_000)])
process.exit(0)
