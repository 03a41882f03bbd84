// Pages: messages about all members of one audience, some hundred users a transaction.
import { setTimeout as sleep } from 'node:timers/promises'
import { type Change, renderChange } from '../domain/change.ts'
import { type Connection, isReplayable } from '../postgres/sql.ts'
import { type Member, readPage, savePage } from './page-store.ts'
import { type Term, termLost } from './term.ts'

export type Telling = {
  readonly runId: number
  readonly audience: Change['audience']
  readonly destinationIds: readonly number[]
  readonly after: number
  /** What is said of each: that they are in it, or that they are not any more. */
  readonly member: boolean
  /** In the transaction of the messages; `last` is `null` when there were no more members. */
  readonly told: (tx: Connection, members: readonly Member[], last: number | null) => Promise<void>
}

/** Returns the last user told of, `null` when there are no more. */
export const tellPage = async (term: Term, telling: Telling): Promise<number | null> => {
  const { pool, limits } = term.deps
  for (let replays = 0; ; replays++) {
    term.signal.throwIfAborted()
    try {
      return await pool.transaction((tx) => writePage(term, tx, telling), {
        isolation: 'repeatable read',
      })
    } catch (error) {
      if (!isReplayable(error) || replays >= limits.chunkReplaysMax) throw error
      await sleep(Math.random() * Math.min(10 * (replays + 1), 200))
    }
  }
}

const writePage = async (term: Term, tx: Connection, telling: Telling) => {
  const { audience, destinationIds, member, runId, told } = telling
  const limit = term.deps.limits.chunkUsersMax
  const { epoch, at, seqs, members } = await readPage(tx, {
    audienceId: audience.id,
    after: telling.after,
    limit,
    now: term.deps.clock(),
  })
  if (epoch !== term.epoch) throw termLost()
  const given = [...seqs]
  const messages = members.flatMap(({ shard, userId, value }) => {
    const places = destinationIds.map((destinationId) => {
      const seq = (given[shard] ?? 0) + 1
      given[shard] = seq
      return { shard, seq, destinationId }
    })
    return renderChange({ audience, userId, member, value: member ? value : null, at }, places)
  })
  if (messages.length > 0) await savePage(tx, { runId, at, messages })
  const last = members.length < limit ? null : (members.at(-1)?.userKey ?? null)
  await told(tx, members, last)
  return last
}
