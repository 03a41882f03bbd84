// Whose traces are to go, and whether something that is kept for delivery is one of theirs. Pure.
import { chainOfKey } from '../domain/chain.ts'
import { logKey, outboundKey } from '../domain/message.ts'
import { namedIn } from '../domain/named.ts'

/** All ids of the profiles that one workspace erases together. */
export type Forgotten = {
  readonly workspaceId: number
  readonly userIds: ReadonlySet<string>
  readonly anonymousIds: ReadonlySet<string>
  /** Of everything in the log that has one of the ids for its key. */
  readonly chains: ReadonlySet<bigint>
}

type Known = Omit<Forgotten, 'chains'> & {
  readonly sourceIds: readonly number[]
  readonly destinationIds: readonly number[]
}

export const forget = ({ sourceIds, destinationIds, ...ids }: Known): Forgotten => {
  const { workspaceId, userIds, anonymousIds } = ids
  const chains = new Set<bigint>()
  for (const sourceId of sourceIds) {
    const visitor = { workspaceId, sourceId }
    for (const userId of userIds)
      chains.add(chainOfKey(logKey({ ...visitor, userId, anonymousId: null })))
    for (const anonymousId of anonymousIds)
      chains.add(chainOfKey(logKey({ ...visitor, userId: null, anonymousId })))
  }
  for (const destinationId of destinationIds)
    for (const userId of userIds) chains.add(chainOfKey(outboundKey({ destinationId, userId })))
  return { ...ids, chains }
}

export type Kept = {
  readonly type: string
  readonly chain: bigint | null
  readonly body: Uint8Array | null
  /** `null`: of nobody knows which. */
  readonly workspaceId: number | null
}

/** Of the ids a webhook message names, whichever way; that a user was deleted is still told. */
export const isOf = (forgotten: Forgotten, { type, chain, body, workspaceId }: Kept): boolean => {
  if (type === 'delete') return false
  if (workspaceId !== null && workspaceId !== forgotten.workspaceId) return false
  if (chain !== null && forgotten.chains.has(chain)) return true
  return body !== null && names(forgotten, body)
}

export const names = ({ userIds, anonymousIds }: Forgotten, body: Uint8Array): boolean => {
  const { userId, anonymousId, previousId } = namedIn(body)
  return (
    (userId !== null && userIds.has(userId)) ||
    (anonymousId !== null && anonymousIds.has(anonymousId)) ||
    (previousId !== null && (userIds.has(previousId) || anonymousIds.has(previousId)))
  )
}
