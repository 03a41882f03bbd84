// The archive stage on a real database and a real folder, with the log in memory and the product's own codecs.
import pino from 'pino'
import { startArchive } from '../../src/archive/archive.ts'
import { archiveHistory } from '../../src/archive/history.ts'
import type { ArchivedTopic } from '../../src/archive/name.ts'
import type { ArchiveDeps } from '../../src/archive/stage.ts'
import { openStore, type Store } from '../../src/archive/store.ts'
import { digestOf, logKey, type Message } from '../../src/domain/message.ts'
import { openCodecs } from '../../src/log/avro.ts'
import type { Batch, History, Recorded } from '../../src/log/log.ts'
import { memoryLog } from '../../src/log/memory.ts'
import type { Pool } from '../../src/postgres/sql.ts'
import type { Running } from '../../src/running.ts'
import { ownFolder } from '../support/folder.ts'

export const codecs = await openCodecs({})
export const day = 86_400_000
export const start = Date.UTC(2026, 0, 10)

let sent = 0

export const aCall = (over: Partial<Message> & { readonly text?: string } = {}): Message => {
  const { text, ...fields } = over
  const identity = { workspaceId: 1, sourceId: 1, messageId: `m${++sent}`, ...fields }
  return {
    type: 'track',
    userId: 'u1',
    anonymousId: null,
    previousId: null,
    groupId: null,
    event: 'Ordered',
    timestamp: start,
    originalTimestamp: start,
    sentAt: null,
    receivedAt: start,
    filtered: null,
    ...identity,
    digest: digestOf(identity),
    body: Buffer.from(text ?? JSON.stringify({ properties: { price: sent } })),
  }
}

export const aFolder = async (): Promise<string> => {
  const folder = await ownFolder('archive')
  return folder
}

export const until = async (what: string, holds: () => Promise<boolean>): Promise<void> => {
  const deadline = performance.now() + 120_000
  while (!(await holds())) {
    if (performance.now() > deadline) throw new Error(`waited in vain until ${what}`)
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
}

export const aRig = async (pool: Pool, store?: Store) => {
  await pool.query('truncate position, archive_segment, archive_partition')
  let now = start
  const clock = () => new Date(now)
  const log = memoryLog({ partitions: 2, clock })
  const appender = log.appender()
  const source = log.source()
  const folder = await aFolder()
  const kept = store ?? openStore({ place: { type: 'folder', path: folder }, credentials: null })
  const topics: readonly ArchivedTopic[] = ['calls', 'calls.import']
  const running: Running[] = []
  const rig = {
    pool,
    log,
    folder,
    source,
    store: kept,
    clock,
    advance: (ms: number) => {
      now += ms
    },
    start: (over: Partial<ArchiveDeps> = {}): Running => {
      const deps = { codecs, pool, clock, topics, store: kept, logger: pino({ level: 'silent' }) }
      const stage = startArchive({
        ...deps,
        source: log.source(),
        compression: 'zstd',
        ...over,
        limits: { tickMs: 5, retryMs: 5, idleMs: 50, ...over.limits },
      })
      stage.done.catch(() => undefined)
      running.push(stage)
      return stage
    },
    stop: async () => {
      await Promise.all(running.splice(0).map((each) => each.stop().catch(() => undefined)))
    },
    send: async (...calls: readonly Message[]) => {
      for (const call of calls) {
        const entry = { key: logKey(call), value: codecs.call.encode(call) }
        await appender.append('calls', [entry])
      }
    },
    appender,
    /** Everything in the log is in a segment of the index. */
    archived: async (...wanted: readonly ArchivedTopic[]) => {
      for (const topic of wanted.length === 0 ? (['calls'] as const) : wanted)
        await until(`${topic} is archived`, async () => {
          const { rows } = await pool.query<{ partition: number; next: bigint }>(
            `select partition, next from position where reader = 'archive' and topic = $1`,
            [topic],
          )
          const nexts = new Map(rows.map(({ partition, next }) => [partition, next]))
          const bounds = await source.bounds(topic)
          return bounds.every(({ end }, partition) => (nexts.get(partition) ?? 0n) >= end)
        })
    },
    history: (log: History = source, over: Store = kept): History =>
      archiveHistory({ log, pool, store: over, codecs }),
    files: async () => {
      const files: string[] = []
      for await (const { path } of kept.list('')) files.push(path)
      return files
    },
    named: async () => {
      const { rows } = await pool.query<{ path: string }>(
        'select path from archive_segment order by path',
      )
      return rows.map(({ path }) => path)
    },
  }
  return rig
}

export type Rig = Awaited<ReturnType<typeof aRig>>

/** Reads a range and holds each batch to what batches promise: they follow each other without gap or overlap. */
export const readAll = async (
  history: Pick<History, 'read'>,
  range: Parameters<History['read']>[0],
  begin = range.from,
): Promise<readonly Recorded[]> => {
  const entries: Recorded[] = []
  let next = begin
  for await (const batch of history.read(range)) {
    if (batch.from !== next) throw new Error(`a batch begins at ${batch.from}, not at ${next}`)
    entries.push(...inside(batch))
    next = batch.next
  }
  if (next !== range.until && range.until > begin) throw new Error(`it ended at ${next}`)
  return entries
}

const inside = ({ from, next, entries }: Batch): readonly Recorded[] => {
  let last = from - 1n
  for (const { offset } of entries) {
    if (offset <= last || offset >= next) throw new Error(`offset ${offset} is out of its batch`)
    last = offset
  }
  return entries
}

/** Comparable, and readable when it differs. */
export const plain = (entries: readonly Recorded[]) =>
  entries.map(({ offset, key, value }) => [
    Number(offset),
    key,
    Buffer.from(value).toString('base64'),
  ])

/** What comes of an async iterable, in a list. */
export const gathered = async <T>(items: AsyncIterable<T>): Promise<readonly T[]> => {
  const list: T[] = []
  for await (const item of items) list.push(item)
  return list
}
