// What a Kafka member holds: one generation of slots at a time, replaced whole when the group assigns anew.
import { Fault } from '../fault.ts'
import { type AdminCalls, type KafkaConnection, topicName } from './kafka-client.ts'
import type { Committing } from './kafka-commit.ts'
import type { GroupTiming } from './kafka-consumer.ts'
import type { Assigned } from './kafka-session.ts'
import { gap, openSlot, type Slot, type SlotDeps } from './kafka-slot.ts'
import { type Bounds, boundsOf, committedOf } from './kafka-topics.ts'
import { type Group, type Lease, type Place, placeOf, type Reader, type Topic } from './log.ts'

export type Joining = {
  readonly connection: KafkaConnection
  readonly admin: AdminCalls
  readonly group: Group
  readonly timing: GroupTiming
  gained(lease: Lease): Promise<Reader>
}

type Deps = Pick<SlotDeps, 'pause' | 'resume' | 'die'> & {
  readonly joining: Joining
  commit(committing: Committing): Promise<'committed' | 'lost'>
}

/** Its leases are lost together. */
type Generation = { readonly lost: AbortController; readonly slots: Map<string, Slot> }

export type Assignment = {
  lose(): void
  gain(assigned: readonly Assigned[]): void
  slot(assigned: Assigned): Slot | undefined
  /** Gains nothing more; resolves when the handles in hand are over. */
  drain(): Promise<void>
}

const newGeneration = (): Generation => ({ lost: new AbortController(), slots: new Map() })

export const openAssignment = (deps: Deps): Assignment => {
  const { joining } = deps
  const { group, connection } = joining
  const names = new Map(group.topics.map((topic) => [topicName(connection, topic), topic]))
  const handling = new Map<string, Promise<void>>()
  let generation = newGeneration()
  let draining = false

  const lose = () => {
    generation.lost.abort()
    for (const [key, slot] of generation.slots) handling.set(key, slot.drain())
  }
  const place = ({ topic, partition }: Assigned): Place | null => {
    const known = names.get(topic)
    return known === undefined ? null : { topic: known, partition }
  }
  return {
    lose,
    gain: (assigned) => {
      lose()
      const places = assigned.map(place).filter((known) => known !== null)
      // Now, not later: fetching goes on as soon as the listeners of this event return.
      for (const each of places) deps.pause(each)
      if (draining) return
      generation = newGeneration()
      const lost = generation.lost.signal
      const share = Math.floor((group.bytesMax * 3) / 4 / Math.max(1, places.length))
      const slotDeps = (each: Place) => ({
        ...deps,
        place: each,
        share,
        lost,
        earlier: handling.get(placeOf(each)) ?? Promise.resolve(),
        commit: (next: bigint) => deps.commit({ ...each, next, lost }),
      })
      begin({ joining, generation, places, slotDeps }).catch((error: unknown) => {
        if (!lost.aborted) deps.die(error)
      })
    },
    slot: (assigned) => {
      const known = place(assigned)
      return known === null ? undefined : generation.slots.get(placeOf(known))
    },
    drain: async () => {
      draining = true
      await Promise.all([...generation.slots.values()].map((slot) => slot.drain()))
    },
  }
}

type Beginning = {
  readonly joining: Joining
  readonly generation: Generation
  readonly places: readonly Place[]
  slotDeps(place: Place): Omit<SlotDeps, 'committed'>
}

type Facts = {
  readonly committed: ReadonlyMap<string, readonly (bigint | null)[]>
  readonly bounds: ReadonlyMap<Topic, readonly Bounds[]>
}

const begin = async ({ joining, generation, places, slotDeps }: Beginning) => {
  const { signal: lost } = generation.lost
  const facts = places.length > 0 ? await learn(joining, places, lost) : null
  if (facts === null || lost.aborted) return
  const gainOne = async (place: Place) => {
    const committed =
      facts.committed.get(topicName(joining.connection, place.topic))?.[place.partition] ?? null
    const slot = openSlot({ ...slotDeps(place), committed })
    generation.slots.set(placeOf(place), slot)
    const reader = await joining.gained(slot.lease).catch((error: unknown) => {
      if (!lost.aborted) throw error
      // It is somebody else's by now: nothing of it is missing here.
      joining.connection.logger.warn({ err: error, ...place }, 'log.not_gained')
      return null
    })
    if (reader === null || lost.aborted) return
    await checkRange(joining, { place, from: reader.from, bounds: facts.bounds.get(place.topic) })
    slot.begin(reader)
  }
  await Promise.all(places.map(gainOne))
}

/** For as long as the assignment stands: a broker that is away may come back before the session ends. */
const learn = async (
  { admin, connection, group }: Joining,
  places: readonly Place[],
  lost: AbortSignal,
): Promise<Facts | null> => {
  const topics = [...new Set(places.map(({ topic }) => topic))]
  const names = topics.map((topic) => topicName(connection, topic))
  while (!lost.aborted) {
    try {
      const [committed, ...bounds] = await Promise.all([
        committedOf(admin, `${connection.prefix ?? ''}${group.name}`, names),
        ...topics.map((topic) => boundsOf(admin, connection, topic)),
      ])
      return { committed, bounds: new Map(topics.map((topic, at) => [topic, bounds[at] ?? []])) }
    } catch (error) {
      if (!(error instanceof Fault) || error.code !== 'log_unavailable') throw error
    }
  }
  return null
}

type Checking = {
  readonly place: Place
  readonly from: bigint
  readonly bounds: readonly Bounds[] | undefined
}

const checkRange = async (joining: Joining, { place, from, bounds }: Checking) => {
  const known = bounds?.[place.partition]
  if (known && from >= known.start && from <= known.end) return
  // The last holder may have read beyond the end that we saw before it stopped.
  const now = (await boundsOf(joining.admin, joining.connection, place.topic))[place.partition]
  if (now && from < now.start) throw gap(place, from, now.start)
  if (now && from > now.end) throw gap(place, from, now.end)
}
