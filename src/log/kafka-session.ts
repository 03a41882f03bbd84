// When a Kafka member's assignment begins and when it is in doubt: the events kafkajs gives, and a watch.
import type { Consumer } from 'kafkajs'

export type Assigned = { readonly topic: string; readonly partition: number }

type Watching = {
  readonly sessionMs: number
  /** The whole assignment may belong to somebody else. */
  lost(): void
  /** This is the assignment now. Called in the turn of the event: nothing was fetched for it yet. */
  gained(assigned: readonly Assigned[]): void
}

const watchEveryMs = 250
/** Of the session: the group counts from when it last heard us, which is before we heard its answer. */
const patience = 0.8

/**
 * kafkajs has no event for a revocation. A new assignment replaces the last one whole, also where a
 * partition stayed: between two that we saw, another member may have held it.
 */
export const watchSession = (consumer: Consumer, watching: Watching): { close(): void } => {
  let assigned: readonly Assigned[] = []
  let heardAt = performance.now()
  let expired = false
  const gained = () => {
    heardAt = performance.now()
    expired = false
    watching.gained(assigned)
  }
  consumer.on('consumer.group_join', ({ payload }) => {
    assigned = Object.entries(payload.memberAssignment).flatMap(([topic, partitions]) =>
      partitions.map((partition) => ({ topic, partition })),
    )
    gained()
  })
  consumer.on('consumer.rebalancing', () => watching.lost())
  // The goodbye before a restart: it comes before the crash is told.
  consumer.on('consumer.stop', () => watching.lost())
  consumer.on('consumer.crash', () => {
    assigned = []
    watching.lost()
  })
  consumer.on('consumer.heartbeat', () => {
    heardAt = performance.now()
    // The group never noticed our silence (its broker was away too): the assignment still stands.
    if (expired) gained()
  })
  const timer = setInterval(() => {
    if (expired || performance.now() - heardAt < watching.sessionMs * patience) return
    expired = true
    watching.lost()
  }, watchEveryMs)
  return { close: () => clearInterval(timer) }
}
