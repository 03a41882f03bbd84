// A chunk: one transaction that turns the unsynced changes of up to 1,000 users into outbox rows.
import { setTimeout as sleep } from 'node:timers/promises'
import type { Change } from '../domain/change.ts'
import { renderChange } from '../domain/change.ts'
import type { Outbound } from '../domain/message.ts'
import { type Connection, isReplayable } from '../postgres/sql.ts'
import { type ChangedRow, readChanged, readPlace, saveChunk } from './chunk-store.ts'
import { type Term, termLost } from './term.ts'

/** An audience as a run syncs it: live, and with somewhere to send to. */
export type RunAudience = Change['audience'] & { readonly destinationIds: readonly number[] }

export type Run = {
  readonly id: number
  readonly audiences: ReadonlyMap<number, RunAudience>
  readonly barrier: readonly bigint[]
}

type Chunk = { readonly emitted: number; readonly last: boolean }

/** Chunk after chunk until nothing of the shard is due or unsynced; calls back with what each emitted. */
export const syncShard = async (
  term: Term,
  { run, shard }: { readonly run: Run; readonly shard: number },
  emitted: (count: number) => Promise<void>,
): Promise<number> => {
  for (let chunks = 1; ; chunks++) {
    term.signal.throwIfAborted()
    const chunk = await replayed(term, run, shard)
    if (chunk.emitted > 0) await emitted(chunk.emitted)
    if (chunk.last) return chunks
  }
}

/** The projector may write the same users meanwhile: then the chunk is replayed, smaller each time. */
const replayed = async (term: Term, run: Run, shard: number): Promise<Chunk> => {
  const { pool, limits, logger } = term.deps
  let users = limits.chunkUsersMax
  for (let replays = 0; ; replays++) {
    try {
      return await pool.transaction((tx) => syncChunk(term, { tx, run, shard, users }), {
        isolation: 'repeatable read',
      })
    } catch (error) {
      if (!isReplayable(error) || replays >= limits.chunkReplaysMax) throw error
      logger.debug({ runId: run.id, shard, users, replays }, 'chunk.replayed')
      users = Math.max(1, users >> 1)
      await sleep(Math.random() * Math.min(10 * (replays + 1), 200))
    }
  }
}

type Here = {
  readonly tx: Connection
  readonly run: Run
  readonly shard: number
  readonly users: number
}

const syncChunk = async (term: Term, { tx, run, shard, users }: Here): Promise<Chunk> => {
  const { clock, sweepDue } = term.deps
  const { at, ...place } = await readPlace(tx, { runId: run.id, shard, now: clock() })
  if (place.epoch !== term.epoch) throw termLost()
  const swept = place.due ? await sweepDue(tx, { shard, at, limit: users }) : 0
  const changed = await readChanged(tx, {
    shard,
    audienceIds: [...run.audiences.keys()],
    limit: users,
  })
  const messages = render(changed, { run, shard, at, seq: place.seq })
  await saveChunk(tx, { runId: run.id, shard, chunk: place.chunk, at, changed, messages })
  return { emitted: messages.length, last: swept < users && changed.length < users }
}

type Under = {
  readonly run: Run
  readonly shard: number
  readonly at: Date
  readonly seq: number
}

const render = (changed: readonly ChangedRow[], { run, shard, at, seq }: Under) => {
  const messages: Outbound[] = []
  for (const { audienceId, userId, member } of changed) {
    const audience = run.audiences.get(audienceId) as RunAudience
    const first = seq + messages.length + 1
    const places = audience.destinationIds.map((destinationId, index) => ({
      shard,
      seq: first + index,
      destinationId,
    }))
    messages.push(...renderChange({ audience, userId, member, at }, places))
  }
  return messages
}
