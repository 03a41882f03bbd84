// What an adapter brings to the log contract, and the small tools its tests share.
import { randomUUID } from 'node:crypto'
import { test } from 'vitest'
import type {
  Appender,
  At,
  Batch,
  Entry,
  Lease,
  Membership,
  Recorded,
  Source,
  Topic,
} from '../../src/log/log.ts'
import type { Clock } from '../../src/running.ts'
import { until } from '../support/until.ts'

/** What one process would open. */
export type Opened = { readonly appender: Appender; readonly source: Source }

export type Place = { readonly topic: Topic; readonly partition: number }

export type LogHarness = {
  open(): Promise<Opened>
  /** One that is to crash: it is soon taken for dead. */
  openMortal?(): Promise<Opened>
  /** Dies without goodbye, as a killed process would: its leases must move by themselves. */
  crash(opened: Opened): Promise<void>
  close(): Promise<void>
  /** The clock that stamps entries; the system's when absent. */
  readonly clock?: Clock
  /** As `open`, but appends pause at random before they commit, and some of them fail. */
  openDisturbed?(random: () => number): Promise<Opened>
  /** Makes the log unreachable for this pair alone. */
  cut?(opened: Opened): Promise<void>
  /** Leaves an offset at the end of the partition that no entry has. */
  hole?(place: Place): Promise<void>
  /** Forgets what stands before the offset, as retention would. */
  truncate?(place: Place & { readonly before: bigint }): Promise<void>
}

export type ContractOptions = {
  /** How long a dead member's partitions may take to move. */
  readonly moveMs?: number
  /** Appends by each of the eight concurrent writers. */
  readonly appendsPerWriter?: number
  /** What this log cannot be made to do; the tests of it are then left out. */
  readonly cannot?: readonly ('cut' | 'hole' | 'truncate')[]
}

export const topics = ['calls', 'calls.import', 'outbound', 'outbound.replay'] as const

export const pause = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms))

export const eventually = (
  what: string,
  holds: () => boolean | Promise<boolean>,
  deadlineMs?: number,
): Promise<void> => until(holds, what, deadlineMs)

export const entry = (key: string, text: string): Entry => ({ key, value: Buffer.from(text) })

export const textOf = ({ value }: Recorded) => Buffer.from(value).toString()

export const placeOf = ({ topic, partition }: Place) => `${topic}/${partition}`

/** Where the log ends now: the tests share one log, so each reads from here. */
export const endsOf = async (source: Source) => {
  const bounds = await Promise.all(topics.map((topic) => source.bounds(topic)))
  return new Map(
    topics.flatMap((topic, index) =>
      (bounds[index] ?? []).map(
        ({ end }, partition) => [placeOf({ topic, partition }), end] as const,
      ),
    ),
  )
}

export type Ends = Awaited<ReturnType<typeof endsOf>>

export type Handled = Place & { readonly batch: Batch; readonly lease: Lease }

export type Follower = Membership & {
  /** Every lease ever gained, in order. */
  readonly leases: readonly Lease[]
  /** Every batch whose handle began, in order. */
  readonly batches: readonly Handled[]
  /** The texts of every entry in them. */
  texts(): readonly string[]
  /** The leases that were not lost. */
  held(): readonly Lease[]
}

type FollowOptions = {
  readonly group?: string
  readonly topics?: readonly Topic[]
  readonly bytesMax?: number
  /** Where each partition is read from: the ends given, or a choice by lease. */
  readonly from: Ends | ((lease: Lease) => bigint)
  readonly gained?: (lease: Lease) => void | Promise<void>
  readonly handle?: (handled: Handled) => void | Promise<void>
}

export const aGroup = () => `group-${randomUUID()}`

/** Joins and records what it is given. */
export const follow = (source: Source, options: FollowOptions): Follower => {
  const leases: Lease[] = []
  const batches: Handled[] = []
  const { from } = options
  const startOf =
    typeof from === 'function' ? from : (lease: Lease) => from.get(placeOf(lease)) as bigint
  const membership = source.join(
    {
      name: options.group ?? aGroup(),
      topics: options.topics ?? ['calls'],
      bytesMax: options.bytesMax ?? 4_194_304,
    },
    async (lease) => {
      leases.push(lease)
      await options.gained?.(lease)
      const { topic, partition } = lease
      return {
        from: startOf(lease),
        handle: async (batch) => {
          const handled = { topic, partition, batch, lease }
          batches.push(handled)
          await options.handle?.(handled)
        },
      }
    },
  )
  // Each test says what it expects of `done`; without this an expected death is an unhandled one.
  membership.done.catch(() => undefined)
  return {
    stop: membership.stop,
    done: membership.done,
    leases,
    batches,
    texts: () => batches.flatMap(({ batch }) => batch.entries.map(textOf)),
    held: () => leases.filter((lease) => !lease.lost.aborted),
  }
}

/** Everything in the partition in [from, until), read without a group. */
export const readAll = async (
  source: Source,
  range: Place & { readonly from: bigint; readonly until: bigint },
): Promise<readonly Batch[]> => {
  const batches: Batch[] = []
  for await (const batch of source.read(range)) batches.push(batch)
  return batches
}

/** Keys that lie in partitions of their own, one for each partition of the topic, in order. */
export const keysByPartition = (count: number, place: (key: string) => number) => {
  const keys: string[] = []
  for (let number = 0; keys.filter(Boolean).length < count; number++) {
    keys[place(`key-${number}`)] ??= `key-${number}`
  }
  return keys
}

export const atText = ({ partition, offset }: At) => `${partition}:${offset}`

type Ability = NonNullable<ContractOptions['cannot']>[number]

/** `test`, or nothing at all where the log cannot be made to do what the test needs. */
export const testWhere = (options: ContractOptions, ability: Ability): typeof test =>
  options.cannot?.includes(ability) ? ((() => undefined) as unknown as typeof test) : test
