// Folding a batch into users, in log order, and deciding from it which memberships flip. Pure.
import { assess, type Flip, heldBy } from '../audience/assess.ts'
import { packAhead } from '../audience/pack.ts'
import {
  accountIdsOf,
  knownTo,
  type Plan,
  type PlannedAudience,
  type PlannedFeed,
} from '../audience/plan.ts'
import {
  seeSource,
  setSummary,
  setTraits,
  summaryOf,
  traitsOf,
  type UserState,
} from '../audience/state.ts'
import type { Marked, Tie } from '../audience/ties.ts'
import type { Observation } from '../domain/condition/summary/kind.ts'
import type { Message } from '../domain/message.ts'
import { writeTraits } from '../domain/traits.ts'
import type { Call } from './call.ts'
import { pauser } from './pauser.ts'
import { type AddedIdentity, type Decided, type Merge, openPeople, type Touched } from './people.ts'

export type Placed = {
  readonly call: Call
  readonly message: Message
  readonly topic: string
  readonly partition: number
  readonly offset: bigint
}

export type LogPlace = Pick<Placed, 'topic' | 'partition' | 'offset'>

export type Folded = {
  /** To be written. */
  readonly users: readonly UserState[]
  /** How many others the batch looked at. */
  readonly unchanged: number
  readonly vanished: readonly { readonly user: UserState; readonly into: number }[]
  readonly flips: readonly Flip[]
  readonly identities: readonly AddedIdentity[]
  readonly merges: readonly (Merge & LogPlace)[]
  /** The calls that decided who is who, in order. */
  readonly decisions: readonly (LogPlace & Decided)[]
  /** Accounts that calls tie users to, whether or not they were tied before. */
  readonly ties: readonly Tie[]
  /** What vanished users counted for in their accounts. */
  readonly lostMarks: readonly Marked[]
  /** Users of before whose user id became known. */
  readonly named: readonly number[]
  /** Any user of the batch who lives. */
  user(key: number): UserState
}

/** `known` and `users` hold all that the calls ask for, each time calls are added. */
type Input = {
  readonly plan: Plan
  readonly known: ReadonlyMap<string, number>
  readonly users: ReadonlyMap<number, UserState>
  readonly newKey: () => number
  readonly yieldMs: number
}

export type Folding = {
  /** Folds calls in log order. */
  add(calls: readonly Placed[]): Promise<void>
  /** How many users it holds. */
  users(): number
  /** Whether an identity, by its text, is one that the calls so far make. */
  makes(text: string): boolean
  /** `at`: the instant to evaluate at, the highest receivedAt folded so far. Nothing is added after it. */
  finish(at: number): Promise<Folded>
}

/**
 * Who is who is decided call by call, in log order; what the calls hold is folded user by user, because then a
 * user is read, folded, looked at and packed while all that is at hand.
 */
export const openFolding = ({ plan, known, users, newKey, yieldMs }: Input): Folding => {
  const pause = pauser(yieldMs)
  const foldCalls = (touched: Touched): void => {
    for (const call of takeCalls(touched)) foldCall(call, touched, plan)
  }
  /** One user may have all the calls of a batch. */
  const foldGivingWay = async (touched: Touched): Promise<void> => {
    for (const call of takeCalls(touched)) {
      foldCall(call, touched, plan)
      if (pause.due()) await pause.take()
    }
  }
  const people = openPeople({ known, users, newKey, plan, foldCalls })
  let waiting: Touched[] = []
  const ties: Tie[] = []
  const merges: Folded['merges'][number][] = []
  const decisions: Folded['decisions'][number][] = []
  const place = ({ call, message, topic, partition, offset }: Placed): void => {
    const decided = people.decides(call.who)
    if (decided !== null) decisions.push({ ...decided, topic, partition, offset })
    const touched = people.resolve(call.who)
    while (merges.length < people.merges.length)
      merges.push({ ...(people.merges[merges.length] as Merge), topic, partition, offset })
    if (touched === null) return
    if (touched.calls.length > 0) touched.calls.push(call)
    else {
      touched.calls = [call]
      waiting.push(touched)
    }
    if (seeSource(touched.user, message.sourceId)) touched.changed = true
    const { groupId, workspaceId } = call
    if (groupId !== null) ties.push({ userKey: touched.user.key, workspaceId, groupId })
  }
  return {
    add: async (calls) => {
      for (const touched of waiting) await foldGivingWay(touched)
      waiting = []
      for (const placed of calls) {
        place(placed)
        if (pause.due()) await pause.take()
      }
    },
    users: () => people.touched.size,
    makes: people.makes,
    finish: async (at) => {
      const packed = knownTo(plan)
      const flips: Flip[] = [...people.flips]
      for (const touched of people.touched.values()) {
        await foldGivingWay(touched)
        flips.push(...look(touched, { plan, at }))
        if (touched.changed) packAhead(touched.user, packed)
        if (pause.due()) await pause.take()
      }
      const all = [...people.touched.values()]
      const changed = all.filter(({ changed }) => changed)
      return {
        users: changed.map(({ user }) => user),
        unchanged: all.length - changed.length,
        vanished: people.vanished.map((user) => ({ user, into: people.survivor(user.key) })),
        flips,
        identities: people.added(),
        merges,
        decisions,
        ties: ties.map((tie) => ({ ...tie, userKey: people.survivor(tie.userKey) })),
        lostMarks: people.lostMarks,
        named: all.flatMap(({ user, named }) => (named && user.ver > 0 ? [user.key] : [])),
        user: (key) => (people.touched.get(key) as Touched).user,
      }
    },
  }
}

const noCalls: Call[] = []

const takeCalls = (touched: Touched): readonly Call[] => {
  const { calls } = touched
  touched.calls = noCalls
  return calls
}

const foldCall = (call: Call, touched: Touched, plan: Plan): void => {
  const { user } = touched
  for (const { leaf, step } of call.feeds) {
    if (!observe(user, { leaf, step }, call)) continue
    touched.changed = true
    toLook(touched, leaf.audiences)
  }
  if (call.traits === null) return
  const stamp = { te: call.te, r: call.r, id: call.id }
  const held = traitsOf(user)
  const traits = writeTraits(held, call.traits, stamp)
  if (traits === held) return
  setTraits(user, traits)
  touched.changed = true
  toLook(touched, plan.workspaces.get(call.workspaceId)?.traitAudiences ?? [])
}

type Fed = Pick<PlannedFeed, 'leaf' | 'step'>

/** Whether it changed anything. */
export const observe = (user: UserState, { leaf, step }: Fed, seen: Observation): boolean => {
  const held = summaryOf(user, leaf) ?? leaf.kind.empty
  const summary = leaf.kind.fold(held, seen, step)
  if (summary === held) return false
  setSummary(user, leaf, summary)
  return true
}

const toLook = ({ looks }: Touched, audiences: readonly PlannedAudience[]): void => {
  if (audiences.length > 0 && !looks.includes(audiences)) looks.push(audiences)
}

const noAudiences: readonly PlannedAudience[] = []

/** Of two lists ascending by id, as those of a plan are: one where each is once. */
const united = (
  left: readonly PlannedAudience[],
  right: readonly PlannedAudience[],
): readonly PlannedAudience[] => {
  if (left.length === 0) return right
  const all: PlannedAudience[] = []
  let [l, r] = [0, 0]
  while (l < left.length && r < right.length) {
    const [one, other] = [left[l] as PlannedAudience, right[r] as PlannedAudience]
    if (one.id <= other.id) l += 1
    if (other.id <= one.id) r += 1
    all.push(one.id <= other.id ? one : other)
  }
  for (; l < left.length; l++) all.push(left[l] as PlannedAudience)
  for (; r < right.length; r++) all.push(right[r] as PlannedAudience)
  return all
}

type Look = { readonly plan: Plan; readonly at: number }

const look = (touched: Touched, { plan, at }: Look): readonly Flip[] => {
  const { user, whole, named, looks } = touched
  const audiences = whole
    ? (plan.workspaces.get(user.workspaceId)?.audiences ?? [])
    : looks.reduce(united, noAudiences)
  const flips = assess(user, { audiences, at, whole })
  if (!named) return flips
  const flipped = new Set(flips.map(({ audienceId }) => audienceId))
  return [
    ...flips,
    ...heldBy(user, accountIdsOf(plan, user.workspaceId)).filter(
      ({ audienceId }) => !flipped.has(audienceId),
    ),
  ]
}
