// The log in memory, for tests and simulation: the same promises, durable only as long as the process.
import { partitionOf } from '../domain/partition.ts'
import { Fault } from '../fault.ts'
import type { Clock } from '../running.ts'
import type { Appender, At, Batch, Range, Source, Topic } from './log.ts'
import { type Groups, joinGroup, memoryGroups } from './memory-group.ts'
import {
  batchFrom,
  type MemoryPartition,
  memoryPartition,
  offsetAt,
  store,
} from './memory-partition.ts'
import { type Partitions, partitionsOf } from './partitions.ts'

export type { Partitions }

type Options = { readonly partitions?: number | Partitions; readonly clock: Clock }

export type MemorySource = Source & {
  /** Dies without goodbye, as a killed process would: its partitions move at once. */
  vanish(): void
}

export type MemoryLog = {
  appender(): Appender
  source(): MemorySource
  /** Forgets what stands before the offset, as retention would. */
  truncate(topic: Topic, partition: number, before: bigint): void
  /** Leaves an offset that no entry has, as a broker's markers do. */
  hole(topic: Topic, partition: number): void
}

export const memoryLog = ({ partitions: wanted, clock }: Options): MemoryLog => {
  const partitions = partitionsOf(wanted)
  const topics: Topics = {
    calls: Array.from({ length: partitions.calls }, memoryPartition),
    'calls.import': Array.from({ length: partitions['calls.import'] }, memoryPartition),
    outbound: Array.from({ length: partitions.outbound }, memoryPartition),
    'outbound.replay': Array.from({ length: partitions['outbound.replay'] }, memoryPartition),
  }
  const groups = memoryGroups(topics)
  const at = (topic: Topic, partition: number) => topics[topic][partition] as MemoryPartition
  return {
    appender: () => memoryAppender(topics, clock),
    source: () => memorySource(topics, groups),
    truncate: (topic, partition, before) => {
      const found = at(topic, partition)
      found.start = before
      found.entries = found.entries.filter(({ offset }) => offset >= before)
    },
    hole: (topic, partition) => {
      const found = at(topic, partition)
      found.end++
      for (const wake of found.waiting) wake()
    },
  }
}

type Topics = Readonly<Record<Topic, readonly MemoryPartition[]>>

const memoryAppender = (topics: Topics, clock: Clock): Appender => {
  let closed = false
  return {
    append: async (topic, entries) => {
      if (closed) throw new Fault('log_closed', 'the appender was closed before this append')
      const at = clock().getTime()
      const partitions = topics[topic]
      return entries.map(({ key, value }): At => {
        const partition = partitionOf(key, partitions.length)
        // A copy: on every other adapter the caller may reuse its buffer once the append resolved.
        const offset = store(partitions[partition] as MemoryPartition, {
          key,
          value: Uint8Array.from(value),
          at,
        })
        return { partition, offset }
      })
    },
    close: async () => {
      closed = true
    },
  }
}

const memorySource = (topics: Topics, groups: Groups): MemorySource => {
  const members = new Set<ReturnType<typeof joinGroup>>()
  return {
    join: (group, gained) => {
      const member = joinGroup(groups, group, gained)
      members.add(member)
      return { stop: member.stop, done: member.done }
    },
    read: (range) => readRange(topics, range),
    bounds: async (topic) => topics[topic].map(({ start, end }) => ({ start, end })),
    offsetsAt: async (topic, at) =>
      topics[topic].map((partition) => offsetAt(partition, at.getTime())),
    close: async () => {
      await Promise.all([...members].map(({ stop }) => stop()))
    },
    vanish: () => {
      for (const { vanish } of members) vanish()
    },
  }
}

const readBytesMax = 1_048_576

async function* readRange(topics: Topics, range: Range): AsyncGenerator<Batch> {
  const partition = topics[range.topic][range.partition] as MemoryPartition
  let { from } = range
  if (from < partition.start) from = partition.start
  while (from < range.until) {
    const batch = batchFrom(partition, { from, until: range.until, bytesMax: readBytesMax })
    if (batch) {
      yield batch
      from = batch.next
    } else {
      await new Promise<void>((resolve) => {
        const wake = () => {
          partition.waiting.delete(wake)
          resolve()
        }
        partition.waiting.add(wake)
      })
    }
  }
}
