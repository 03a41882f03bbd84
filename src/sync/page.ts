// Pages: messages about all members of one audience, some hundred users a transaction.
import { setTimeout as sleep } from 'node:timers/promises'
import { type Change, renderChange } from '../domain/change.ts'
import { type Connection, isReplayable } from '../postgres/sql.ts'
import { type Member, openPage, readMembers, savePage } from './page-store.ts'
import { type Term, termLost } from './term.ts'

type About = {
  readonly runId: number
  readonly audience: Change['audience']
  readonly destinationIds: readonly number[]
  /** What is said of each: that they are in it, or that they are not any more. */
  readonly member: boolean
}

export type Telling = About & {
  readonly after: number
  /** In the transaction of the messages; `last` is `null` when there were no more members. */
  readonly told: (tx: Connection, members: readonly Member[], last: number | null) => Promise<void>
}

type Named = Omit<Member, 'userKey'>

/** Reads the next users and does what follows from their being told, in one transaction with that. */
type Take<M extends Named> = (tx: Connection, limit: number) => Promise<readonly M[]>

/** Of those it was told are in it. Returns the last user told of, `null` when there are no more. */
export const tellPage = async (term: Term, telling: Telling): Promise<number | null> => {
  const { audience, after, told } = telling
  let last: number | null = null
  await tellTaken(term, telling, async (tx, limit) => {
    const members = await readMembers(tx, { audienceId: audience.id, after, limit })
    last = members.length < limit ? null : (members.at(-1)?.userKey ?? null)
    await told(tx, members, last)
    return members
  })
  return last
}

/** Returns how many users were told of. */
export const tellTaken = async <M extends Named>(
  term: Term,
  about: About,
  take: Take<M>,
): Promise<number> => {
  const { pool, limits } = term.deps
  for (let replays = 0; ; replays++) {
    term.signal.throwIfAborted()
    try {
      return await pool.transaction((tx) => writePage(term, tx, { ...about, take }), {
        isolation: 'repeatable read',
      })
    } catch (error) {
      if (!isReplayable(error) || replays >= limits.chunkReplaysMax) throw error
      await sleep(Math.random() * Math.min(10 * (replays + 1), 200))
    }
  }
}

type Writing<M extends Named> = About & { readonly take: Take<M> }

const writePage = async <M extends Named>(
  term: Term,
  tx: Connection,
  { audience, destinationIds, member, runId, take }: Writing<M>,
): Promise<number> => {
  const { epoch, at, seqs } = await openPage(tx, term.deps.clock())
  if (epoch !== term.epoch) throw termLost()
  const members = await take(tx, term.deps.limits.chunkUsersMax)
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
  return members.length
}
