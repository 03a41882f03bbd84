// How many partitions each topic of a log has, for the adapters that make them.
import type { Topic } from './log.ts'

export type Partitions = Readonly<Record<Topic, number>>

export const defaultPartitions = 12

/** One number for every topic, or one for each. */
export const partitionsOf = (partitions: number | Partitions = defaultPartitions): Partitions =>
  typeof partitions === 'number'
    ? {
        calls: partitions,
        'calls.import': partitions,
        outbound: partitions,
        'outbound.replay': partitions,
      }
    : partitions
