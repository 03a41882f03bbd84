// Who is who while a batch is folded: resolves identities to users, and makes, links and merges users.
import { type Flip, leftBy } from '../audience/assess.ts'
import { accountIdsOf, type Plan, type PlannedAudience } from '../audience/plan.ts'
import { absorb, newUser, type UserState } from '../audience/state.ts'
import { type Marked, marksOf } from '../audience/ties.ts'
import { type Identity, type IdentityKind, identityLimits, type Who } from '../domain/identity.ts'
import type { Call } from './call.ts'

export type Touched = {
  readonly user: UserState
  /** Whether the row must be written. */
  changed: boolean
  /** Whether all audiences must be looked at: the user is new, or two became one. */
  whole: boolean
  /** The user id became known, so that memberships must show it. */
  named: boolean
  /** Lists of audiences that something changed for; an audience may be in several. */
  readonly looks: (readonly PlannedAudience[])[]
  /** Calls not folded yet, in log order. */
  calls: Call[]
}

/** What the previous id of an alias is taken for; `null` for other calls. */
export type Decided = { readonly previous: IdentityKind | null }

export type Merge = { readonly from: number; readonly into: number; readonly workspaceId: number }

export type AddedIdentity = {
  readonly text: string
  readonly identity: Identity
  readonly key: number
}

export type People = {
  /** The user a call is of, after whatever the call says of identities has been done. */
  resolve(who: Who): Touched | null
  /** `null` where all that the call says of identities was known; else it depends on what was said before it. */
  decides(who: Who): Decided | null
  readonly touched: ReadonlyMap<number, Touched>
  readonly merges: readonly Merge[]
  /** Users that merged away, with their state as it was. */
  readonly vanished: readonly UserState[]
  /** What those counted for in their accounts, as it was stored. */
  readonly lostMarks: readonly Marked[]
  /** Memberships that vanished users lose. */
  readonly flips: readonly Flip[]
  /** Whom a user has become. */
  survivor(key: number): number
  /** Whether an identity, by its text, is made in this batch. */
  makes(text: string): boolean
  /** Made in this batch, with the user that has them at its end. */
  added(): readonly AddedIdentity[]
}

type Options = {
  /** By the identity’s text: those stored. */
  readonly known: ReadonlyMap<string, number>
  /** Every user of `known`; locked at the latest when they are written. */
  readonly users: ReadonlyMap<number, UserState>
  readonly newKey: () => number
  readonly plan: Plan
  /** Folds the calls that wait: what becomes another's is all there is of a user. */
  readonly foldCalls: (touched: Touched) => void
}

export const openPeople = ({ known, users, newKey, plan, foldCalls }: Options): People => {
  const touched = new Map<number, Touched>()
  const fresh = new Map<string, { readonly identity: Identity; readonly key: number }>()
  const mergedInto = new Map<number, number>()
  const merges: Merge[] = []
  const vanished: UserState[] = []
  const lostMarks: Marked[] = []
  const flips: Flip[] = []

  const survivor = (key: number): number => {
    let at = key
    for (let next = mergedInto.get(at); next !== undefined; next = mergedInto.get(at)) at = next
    return at
  }
  const touch = (user: UserState): Touched => {
    const held = touched.get(user.key)
    if (held !== undefined) return held
    const first = touchedFirst(user)
    touched.set(user.key, first)
    return first
  }
  const find = (identity: Identity): Touched | null => {
    const text = identity.text
    const key = fresh.get(text)?.key ?? known.get(text)
    if (key === undefined) return null
    const now = survivor(key)
    return touched.get(now) ?? touch(users.get(now) as UserState)
  }
  const link = (identity: Identity, to: Touched): Touched => {
    fresh.set(identity.text, { identity, key: to.user.key })
    to.user.identities += 1
    to.changed = true
    if (identity.kind === 'user' && to.user.userId === null) {
      to.user.userId = identity.value
      to.named = true
      // Some audiences leave out users without a user id.
      to.whole = true
    }
    return to
  }
  const create = (identity: Identity): Touched =>
    link(identity, touch(newUser(newKey(), identity.workspaceId)))
  const merge = (from: Touched, into: Touched): void => {
    const accountIds = accountIdsOf(plan, from.user.workspaceId)
    flips.push(...leftBy(from.user, accountIds))
    foldCalls(from)
    foldCalls(into)
    absorb(into.user, from.user, plan.leaves)
    into.changed = true
    into.whole = true
    mergedInto.set(from.user.key, into.user.key)
    touched.delete(from.user.key)
    if (from.user.ver > 0) vanished.push(from.user)
    lostMarks.push(...storedMarks(from, accountIds))
    const { workspaceId } = into.user
    merges.push({ from: from.user.key, into: into.user.key, workspaceId })
  }
  return {
    resolve: (who) => resolve(who, { find, link, create, merge }),
    decides: (who) => decides(who, find),
    touched,
    merges,
    vanished,
    lostMarks,
    flips,
    survivor,
    makes: (text) => fresh.has(text),
    added: () =>
      [...fresh].map(([text, { identity, key }]) => ({ text, identity, key: survivor(key) })),
  }
}

/** What they counted for before the batch; who is new for nothing. */
const storedMarks = ({ user, named }: Touched, accountIds: ReadonlySet<number>) =>
  user.ver > 0 ? marksOf(named ? { ...user, userId: null } : user, accountIds) : []

const touchedFirst = (user: UserState): Touched => {
  const isNew = user.ver === 0
  return { user, changed: isNew, whole: isNew, named: false, looks: [], calls: [] }
}

type Steps = {
  readonly find: (identity: Identity) => Touched | null
  readonly link: (identity: Identity, to: Touched) => Touched
  readonly create: (identity: Identity) => Touched
  readonly merge: (from: Touched, into: Touched) => void
}

const decides = (who: Who, find: Steps['find']): Decided | null => {
  if (who.type === 'nobody' || who.type === 'one') return null
  const user = find(who.subject)
  if (who.type === 'identified')
    return user !== null && find(who.anonymous) === user ? null : { previous: null }
  const before = find(who.previous)
  const visitor = before ?? find(who.previousAnonymous)
  if (user !== null && visitor === user) return null
  const { kind } = before === null && visitor !== null ? who.previousAnonymous : who.previous
  return { previous: kind }
}

const resolve = (who: Who, steps: Steps): Touched | null => {
  switch (who.type) {
    case 'nobody':
      return null
    case 'one':
      return steps.find(who.subject) ?? steps.create(who.subject)
    case 'identified':
      return identified(who, steps)
    case 'aliased':
      return aliased(who, steps)
  }
}

const hasRoom = ({ user }: Touched, more = 1) =>
  user.identities + more <= identityLimits.identitiesMax

const mayMerge = (from: Touched, into: Touched) =>
  hasRoom(into, from.user.identities) &&
  into.user.merges + from.user.merges + 1 <= identityLimits.mergesMax

/** A visitor who has a user id already stays who they are: a profile has one user id. */
const identified = (
  { subject, anonymous }: Extract<Who, { type: 'identified' }>,
  { find, link, create, merge }: Steps,
): Touched => {
  const visitor = find(anonymous)
  const user = find(subject)
  if (visitor === null) {
    const known = user ?? create(subject)
    return hasRoom(known) ? link(anonymous, known) : known
  }
  const nameless = visitor.user.userId === null
  if (user === null) return nameless && hasRoom(visitor) ? link(subject, visitor) : create(subject)
  if (user !== visitor && nameless && mayMerge(visitor, user)) merge(visitor, user)
  return user
}

/** What was known by the previous id, as a user id or else an anonymous one, becomes the user's. */
const aliased = (
  { subject, previous, previousAnonymous }: Extract<Who, { type: 'aliased' }>,
  { find, link, create, merge }: Steps,
): Touched => {
  const before = find(previous) ?? find(previousAnonymous)
  const user = find(subject)
  if (before === null) {
    const known = user ?? create(subject)
    return hasRoom(known) ? link(previous, known) : known
  }
  if (user === null && before.user.userId === null && hasRoom(before)) return link(subject, before)
  const survivor = user ?? create(subject)
  if (survivor !== before && mayMerge(before, survivor)) merge(before, survivor)
  return survivor
}
