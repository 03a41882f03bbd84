// Folding history into a build's new leaves: what stands in the log before the fence, once, in chunks.
import { accountIdsOf, openPlans, type Plan, type PlannedFeed } from '../audience/plan.ts'
import type { UserState } from '../audience/state.ts'
import { lockUsers, prepareSession, saveUsers } from '../audience/store.ts'
import { marksOf, tieUsers } from '../audience/ties.ts'
import { accountOf } from '../domain/account.ts'
import type { Observation } from '../domain/condition/summary/kind.ts'
import { effectiveTime } from '../domain/condition/window.ts'
import { type Identity, whoOf } from '../domain/identity.ts'
import type { Message } from '../domain/message.ts'
import { isDropped, nobodySuppressed, type Suppressions } from '../domain/suppression.ts'
import {
  type Duplicates,
  openDuplicates,
  saveVerdicts,
  type Verdict,
} from '../duplicate/duplicates.ts'
import type { Codec, History, Source } from '../log/log.ts'
import { type Connection, type Pool, replayed } from '../postgres/sql.ts'
import {
  type Build,
  type Fence,
  moveFence,
  pinPlan,
  readFences,
  storedNext,
} from './build-store.ts'
import { fedBy } from './call.ts'
import { erasedBefore } from './erased-before.ts'
import { observe } from './fold.ts'
import type { ProjectLimits } from './limits.ts'
import { findIdentities } from './store.ts'
import type { Turns } from './turns.ts'

export type HistoryDeps = {
  readonly pool: Pool
  readonly source: Source
  /** Where the past is read; the source when absent. */
  readonly history?: History
  readonly codecs: { readonly call: Codec<Message> }
  readonly suppressions?: Suppressions
  readonly limits: ProjectLimits
  readonly turns: Turns
  /** Aborts when the stage stops. */
  readonly stopping: AbortSignal
}

/** The name duplicates are judged under: the verdict is the log's, so it is the one live reading had. */
export const historyReader = (build: Build): string => `backfill:${build.id}`

export const foldHistory = async (deps: HistoryDeps, build: Build): Promise<void> => {
  const plans = openPlans()
  for (const fence of await readFences(deps.pool, build.id)) {
    await foldPartition(deps, { build, plans }, fence)
    if (deps.stopping.aborted) return
  }
}

type Building = { readonly build: Build; readonly plans: ReturnType<typeof openPlans> }

const foldPartition = async (
  deps: HistoryDeps,
  building: Building,
  start: Fence,
): Promise<void> => {
  const { build } = building
  const { source, history = source, pool, limits, codecs, suppressions = nobodySuppressed } = deps
  const { topic, partition } = start
  const duplicates = await openDuplicates({
    sql: pool,
    reader: historyReader(build),
    topic,
    partition,
    bytesMax: limits.duplicateBytesMax,
    storedNext: (sql) => storedNext(sql, { buildId: build.id, topic, partition }),
  })
  let fence = start
  const range = { topic, partition, from: fence.next, until: fence.fence }
  for await (const { entries } of history.read(range)) {
    for (let at = 0; at < entries.length; at += limits.historyCallsMax) {
      if (deps.stopping.aborted) return
      const part = entries.slice(at, at + limits.historyCallsMax)
      const messages = await codecs.call.decode(part.map(({ value }) => value))
      const all = part.map(({ offset }, index) => ({
        offset,
        message: messages[index] as Message,
      }))
      const last = all.at(-1)
      if (last === undefined) continue
      const calls = all.filter(({ message }) => !isDropped(suppressions, message))
      const next = last.offset + 1n
      fence = await foldChunk(deps, { ...building, fence, next, calls, duplicates, suppressions })
    }
  }
  // Holes up to the fence hold nothing.
  if (!deps.stopping.aborted && fence.next < fence.fence)
    await foldChunk(deps, {
      ...{ ...building, fence, duplicates, suppressions },
      next: fence.fence,
      calls: [],
    })
}

type Chunk = Building & {
  readonly fence: Fence
  readonly next: bigint
  readonly calls: readonly { readonly offset: bigint; readonly message: Message }[]
  readonly duplicates: Duplicates
  readonly suppressions: Suppressions
}

/** Returns the fence as it moved. */
const foldChunk = async (deps: HistoryDeps, chunk: Chunk): Promise<Fence> => {
  const entries = chunk.calls.map(({ offset, message: { digest, receivedAt } }) => ({
    offset,
    digest,
    receivedAt,
  }))
  const verdict = await chunk.duplicates.judge(entries)
  await replayed(deps.limits.replaysMax, () =>
    deps.turns(() => deps.pool.transaction((tx) => writeChunk(tx, chunk, verdict))),
  )
  verdict.accept()
  return { ...chunk.fence, next: chunk.next }
}

const writeChunk = async (tx: Connection, chunk: Chunk, verdict: Verdict): Promise<void> => {
  const { build, plans, fence, next, calls, suppressions } = chunk
  await prepareSession(tx)
  await pinPlan(tx)
  const plan = await plans(tx)
  await moveFence(tx, { buildId: build.id, fence, next })
  const facts = calls.flatMap(({ message, offset }, at) =>
    verdict.duplicate[at] === true ? [] : factOf(message, { plan, build, offset }),
  )
  const subjects = [...new Map(facts.map(({ subject }) => [subject.text, subject])).values()]
  const users = await lockSubjects(tx, subjects)
  const place = { topic: fence.topic, partition: fence.partition, from: fence.next }
  const erased = await erasedBefore(tx, place, { suppressions, subjects })
  const changed = new Set<UserState>()
  const tying = new Map<UserState, Set<string>>()
  for (const { subject, feeds, groupId, offset, ...seen } of facts) {
    const user = users.get(subject.text)
    // Nobody any more, or somebody else: erased since.
    if (user === undefined || offset < (erased.get(subject.text) ?? 0n)) continue
    for (const feed of feeds) if (observe(user, feed, seen)) changed.add(user)
    if (groupId !== null) tying.set(user, (tying.get(user) ?? new Set()).add(groupId))
  }
  await saveVerdicts(tx, [verdict])
  for (const user of await tieOf(tx, tying, plan)) changed.add(user)
  await saveUsers(tx, [...changed], plan)
}

/** Once tied, tied: calls that were folded live as well change nothing. Returns whom a tie is new to. */
const tieOf = async (
  tx: Connection,
  tying: ReadonlyMap<UserState, ReadonlySet<string>>,
  plan: Plan,
): Promise<readonly UserState[]> => {
  const users = [...tying.keys()]
  const tied = await tieUsers(tx, {
    ties: [...tying].flatMap(([{ key: userKey, workspaceId }, groupIds]) =>
      [...groupIds].map((groupId) => ({ userKey, workspaceId, groupId })),
    ),
    marks: users.flatMap((user) => marksOf(user, accountIdsOf(plan, user.workspaceId))),
  })
  return users.filter(({ key }) => tied.has(key))
}

type Fact = Observation & {
  readonly subject: Identity
  readonly feeds: readonly PlannedFeed[]
  readonly groupId: string | null
  readonly offset: bigint
}

type Under = { readonly plan: Plan; readonly build: Build; readonly offset: bigint }

const factOf = (message: Message, { plan, build, offset }: Under): readonly Fact[] => {
  const fed = fedBy(message, plan)
  const feeds = fed.feeds.filter(({ leaf }) => leaf.buildId === build.id)
  const groupId = plan.accountIds.has(message.workspaceId) ? accountOf(message) : null
  if (feeds.length === 0 && groupId === null) return []
  const who = whoOf(message)
  if (who.type === 'nobody') return []
  const te = effectiveTime(message.timestamp, message.receivedAt)
  const { receivedAt: r, messageId: id } = message
  return [{ subject: who.subject, feeds, groupId, offset, te, r, id, properties: fed.properties }]
}

/** By the identity’s text. Whoever merged between the two statements is found again by trying anew. */
const lockSubjects = async (
  tx: Connection,
  subjects: readonly Identity[],
): Promise<ReadonlyMap<string, UserState>> => {
  for (;;) {
    const keys = await findIdentities(tx, subjects)
    const wanted = [...new Set(keys)]
      .filter((key) => key !== null)
      .sort((left, right) => left - right)
    const { stale } = await lockUsers(
      tx,
      wanted.map((key) => ({ key, ver: 0 })),
    )
    if (stale.some(({ user }) => user === null)) continue
    const users = new Map(stale.map(({ key, user }) => [key, user as UserState]))
    const found = subjects.flatMap(({ text }, at): [string, UserState][] => {
      const user = users.get(keys[at] ?? -1)
      return user === undefined ? [] : [[text, user]]
    })
    return new Map(found)
  }
}
