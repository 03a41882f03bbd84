// One side of the import bench in a process of its own: `bare` or `product`.
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import pino from 'pino'
import { collectLimits } from '../src/collect/limits.ts'
import { parseConfig } from '../src/config.ts'
import { digestOf, type JsonObject, logKey, type Message } from '../src/domain/message.ts'
import { uncounted } from '../src/domain/pipeline.ts'
import { nobodySuppressed } from '../src/domain/suppression.ts'
import { cutChunks } from '../src/import/cut.ts'
import { openImports } from '../src/import/imports.ts'
import { unpaced } from '../src/import/pace.ts'
import { insertImport } from '../src/import/store.ts'
import type { Entry } from '../src/log/log.ts'
import { openLog } from '../src/open-log.ts'
import { openPool } from '../src/postgres/pool.ts'
import { aConfiguration, aSource } from '../test/support/configuration.ts'
import { linesOf } from './import-calls.ts'

const { BENCH_DATABASE_URL: url = '', KAFKA_BROKERS: brokers } = process.env
const pool = openPool({ url, connectionsMax: 8, name: 'bench' })
const logger = pino({ level: 'warn' })
const clock = () => new Date()
const config = parseConfig({
  MILLRACE_DATABASE_URL: url,
  ...(brokers ? { MILLRACE_KAFKA_BROKERS: brokers, MILLRACE_KAFKA_PREFIX: 'bench-import-' } : {}),
})
const {
  source: history,
  importAppender: appender,
  codecs,
} = await openLog({ config, pool, clock, logger })
const source = aSource()
const configuration = aConfiguration({ sources: [source] })

/** The same pieces of content again and again: what is measured is what is done with them. */
const pieceLines = 250
const piece = linesOf(0, pieceLines)

async function* content(until: () => boolean): AsyncGenerator<Buffer> {
  while (!until()) yield piece
}

/** Reads the lines and appends the very bytes the product appends for them, made beforehand: nothing is looked at. */
const runBare = async (until: () => boolean): Promise<number> => {
  const entries = entriesOf(piece)
  let calls = 0
  let before: Promise<unknown> = Promise.resolve()
  for await (const { bytes } of cutChunks(content(until), { place: 0, line: 1, delimiter: null })) {
    const lines = bytes.toString().split('\n').length - 1
    const next = Array.from({ length: lines }, (_, n) => entries[(calls + n) % pieceLines] as Entry)
    await before
    if (lines > 0) before = appender.append('calls.import', next)
    calls += lines
  }
  await before
  return calls
}

const entriesOf = (lines: Buffer): readonly Entry[] => {
  const receivedAt = Date.now()
  return lines
    .toString()
    .trimEnd()
    .split('\n')
    .map((line) => bareMessage(JSON.parse(line) as JsonObject, receivedAt))
    .map((message) => ({ key: logKey(message), value: codecs.call.encode(message) }))
}

const bareMessage = (call: JsonObject, receivedAt: number): Message => {
  const { messageId, userId, event, timestamp } = call as Record<string, string>
  const identity = { workspaceId: 1, sourceId: 1, messageId: messageId as string }
  const at = Date.parse(timestamp as string)
  const library = { name: 'http', version: 'v1' }
  const context = { ...(call['context'] as JsonObject), library }
  const times = { originalTimestamp: timestamp, receivedAt: new Date(receivedAt).toISOString() }
  return {
    ...identity,
    digest: digestOf(identity),
    type: 'track',
    userId: userId as string,
    anonymousId: null,
    previousId: null,
    groupId: null,
    event: event as string,
    timestamp: at,
    originalTimestamp: at,
    sentAt: null,
    receivedAt,
    body: Buffer.from(JSON.stringify({ ...call, context, ...times })),
    filtered: null,
  }
}

const imports = openImports({
  pool,
  live: { now: () => configuration, onChange: () => () => undefined },
  clock,
  logger,
  appender,
  history,
  codec: codecs.call,
  pipeline: uncounted,
  suppressions: nobodySuppressed,
  limitsOf: () => collectLimits,
  planOf: () => undefined,
  pace: unpaced,
})

const runProduct = async (until: () => boolean): Promise<number> => {
  const made = await insertImport(pool, {
    sourceId: 1,
    identity: randomUUID(),
    key: randomUUID(),
    name: 'bench',
    actor: 'bench',
    format: 'ndjson',
    mapping: null,
    columns: null,
    dryRun: false,
    bytes: null,
    at: clock(),
  })
  const uploaded = await imports.upload(made, content(until))
  assert.ok('taken' in uploaded)
  assert.equal(uploaded.taken.rejected, 0)
  return uploaded.taken.accepted
}

const counted = async (): Promise<number> =>
  (await history.bounds('calls.import')).reduce((sum, { end }) => sum + Number(end), 0)

const work = process.argv[2] === 'bare' ? runBare : runProduct

process.on('disconnect', () => process.exit(0))
process.on('message', async ({ seconds }: { readonly seconds: number }) => {
  const before = await counted()
  const cpu = process.cpuUsage()
  const startedAt = performance.now()
  const calls = await work(() => performance.now() - startedAt > seconds * 1_000)
  const took = (performance.now() - startedAt) / 1_000
  const { user, system } = process.cpuUsage(cpu)
  const appended = (await counted()) - before
  process.send?.(
    appended === calls
      ? { calls, seconds: took, cpuMicros: user + system, rssBytes: process.memoryUsage.rss() }
      : { error: `the log holds ${appended} of ${calls} calls` },
  )
})
process.send?.({})
