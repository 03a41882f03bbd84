// A deliver process that has too few descriptors for what it is to send: forked by descriptors.chaos.test.ts.
import { once } from 'node:events'
import { pino } from 'pino'
import { startDeliver } from '../../src/deliver/deliver.ts'
import { openPost } from '../../src/http/open-post.ts'
import { openCodecs } from '../../src/log/avro.ts'
import { postgresSource } from '../../src/log/postgres.ts'
import { openPool } from '../../src/postgres/pool.ts'
import { aDestination, aLive, to } from '../support/configuration.ts'

export type FewStart = { readonly databaseUrl: string; readonly urls: readonly string[] }
export type FewNews = { readonly breaker: string; readonly state: string }

process.on('disconnect', () => process.exit(1))
const [start] = (await once(process, 'message')) as [FewStart]
const logger = pino({ level: 'silent' })
const pool = openPool({ url: start.databaseUrl, connectionsMax: 4, name: 'few' })
const destinations = start.urls.map((url, at) =>
  aDestination({ id: at + 1, name: `D${at + 1}`, webhooks: to(url) }),
)
const post = openPost({ addresses: { allowPrivate: true, allowed: [] } })
// Its descriptors are taken before anything else takes them.
await Promise.all(Array.from({ length: 4 }, () => pool.query('select pg_sleep(0.1)')))
const deliver = startDeliver({
  source: postgresSource({ pool, logger }),
  codecs: await openCodecs({}),
  pool,
  live: aLive({ destinations }),
  clock: () => new Date(),
  post,
  logger,
  onUrlChange: ({ to: { breaker, state } }) => process.send?.({ breaker, state } satisfies FewNews),
})
await deliver.done
