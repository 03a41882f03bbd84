// Group commit: one append in flight; whatever waits meanwhile goes into the next one.
import { Fault } from '../fault.ts'
import { isReplayable, type Pool, type Sql } from '../postgres/sql.ts'
import type { Clock } from '../running.ts'
import { type Appender, type At, type Entry, placeOf, type Topic } from './log.ts'
import { type Partitions, partitionsOf } from './partitions.ts'
import { type Packed, pack, type Slot, sizeOf } from './postgres-chunk.ts'
import { openSession, type Session } from './postgres-session.ts'
import { type FirstOffset, openPartitions, storeChunks } from './postgres-store.ts'
import { within } from './within.ts'

export const appendLimits = {
  /** Bytes taken into one commit; a single larger append still goes, alone. */
  commitBytesMax: 4_194_304,
  /** Bytes waiting for a commit; an append beyond it is refused at once. */
  waitingBytesMax: 67_108_864,
  /** The port promises 5 s; this leaves time to say so. */
  deadlineMs: 4_500,
} as const

export type AppendLimits = { readonly [name in keyof typeof appendLimits]: number }

export type AppenderDeps = {
  readonly pool: Pool
  readonly clock: Clock
  readonly partitions?: number | Partitions
  readonly limits?: Partial<AppendLimits>
}

type Waiting = {
  readonly topic: Topic
  readonly entries: readonly Entry[]
  readonly bytes: number
  readonly deadline: number
  readonly resolve: (places: readonly At[]) => void
  readonly reject: (error: Fault) => void
}

export const postgresAppender = (deps: AppenderDeps): Appender => {
  const limits = { ...appendLimits, ...deps.limits }
  const writer = openWriter(deps)
  const queue: Waiting[] = []
  let waitingBytes = 0
  let closed = false
  let draining: Promise<void> | null = null

  const drain = async () => {
    for (let batch = gather(queue, limits); batch.length > 0; batch = gather(queue, limits)) {
      await commit(writer, batch)
      for (const { bytes } of batch) waitingBytes -= bytes
    }
    draining = null
  }

  return {
    append: (topic, entries) => {
      if (closed)
        return Promise.reject(new Fault('log_closed', 'the appender was closed before this append'))
      if (entries.length === 0) return Promise.resolve([])
      const bytes = entries.reduce((sum, entry) => sum + sizeOf(entry), 0)
      if (waitingBytes > 0 && waitingBytes + bytes > limits.waitingBytesMax)
        return Promise.reject(unavailable('too many bytes wait to be appended'))
      waitingBytes += bytes
      return new Promise((resolve, reject) => {
        const deadline = performance.now() + limits.deadlineMs
        queue.push({ topic, entries, bytes, deadline, resolve, reject })
        // In the next turn: what one turn appends goes into one commit.
        draining ??= Promise.resolve().then(drain)
      })
    },
    close: async () => {
      closed = true
      await draining
      await writer.end()
    },
  }
}

const unavailable = (message: string, cause?: unknown) =>
  new Fault('log_unavailable', message, { cause, retriable: true })

/** Takes from the head of the queue; what came too close to its deadline goes alone, to fail alone. */
const gather = (queue: Waiting[], { commitBytesMax }: AppendLimits): readonly Waiting[] => {
  const nearMs = 250
  const near = queue.findIndex(({ deadline }) => deadline > performance.now() + nearMs)
  if (near !== 0) return queue.splice(0, near === -1 ? queue.length : near)
  let bytes = 0
  let count = 0
  for (const waiting of queue) {
    bytes += waiting.bytes
    if (count > 0 && bytes > commitBytesMax) break
    count++
  }
  return queue.splice(0, count)
}

type Writer = {
  write(batch: readonly Waiting[]): Promise<readonly (readonly At[])[]>
  end(): Promise<void>
}

const commit = async (writer: Writer, batch: readonly Waiting[]) => {
  const remaining = (batch[0]?.deadline ?? 0) - performance.now()
  try {
    const places = await within(remaining, 'append', writer.write(batch))
    batch.forEach(({ resolve }, index) => {
      resolve(places[index] ?? [])
    })
  } catch (cause) {
    // Whatever it was, the statement may still be running: the next one gets a fresh connection.
    void writer.end()
    const message = cause instanceof Error ? cause.message : String(cause)
    for (const { reject } of batch) reject(unavailable(`the log took no append: ${message}`, cause))
  }
}

/** One statement: one that was a deadlock's victim has written nothing. */
const storeReplaying = async (
  sql: Sql,
  packed: Packed,
  clock: Clock,
): Promise<readonly FirstOffset[]> => {
  try {
    return await storeChunks(sql, packed, clock())
  } catch (error) {
    if (!isReplayable(error)) throw error
    return storeReplaying(sql, packed, clock)
  }
}

/** A session kept between appends, so that they never queue for a connection behind the stages. */
const openWriter = ({ pool, clock, partitions }: AppenderDeps): Writer => {
  let counts: Partitions | null = null
  let session: Promise<Session> | null = null
  const open = async () => {
    const opened = await openSession(pool)
    try {
      // A statement given up on must not go on waiting for a lock behind our back.
      await opened.connection.query(`set statement_timeout = '5s'`)
      return opened
    } catch (error) {
      await opened.end()
      throw error
    }
  }
  return {
    write: async (batch) => {
      session ??= open()
      const { connection } = await session
      counts ??= await openPartitions(connection, partitionsOf(partitions))
      const packed = pack(batch, counts)
      return placesOf(packed.slots, await storeReplaying(connection, packed, clock))
    },
    end: async () => {
      const ending = session
      session = null
      await ending?.then(
        ({ end }) => end(),
        () => undefined,
      )
    },
  }
}

const placesOf = (
  slots: readonly (readonly Slot[])[],
  firsts: readonly FirstOffset[],
): readonly (readonly At[])[] => {
  const first = new Map(firsts.map((row) => [placeOf(row), row.first]))
  return slots.map((append) =>
    append.map(({ topic, partition, index }) => {
      const offset = first.get(placeOf({ topic, partition }))
      if (offset === undefined) throw new Error(`${topic} has no partition ${partition}`)
      return { partition, offset: offset + BigInt(index) }
    }),
  )
}
