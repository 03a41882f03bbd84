// The log on Postgres: appender and source over one database, the embedded default.
import type { Logger } from 'pino'
import { Fault } from '../fault.ts'
import type { Pool } from '../postgres/sql.ts'
import type { Clock } from '../running.ts'
import type { Batch, Membership, Range, Source } from './log.ts'
import { type Partitions, partitionsOf } from './partitions.ts'
import { type AppenderDeps, postgresAppender } from './postgres-append.ts'
import { type Cursor, type Fetched, fetchChunks } from './postgres-fetch.ts'
import { joinGroup, type MemberLimits, memberLimits } from './postgres-member.ts'
import { openPartitions, selectBounds, selectOffsetsAt } from './postgres-store.ts'
import { openWakes, signal, type Wakes } from './postgres-wake.ts'

export { maintainPostgresLog } from './postgres-maintain.ts'
export { type AppenderDeps, postgresAppender }

type SourceDeps = {
  readonly pool: Pool
  readonly partitions?: number | Partitions
  readonly logger?: Logger
  /** What the appender of the same log is given; reading itself needs no clock. */
  readonly clock?: Clock
  readonly limits?: Partial<MemberLimits>
}

/** Each membership, and the listening, keep a connection of their own. */
export const postgresSource = (deps: SourceDeps): Source => {
  const { pool, partitions, logger } = deps
  const limits = { ...memberLimits, ...deps.limits }
  const wakes = openWakes(pool, logger)
  const memberships = new Set<Membership>()
  const closing = new AbortController()
  let opening: Promise<unknown> | null = null
  const opened = () => {
    opening ??= openPartitions(pool, partitionsOf(partitions)).catch((error: unknown) => {
      opening = null
      throw error
    })
    return opening
  }
  return {
    join: (group, gained) => {
      const membership = joinGroup({ pool, logger, wakes, opened, limits }, group, gained)
      memberships.add(membership)
      return membership
    },
    read: (range) => readRange({ pool, wakes, opened, closed: closing.signal }, range),
    bounds: async (topic) => {
      await opened()
      return selectBounds(pool, topic)
    },
    offsetsAt: async (topic, at) => {
      await opened()
      return selectOffsetsAt(pool, topic, at)
    },
    close: async () => {
      closing.abort()
      await Promise.all([...memberships].map(({ stop }) => stop()))
      await wakes.close()
    },
  }
}

const readLimits = { bytesMax: 1_048_576, pollMs: 250 } as const

type ReadDeps = {
  readonly pool: Pool
  readonly wakes: Wakes
  readonly opened: () => Promise<unknown>
  readonly closed: AbortSignal
}

async function* readRange(deps: ReadDeps, range: Range): AsyncGenerator<Batch> {
  const { pool, wakes, closed } = deps
  const { topic, partition, until } = range
  await deps.opened()
  const waiting = signal()
  const unsubscribe = wakes.on((name) => {
    if (name === null || name === topic) waiting.wake()
  })
  try {
    let cursor: Cursor = { topic, partition, from: range.from, until, after: new Date(0) }
    while (cursor.from < until) {
      if (closed.aborted) throw new Fault('log_closed', `reading ${topic} outlived its source`)
      const [fetched] = await fetchChunks(pool, [cursor], readLimits.bytesMax)
      const { start, batch, after, chunks } = fetched as Fetched
      if (cursor.from < start) cursor = { ...cursor, from: start }
      else if (batch === null) await waiting.wait(readLimits.pollMs)
      else {
        yield clip(batch, until)
        cursor = { topic, partition, from: batch.next, until, after, chunks }
      }
    }
  } finally {
    unsubscribe()
  }
}

const clip = (batch: Batch, until: bigint): Batch =>
  batch.next <= until
    ? batch
    : { ...batch, next: until, entries: batch.entries.filter(({ offset }) => offset < until) }
