// Groups of the memory log: who holds which partition, and the loop that feeds each reader.
import { Fault } from '../fault.ts'
import { type Group, type Lease, type Membership, placeOf, type Reader, type Topic } from './log.ts'
import { batchFrom, type MemoryPartition } from './memory-partition.ts'

type Topics = Readonly<Record<Topic, readonly MemoryPartition[]>>

type Held = { readonly lease: Lease; readonly abort: AbortController }

type Member = {
  readonly group: Group
  readonly gained: (lease: Lease) => Promise<Reader>
  readonly held: Map<string, Held>
  /** Loops that may have a handle in hand, those of lost leases too. */
  readonly running: Set<Promise<void>>
  stopping: boolean
  readonly die: (error: unknown) => void
}

type GroupState = { members: Member[]; readonly committed: Map<string, bigint> }

export type Groups = { readonly topics: Topics; readonly byName: Map<string, GroupState> }

export const memoryGroups = (topics: Topics): Groups => ({ topics, byName: new Map() })

export const joinGroup = (
  groups: Groups,
  group: Group,
  gained: (lease: Lease) => Promise<Reader>,
): Membership & { vanish(): void } => {
  const state: GroupState = groups.byName.get(group.name) ?? {
    members: [],
    committed: new Map(),
  }
  groups.byName.set(group.name, state)
  const { promise: done, resolve, reject } = Promise.withResolvers<void>()
  const leave = () => {
    state.members = state.members.filter((other) => other !== member)
    for (const held of member.held.values()) held.abort.abort()
    member.held.clear()
    rebalance(groups, state)
  }
  const member: Member = {
    group,
    gained,
    held: new Map(),
    running: new Set(),
    stopping: false,
    die: (error) => {
      member.stopping = true
      leave()
      reject(error)
    },
  }
  state.members.push(member)
  rebalance(groups, state)
  let stopped: Promise<void> | undefined
  const stop = async () => {
    member.stopping = true
    wakeAll(groups, member)
    await Promise.all(member.running)
    leave()
    resolve()
  }
  return {
    stop: () => {
      stopped ??= stop()
      return stopped
    },
    done,
    vanish: () => {
      member.stopping = true
      leave()
    },
  }
}

/** Deals each topic's partitions out to its members in turn; who loses one learns it before who gains it. */
const rebalance = (groups: Groups, state: GroupState) => {
  const owners = new Map<string, { member: Member; topic: Topic; partition: number }>()
  for (const topic of Object.keys(groups.topics) as Topic[]) {
    const members = state.members.filter(({ group }) => group.topics.includes(topic))
    if (members.length === 0) continue
    for (const partition of groups.topics[topic].keys()) {
      const member = members[partition % members.length] as Member
      owners.set(placeOf({ topic, partition }), { member, topic, partition })
    }
  }
  for (const member of state.members)
    for (const [place, held] of member.held)
      if (owners.get(place)?.member !== member) {
        held.abort.abort()
        member.held.delete(place)
      }
  for (const [place, { member, topic, partition }] of owners)
    if (!member.held.has(place)) gain(groups, state, { member, topic, partition })
}

type Gain = { readonly member: Member; readonly topic: Topic; readonly partition: number }

const gain = (groups: Groups, state: GroupState, { member, topic, partition }: Gain) => {
  const place = placeOf({ topic, partition })
  const abort = new AbortController()
  const lease: Lease = {
    topic,
    partition,
    committed: state.committed.get(place) ?? null,
    lost: abort.signal,
    commit: async (next) => {
      if (abort.signal.aborted) return 'lost'
      state.committed.set(place, next)
      return 'committed'
    },
  }
  member.held.set(place, { lease, abort })
  const source = groups.topics[topic][partition] as MemoryPartition
  const running = follow(member, source, lease).catch(member.die)
  member.running.add(running)
  void running.then(() => member.running.delete(running))
}

const follow = async (member: Member, source: MemoryPartition, lease: Lease) => {
  // Not in the caller's turn: `join` must have returned before `gained` is called.
  await Promise.resolve()
  const over = () => lease.lost.aborted || member.stopping
  if (over()) return
  const reader = await member.gained(lease).catch((error) => {
    // It is somebody else's by now: nothing of it is missing here.
    if (lease.lost.aborted) return null
    throw error
  })
  if (reader === null) return
  let { from } = reader
  while (!over()) {
    if (from < source.start)
      throw new Fault(
        'log_gap',
        `${lease.topic}/${lease.partition} starts at ${source.start}, wanted ${from}`,
      )
    const bytesMax = member.group.bytesMax / member.held.size
    const batch = batchFrom(source, { from, until: null, bytesMax })
    if (batch) {
      await reader.handle(batch)
      from = batch.next
    } else await more(source, lease.lost)
  }
}

const more = (source: MemoryPartition, lost: AbortSignal) =>
  new Promise<void>((resolve) => {
    const wake = () => {
      source.waiting.delete(wake)
      lost.removeEventListener('abort', wake)
      resolve()
    }
    source.waiting.add(wake)
    lost.addEventListener('abort', wake)
  })

const wakeAll = (groups: Groups, member: Member) => {
  for (const { lease } of member.held.values())
    for (const wake of [...(groups.topics[lease.topic][lease.partition]?.waiting ?? [])]) wake()
}
