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

const namesNobody = (id: string | null): id is null =>
  id === null || /^([0-]*|-1|null|anonymous)$/.test(id)

/** Below the merge limits. Everyone a call speaks of exists from that call on. */
export const peopleOf = (log: readonly Call[]): readonly Person[] => {
  const byIdentity = new Map<string, Person>()
  const personOf = (kind: 'user' | 'anonymous', id: string): Person => {
    const known = byIdentity.get(`${kind} ${id}`)
    if (known) return known
    const person = { userId: kind === 'user' ? id : null, identities: [`${kind} ${id}`], calls: [] }
    byIdentity.set(`${kind} ${id}`, person)
    return person
  }
  const merge = (survivor: Person, vanished: Person) => {
    if (survivor === vanished) return
    survivor.calls.push(...vanished.calls)
    survivor.identities.push(...vanished.identities)
    for (const identity of vanished.identities) byIdentity.set(identity, survivor)
  }
  for (const call of log) {
    if (call.type === 'delete') continue
    const { userId, anonymousId, previousId } = call
    const user = namesNobody(userId) ? null : personOf('user', userId)
    const anonymous =
      namesNobody(anonymousId) || (user && call.type !== 'identify')
        ? null
        : personOf('anonymous', anonymousId)
    // A profile has one user id: only an alias joins two of them.
    if (user && anonymous && anonymous.userId === null) merge(user, anonymous)
    if (call.type === 'alias' && user && !namesNobody(previousId)) {
      const known =
        byIdentity.get(`user ${previousId}`) ?? byIdentity.get(`anonymous ${previousId}`)
      const survivorId = user.userId
      merge(user, known ?? personOf('user', previousId))
      user.userId = survivorId
    }
    ;(user ?? anonymous)?.calls.push(call)
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
