// Which identities a call speaks of, and which two of them it says are one person.
import type { Message } from './message.ts'

/** Lower comes first in the order of keys. */
export const identityKinds = { user: 0, anonymous: 1 } as const

export type IdentityKind = keyof typeof identityKinds

export type Identity = {
  readonly workspaceId: number
  readonly kind: IdentityKind
  readonly value: string
  /** All of the above, for maps: made once, because folding looks it up many times. */
  readonly text: string
}

/** What a call says of who did it. `subject` is whose call it is. */
export type Who =
  | { readonly type: 'nobody' }
  | { readonly type: 'one'; readonly subject: Identity }
  | { readonly type: 'identified'; readonly subject: Identity; readonly anonymous: Identity }
  | {
      readonly type: 'aliased'
      readonly subject: Identity
      /** The previous id, as a user id and as an anonymous id: which of them is known decides. */
      readonly previous: Identity
      readonly previousAnonymous: Identity
    }

export const identityLimits = {
  /** Profiles that may be merged into one. */
  mergesMax: 100,
  /** Identities of one profile. */
  identitiesMax: 1_000,
}

const blocked = /^(?:[0-]*|-1|null|anonymous)$/

/** Values that many people share by mistake and that therefore name nobody. */
export const isBlocked = (value: string): boolean => blocked.test(value)

type Call = Pick<Message, 'type' | 'workspaceId' | 'userId' | 'anonymousId' | 'previousId'>

export const whoOf = (call: Call): Who => {
  const { workspaceId } = call
  const named = (kind: IdentityKind, value: string | null): Identity | null =>
    value === null || isBlocked(value) ? null : identityOf(workspaceId, kind, value)
  const user = named('user', call.userId)
  const anonymous = named('anonymous', call.anonymousId)
  const subject = user ?? anonymous
  if (subject === null || call.type === 'delete') return { type: 'nobody' }
  if (call.type === 'identify' && user !== null && anonymous !== null)
    return { type: 'identified', subject: user, anonymous }
  const previous = named('user', call.previousId)
  const previousAnonymous = named('anonymous', call.previousId)
  if (call.type === 'alias' && user !== null && previous !== null && previousAnonymous !== null)
    return previous.value === user.value
      ? { type: 'one', subject: user }
      : { type: 'aliased', subject: user, previous, previousAnonymous }
  return { type: 'one', subject }
}

/** An alias whose previous id is known to be meant as one of its two kinds. */
export const takenAs = (who: Who, previous: IdentityKind): Who => {
  if (who.type !== 'aliased') return who
  const meant = previous === 'user' ? who.previous : who.previousAnonymous
  return { ...who, previous: meant, previousAnonymous: meant }
}

export const identityOf = (workspaceId: number, kind: IdentityKind, value: string): Identity => ({
  workspaceId,
  kind,
  value,
  text: `${workspaceId}:${identityKinds[kind]}:${value}`,
})
