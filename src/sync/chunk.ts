// Chunks: the unsynced changes of at most 1,000 users become outbox rows in one transaction.
//
// A chunk is of one shard. Where few users changed, one transaction carries the chunks of several
// shards: they share its snapshot and instant, and each is recorded for itself.
import { setTimeout as sleep } from 'node:timers/promises'
import type { Change } from '../domain/change.ts'
import { renderChange, renderEntry } from '../domain/change.ts'
import type { Outbound } from '../domain/message.ts'
import { type Connection, isReplayable } from '../postgres/sql.ts'
import {
  type ChangedRow,
  type Chunk,
  claimChanged,
  type Place,
  readPlaces,
  saveChunks,
} from './chunk-store.ts'
import { type Leaver, noteLeavers } from './leaver-store.ts'
import { type Term, termLost } from './term.ts'

/** An audience as a run syncs it: live, and with somewhere to send to. */
export type RunAudience = Change['audience'] & {
  readonly destinationIds: readonly number[]
  /** Those of its destinations that are off. */
  readonly awayIds: readonly number[]
  readonly entryEvents: boolean
}

export type Run = {
  readonly id: number
  readonly audiences: ReadonlyMap<number, RunAudience>
  readonly barrier: readonly bigint[]
}

type Step = {
  readonly chunks: number
  /** In the outbox, each shard's in order. */
  readonly messages: readonly Outbound[]
  /** Shards that may hold more. */
  readonly rest: readonly number[]
}

/** Until nothing of the shards is due or unsynced; `stepped` hears of every transaction. */
export const syncShards = async (
  term: Term,
  { run, shards }: { readonly run: Run; readonly shards: readonly number[] },
  stepped: (step: Step) => Promise<void>,
): Promise<void> => {
  let rest = shards
  while (rest.length > 0) {
    term.signal.throwIfAborted()
    const step = await replayed(term, run, rest)
    rest = step.rest
    await stepped(step)
  }
}

/** The projector may write the same users meanwhile: then it is done again, smaller each time. */
const replayed = async (term: Term, run: Run, shards: readonly number[]): Promise<Step> => {
  const { pool, limits, logger } = term.deps
  let users = limits.chunkUsersMax
  for (let replays = 0; ; replays++) {
    try {
      return await pool.transaction((tx) => syncChunks(term, { tx, run, shards, users }), {
        isolation: 'repeatable read',
      })
    } catch (error) {
      if (!isReplayable(error) || replays >= limits.chunkReplaysMax) throw error
      logger.debug({ runId: run.id, shards, users, replays }, 'chunk.replayed')
      users = Math.max(1, users >> 1)
      await sleep(Math.random() * Math.min(10 * (replays + 1), 200))
    }
  }
}

type Here = {
  readonly tx: Connection
  readonly run: Run
  readonly shards: readonly number[]
  /** All chunks of the transaction together. */
  readonly users: number
}

const syncChunks = async (term: Term, { tx, run, shards, users }: Here): Promise<Step> => {
  const now = term.deps.clock()
  const asked = { runId: run.id, shards, audienceIds: [...run.audiences.keys()], now }
  const { epoch, at, live, places } = await readPlaces(tx, asked)
  if (epoch !== term.epoch) throw termLost()
  const swept = await sweepPlaces(term, { tx, at, places, users })
  const inHand = swept.places.map(({ shard }) => shard)
  const changed = await claimChanged(tx, { shards: inHand, audienceIds: live, limit: users })
  // Rows come shard by shard: only the last shard of a full reading may hold more.
  const last = changed.length < users ? undefined : changed.at(-1)?.shard
  const whole = last === undefined ? inHand.length : inHand.indexOf(last) + 1
  const chunks = swept.places.slice(0, whole).map((place) => chunkOf(place, { run, at, changed }))
  await saveChunks(tx, { runId: run.id, at, chunks })
  await noteLeavers(tx, leaversIn(run, chunks))
  const full = last !== undefined || swept.full
  return {
    chunks: chunks.length,
    messages: chunks.flatMap(({ messages }) => messages),
    rest: full ? shards.slice(whole - 1) : [],
  }
}

/** What destinations that are off do not hear. */
const leaversIn = ({ audiences }: Run, chunks: readonly Chunk[]): readonly Leaver[] =>
  chunks.flatMap(({ changed }) =>
    changed.flatMap(({ audienceId, userId, shard, member }) =>
      (audiences.get(audienceId)?.awayIds ?? []).map((destinationId) => ({
        ...{ audienceId, destinationId, userId, shard },
        isGone: !member,
      })),
    ),
  )

type Sweep = {
  readonly tx: Connection
  readonly at: Date
  readonly places: readonly Place[]
  readonly users: number
}

/** Sweeps place after place; those after the one that used up the users are left for the next time. */
const sweepPlaces = async ({ deps }: Term, { tx, at, places, users }: Sweep) => {
  let left = users
  for (const [index, { shard, due }] of places.entries()) {
    if (!due) continue
    left -= await deps.sweepDue(tx, { shard, at, limit: left })
    if (left <= 0) return { places: places.slice(0, index + 1), full: true }
  }
  return { places, full: false }
}

type Under = { readonly run: Run; readonly at: Date; readonly changed: readonly ChangedRow[] }

const chunkOf = (place: Place, { run, at, changed }: Under): Chunk => {
  const { shard, chunk } = place
  const mine = changed.filter((row) => row.shard === shard)
  const messages: Outbound[] = []
  for (const { audienceId, userId, member, value } of mine) {
    const audience = run.audiences.get(audienceId) as RunAudience
    const change = { audience, userId, member, value, at }
    const places = () => {
      const first = place.seq + messages.length + 1
      return audience.destinationIds.map((destinationId, index) => ({
        ...{ shard, destinationId },
        seq: first + index,
      }))
    }
    messages.push(...renderChange(change, places()))
    if (audience.entryEvents && audience.kind === 'audience')
      messages.push(...renderEntry(change, places()))
  }
  return { shard, chunk, changed: mine, messages }
}
