// The deliver stage as a process of its own that dies at the point it is told to: forked by line.ts, never by hand.
import { setTimeout as sleep } from 'node:timers/promises'
import { pino } from 'pino'
import { startDeliver } from '../../src/deliver/deliver.ts'
import { undiciPost } from '../../src/http/undici-post.ts'
import { openCodecs } from '../../src/log/avro.ts'
import { postgresSource } from '../../src/log/postgres.ts'
import { openPool } from '../../src/postgres/pool.ts'
import type { Pool } from '../../src/postgres/sql.ts'
import { aDestination, aLive, to } from '../support/configuration.ts'
import type { ChildStart, Failpoint } from './failpoint.ts'

const start = JSON.parse(process.argv[2] ?? '') as ChildStart
const { databaseUrl, urls, fail, clock } = start

let left = fail?.times ?? 0
const pass = (point: Failpoint): void => {
  if (fail?.at !== point) return
  left -= 1
  if (left === 0) process.kill(process.pid, 'SIGKILL')
}

const pool = openPool({ url: databaseUrl, connectionsMax: 8, name: 'chaos' })
const isPosition = (text: string) => /update position|into position/.test(text)
const mortal: Pool = {
  ...pool,
  query: async (text, values) => {
    if (isPosition(text)) pass('before a position')
    const result = await pool.query(text, values)
    if (isPosition(text)) pass('after a position')
    return result as never
  },
  transaction: async (work, options) => {
    const result = await pool.transaction(async (tx) => {
      const done = await work(tx)
      pass('before a commit')
      return done
    }, options)
    pass('after a commit')
    return result
  },
}

const logger = pino({ level: 'warn' }, pino.destination(2))
const post = undiciPost({ addresses: { allowPrivate: true, allowed: [] } })
const source = postgresSource({
  pool,
  logger,
  limits: { beatMs: 200, deadAfterMs: 1_000 },
})
const destinations = urls.map((url, at) =>
  aDestination({ id: at + 1, name: `D${at + 1}`, webhooks: to(url) }),
)
const deliver = startDeliver({
  source,
  codecs: await openCodecs({}),
  pool: mortal,
  live: aLive({ destinations }),
  clock: () => new Date(clock.from + Math.floor((Date.now() - clock.from) * clock.speed)),
  post: async (request) => {
    pass('before the request')
    const result = await post(request)
    pass('after the answer')
    return result
  },
  logger,
})
// A parent that is gone cannot stop it any more.
process.on('disconnect', () => process.exit(1))
process.on('SIGTERM', () => void deliver.stop())
process.send?.('started')
await deliver.done
await source.close()
await post.close()
await Promise.race([pool.close(), sleep(2_000)])
process.exit(0)
