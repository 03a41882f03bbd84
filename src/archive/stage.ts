// What the parts of the archive share: its dependencies, its limits and the partitions it holds.
import type { Logger } from 'pino'
import type { Message, Outbound } from '../domain/message.ts'
import type { Codec, Lease, Source } from '../log/log.ts'
import type { Pool, Sql } from '../postgres/sql.ts'
import type { Clock } from '../running.ts'
import type { Erasures } from './erasures.ts'
import type { ArchiveLimits } from './limits.ts'
import type { Kept } from './line.ts'
import type { ArchiveMeter } from './meter.ts'
import type { ArchivedTopic, Compression } from './name.ts'
import type { Segment } from './segment.ts'
import type { Store } from './store.ts'

export type ArchiveDeps = {
  readonly source: Source
  readonly codecs: { readonly call: Codec<Message>; readonly outbound: Codec<Outbound> }
  readonly pool: Pool
  readonly store: Store
  readonly clock: Clock
  readonly logger: Logger
  readonly topics: readonly ArchivedTopic[]
  readonly compression: Compression
  /** Nobody is erased when absent. */
  readonly erasures?: Erasures
  readonly meter?: ArchiveMeter
  readonly limits?: Partial<ArchiveLimits>
}

export type Lane = {
  readonly topic: ArchivedTopic
  readonly partition: number
  readonly lease: Lease
  readonly epoch: bigint
  /** The stored position: everything below it is in a segment of the index. */
  next: bigint
  segment: Segment | null
  /** Files that are being written and that the index does not name yet. */
  readonly writing: Set<string>
  /** When something was last taken in, by the machine's own timer. */
  fedAt: number
  /** Somebody else has the partition, or the stage stops. */
  readonly over: AbortSignal
  lose(): void
  /** One at a time: what changes the open segment. */
  turn<R>(work: () => Promise<R>): Promise<R>
}

export type Stage = {
  readonly deps: ArchiveDeps
  readonly limits: ArchiveLimits
  readonly meter: ArchiveMeter
  readonly lanes: Map<string, Lane>
  readonly stopping: AbortSignal
  /** The lane's position has another owner. */
  fenced(lease: Lease): void
}

export const codecOf = (codecs: ArchiveDeps['codecs'], topic: ArchivedTopic): Codec<Kept> =>
  (topic === 'outbound' ? codecs.outbound : codecs.call) as unknown as Codec<Kept>

/** True while the lane's owner is who it was; holds the position until the transaction ends. */
export const holdsPosition = async (
  tx: Sql,
  { topic, partition, epoch }: Lane,
): Promise<boolean> => {
  const { rows } = await tx.query(
    `select from position
      where reader = 'archive' and topic = $1 and partition = $2 and epoch = $3 for update`,
    [topic, partition, epoch],
  )
  return rows.length > 0
}
