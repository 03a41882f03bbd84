// The naive evaluator's identities: which calls of a log are one person's, found by reading it through.
import type { Call } from '../support/language.ts'

/** `te`: no event is in the future, and one before 1970 happened when it was received. */
export type Heard = Call & { readonly te: number }

export type Person = {
  /** `null` while anonymous; after an alias the new one. */
  readonly userId: string | null
  readonly identities: string[]
  /** In the order in which they happened. */
  readonly calls: Heard[]
}

/** Below the merge limits. Everyone a call speaks of exists from that call on. */
export const peopleOf = (log: readonly Call[]): readonly Person[] => {
  const byName = new Map<string, Person>()
  const deletedAt = new Map<string, number>()
  const personOf = (kind: 'user' | 'anonymous', id: string | null): Person | null => {
    if (id === null || namesNobody(id)) return null
    const name = `${kind} ${id}`
    const stranger = { userId: kind === 'user' ? id : null, identities: [name], calls: [] }
    const person = byName.get(name) ?? stranger
    byName.set(name, person)
    return person
  }
  const merge = (survivor: Person, vanished: Person | null) => {
    if (vanished === null || survivor === vanished) return
    survivor.calls.push(...vanished.calls)
    survivor.identities.push(...vanished.identities)
    for (const name of vanished.identities) byName.set(name, survivor)
  }
  const hear = (call: Call) => {
    const { type, userId, anonymousId, previousId, timestamp, receivedAt } = call
    const user = personOf('user', userId)
    const visitor = user === null || type === 'identify' ? personOf('anonymous', anonymousId) : null
    // A profile has one user id: only an alias joins two of them.
    if (user !== null && visitor?.userId === null) merge(user, visitor)
    const previous = byName.get(`user ${previousId}`) ?? byName.get(`anonymous ${previousId}`)
    if (type === 'alias' && user !== null) merge(user, previous ?? personOf('user', previousId))
    const te = timestamp >= 0 ? Math.min(timestamp, receivedAt) : receivedAt
    ;(user ?? visitor)?.calls.push({ ...call, te })
  }
  for (const call of log) {
    const names = namesIn(call)
    const forgotten = names.flatMap((name) => byName.get(name)?.identities ?? [name])
    if (call.type === 'delete') {
      for (const name of forgotten) deletedAt.set(name, call.receivedAt)
      for (const name of forgotten) byName.delete(name)
    } else if (names.every((name) => sentAt(call) >= (deletedAt.get(name) ?? -Infinity))) hear(call)
  }
  const people = [...new Set(byName.values())]
  for (const { calls } of people) calls.sort(inOrder)
  return people
}

const namesNobody = (id: string) => /^([0-]*|-1|null|anonymous)$/.test(id)

/** What `previousId` is, nobody says. */
const namesIn = ({ userId, anonymousId, previousId }: Call): readonly string[] => [
  ...[userId, previousId].flatMap((id) => (id ? [`user ${id}`] : [])),
  ...[anonymousId, previousId].flatMap((id) => (id ? [`anonymous ${id}`] : [])),
]

/** History is of its own time: an import does not bring a deleted user back. */
const sentAt = ({ timestamp, receivedAt }: Call) =>
  receivedAt - timestamp > 86_400_000 ? timestamp : receivedAt

const inOrder = (a: Heard, b: Heard) =>
  a.te - b.te || a.receivedAt - b.receivedAt || (a.messageId < b.messageId ? -1 : 1)

/** The accounts that group calls tie a person to, for good. */
export const accountsOf = ({ calls }: Person): readonly string[] =>
  calls.flatMap(({ type, groupId: id }) => (type === 'group' && id && !namesNobody(id) ? [id] : []))
