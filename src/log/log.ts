// The log port: append-only partitioned topics, and everything the stages may assume about them.
//
// Promises every adapter keeps (test/contract/log.contract.ts holds one test for each):
// - `append` resolves once every entry is durable, and rejects within 5 s. A rejected append may still
//   appear in the log, whole or in part; a resolved one never disappears.
// - Entries with one key stay in one partition (`partitionOf`), in the order they were appended.
// - Offsets ascend within a partition. Holes are allowed; no reader ever skips an entry that a
//   concurrent append makes visible late.
// - At most one member of a group holds a partition. A lost lease aborts `lost`; its commits answer
//   'lost'. The adapter's fence is best effort: readers fence their own effects by position epoch.
// - A member may lose a partition and gain it again, with a new lease and a new `gained`, when its
//   connection to the log broke meanwhile. `stop` lets the handles in hand finish, and commit.
// - `handle` is called once at a time per lease, in order; a pending `handle` holds back its
//   partition only. A rejected `handle` kills the membership: `done` rejects.
// - Reading is bounded: at most `bytesMax` of fetched values are in memory per membership.
// - Bytes come back as they went in.

/** `outbound.replay` has a reader of its own in delivery, so that a replay never stands before what is live. */
export type Topic = 'calls' | 'calls.import' | 'outbound' | 'outbound.replay'

/** One partition of one topic. */
export type Place = { readonly topic: Topic; readonly partition: number }

/** A place by name: what maps of places are keyed by. */
export const placeOf = (place: { readonly topic: string; readonly partition: number }): string =>
  `${place.topic}/${place.partition}`

export type Entry = { readonly key: string; readonly value: Uint8Array }

export type At = { readonly partition: number; readonly offset: bigint }

export type Recorded = {
  readonly offset: bigint
  readonly key: string
  readonly value: Uint8Array
}

/** Offsets in [from, next), holes allowed; `entries` may be empty when a hole was crossed. */
export type Batch = {
  readonly from: bigint
  readonly next: bigint
  readonly entries: readonly Recorded[]
}

export type Appender = {
  /** Durable on resolve, in the order of `entries` per key; rejects with a `Fault` within 5 s. */
  append(topic: Topic, entries: readonly Entry[]): Promise<readonly At[]>
  close(): Promise<void>
}

export type Lease = {
  readonly topic: Topic
  readonly partition: number
  /** The group's committed offset, `null` when it never committed. */
  readonly committed: bigint | null
  /** Aborts when the partition may belong to somebody else. */
  readonly lost: AbortSignal
  /** Stores the next offset to read; a hint for lag and restart, never the fence. */
  commit(next: bigint): Promise<'committed' | 'lost'>
}

export type Reader = {
  /** The first offset wanted. When the log no longer has it, the membership dies with `log_gap`. */
  readonly from: bigint
  /** Pending is back-pressure on this partition only. */
  handle(batch: Batch): Promise<void>
}

export type Group = {
  readonly name: string
  readonly topics: readonly Topic[]
  /** Bytes of values fetched and not yet handled, over all partitions of this membership. */
  readonly bytesMax: number
}

export type Membership = {
  /** Waits for the handles in hand, gives the partitions back, then resolves. */
  stop(): Promise<void>
  /** Resolves after `stop`; rejects when the membership dies. */
  readonly done: Promise<void>
}

export type Range = {
  readonly topic: Topic
  readonly partition: number
  readonly from: bigint
  readonly until: bigint
}

export type Source = {
  join(group: Group, gained: (lease: Lease) => Promise<Reader>): Membership
  /** Bounded, without a group. Starts at the first entry the log still has; ends when `until` is reached. */
  read(range: Range): AsyncIterable<Batch>
  /** By partition: `start` is the first offset kept, `end` the next offset to be written. */
  bounds(topic: Topic): Promise<readonly { readonly start: bigint; readonly end: bigint }[]>
  /** By partition: the first offset appended at or after `at`, or the end. */
  offsetsAt(topic: Topic, at: Date): Promise<readonly bigint[]>
  close(): Promise<void>
}

/** What readers of the past need: the log, or the log with an archive before it. */
export type History = Pick<Source, 'read' | 'bounds' | 'offsetsAt'>

/** Record codec: one log value is one Avro record in Confluent framing. */
export type Codec<T> = {
  encode(record: T): Uint8Array
  /** Awaits a registry only for a writer schema not met before; otherwise synchronous. */
  decode(values: readonly Uint8Array[]): readonly T[] | Promise<readonly T[]>
}
