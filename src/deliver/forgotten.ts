// Whether a message is of somebody who is not to be heard: asked of what the service made when it is taken,
// of what was parked at each try, and of what waited in memory where somebody was suppressed since it was taken.
// That a user was deleted is always told.
import type { Outbound } from '../domain/message.ts'
import { namedIn } from '../domain/named.ts'
import { nobodySuppressed, type Suspect } from '../domain/suppression.ts'
import type { Delivery, Stage } from './stage.ts'

export const isMadeInVain = ({ deps }: Stage, made: Outbound, key: string): boolean => {
  const { suppressions = nobodySuppressed } = deps
  if (suppressions === nobodySuppressed || made.type === 'delete') return false
  return suppressions.isSuppressed(
    made.origin === 'replay' ? replayedSuspect(made, key) : suspect(made),
  )
}

const suspect = ({ workspaceId, userId, timestamp }: Outbound): Suspect => ({
  ...{ workspaceId, userId, anonymousId: null },
  sentAt: new Date(timestamp),
})

/** A past call: who was deleted since then was so after it was received. Its key ends with its visitor. */
const replayedSuspect = (made: Outbound, key: string): Suspect => {
  const { workspaceId, userId, receivedAt, type } = made
  const visitor = key.split(':').slice(3).join(':')
  const anonymousId = visitor === '' || visitor === userId ? null : visitor
  // No other type names somebody else.
  const previousId = type === 'alias' ? namedIn(made.body).previousId : null
  return { workspaceId, userId, anonymousId, previousId, sentAt: new Date(receivedAt) }
}

export const suppressionVersion = ({ deps }: Pick<Stage, 'deps'>): bigint =>
  deps.suppressions?.version?.() ?? 0n

export const isForgotten = ({ deps }: Stage, delivery: Delivery, workspaceId: number): boolean => {
  const { suppressions = nobodySuppressed } = deps
  if (suppressions === nobodySuppressed || delivery.type === 'delete') return false
  if (delivery.row === null && delivery.letThroughBy === suppressionVersion({ deps })) return false
  const sentAt = new Date(delivery.receivedAt)
  return suppressions.isSuppressed({ workspaceId, ...namedIn(delivery.body), sentAt })
}
