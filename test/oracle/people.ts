// The naive evaluator's identities: which calls of a log are one person's, found by reading it through.
import type { Json } from './values.ts'

/** One accepted call, in log order. Times in epoch ms. */
export type Call = {
  readonly type: string
  readonly messageId: string
  readonly userId: string | null
  readonly anonymousId: string | null
  readonly previousId: string | null
  /** Of a group call; a log without accounts need not have it. */
  readonly groupId?: string | null
  readonly event: string | null
  readonly properties: { readonly [key: string]: Json }
  readonly traits: { readonly [key: string]: Json }
  readonly timestamp: number
  readonly receivedAt: number
}

export type Person = {
  /** `null` while anonymous; after an alias the new one. */
  userId: string | null
  readonly identities: string[]
  readonly calls: Call[]
}

/** Of one source's calls in one partition: a duplicate has an earlier one received less than 24 h before. */
export const withoutDuplicates = (log: readonly Call[]): readonly Call[] => {
  const before = new Map<string, number[]>()
  return log.filter(({ messageId, receivedAt }) => {
    const times = before.get(messageId) ?? []
    const duplicate = times.some((time) => receivedAt - time < 86_400_000)
    before.set(messageId, [...times, receivedAt])
    return !duplicate
  })
}

/** History is of its own time: an import does not bring a deleted user back. */
const sentAt = ({ timestamp, receivedAt }: Call): number =>
  receivedAt - timestamp > 86_400_000 ? timestamp : receivedAt

const namesNobody = (id: string | null): id is null =>
  id === null || /^([0-]*|-1|null|anonymous)$/.test(id)

/** What `previousId` is, nobody says. */
const namesIn = ({ userId, anonymousId, previousId }: Call): readonly string[] => [
  ...[userId, previousId].map((id) => `user ${id ?? ''}`),
  ...[anonymousId, previousId].map((id) => `anonymous ${id ?? ''}`),
]

/** Below the merge limits. Everyone a call speaks of exists from that call on. */
export const peopleOf = (log: readonly Call[]): readonly Person[] => {
  const byIdentity = new Map<string, Person>()
  const deletedAt = new Map<string, number>()
  const personOf = (kind: 'user' | 'anonymous', id: string | null): Person | null => {
    if (namesNobody(id)) return null
    const name = `${kind} ${id}`
    const unknown = { userId: kind === 'user' ? id : null, identities: [name], calls: [] }
    const person = byIdentity.get(name) ?? unknown
    byIdentity.set(name, person)
    return person
  }
  const merge = (survivor: Person, vanished: Person | null) => {
    if (vanished === null || survivor === vanished) return
    survivor.calls.push(...vanished.calls)
    survivor.identities.push(...vanished.identities)
    for (const identity of vanished.identities) byIdentity.set(identity, survivor)
  }
  /** Ends the profile of whom the call names; what was sent before, of any of its identities, is not heard later. */
  const forget = (call: Call) => {
    const found = namesIn(call).flatMap((name) => byIdentity.get(name)?.identities ?? [name])
    for (const name of found) {
      byIdentity.delete(name)
      if (!/ $/.test(name)) deletedAt.set(name, call.receivedAt)
    }
  }
  const hear = (call: Call) => {
    const { type, userId, anonymousId, previousId } = call
    const user = personOf('user', userId)
    const anonymous =
      user !== null && type !== 'identify' ? null : personOf('anonymous', anonymousId)
    // A profile has one user id: only an alias joins two of them.
    if (user !== null && anonymous?.userId === null) merge(user, anonymous)
    if (type === 'alias' && user !== null) {
      const known =
        byIdentity.get(`user ${previousId}`) ?? byIdentity.get(`anonymous ${previousId}`)
      const survivorId = user.userId
      merge(user, namesNobody(previousId) ? null : (known ?? personOf('user', previousId)))
      user.userId = survivorId
    }
    ;(user ?? anonymous)?.calls.push(call)
  }
  for (const call of log) {
    const isLate = namesIn(call).some(
      (name) => sentAt(call) < (deletedAt.get(name) ?? Number.NEGATIVE_INFINITY),
    )
    if (call.type === 'delete') forget(call)
    else if (!isLate) hear(call)
  }
  return [...new Set(byIdentity.values())]
}

/** The accounts that group calls tie a person to, for good. */
export const groupsOf = ({ calls }: Person): readonly string[] => [
  ...new Set(
    calls.flatMap(({ type, groupId = null }) =>
      type === 'group' && !namesNobody(groupId) ? [groupId] : [],
    ),
  ),
]
