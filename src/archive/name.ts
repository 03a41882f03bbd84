// The names of segments: they sort by topic, partition and first offset, and say everything that the index
// cannot be rebuilt without. No two owners of a partition ever write the same name: the epoch is in it.
import type { Topic } from '../log/log.ts'

export const archivedTopics = [
  'calls',
  'calls.import',
  'outbound',
] as const satisfies readonly Topic[]
export type ArchivedTopic = (typeof archivedTopics)[number]

export const compressions = ['zstd', 'gzip'] as const
export type Compression = (typeof compressions)[number]

export type SegmentName = {
  readonly topic: ArchivedTopic
  readonly partition: number
  /** Offsets in [first, next). */
  readonly first: bigint
  readonly next: bigint
  /** Of the position of whoever wrote it. */
  readonly epoch: bigint
  readonly generation: number
  readonly compression: Compression
}

const endings: Readonly<Record<Compression, string>> = { zstd: 'ndjson.zst', gzip: 'ndjson.gz' }

export const folderOf = (place: { readonly topic: string; readonly partition: number }): string =>
  `${place.topic}/${String(place.partition).padStart(4, '0')}/`

export const pathOf = (name: SegmentName): string => {
  const span = `${wide(name.first)}-${wide(name.next)}`
  return `${folderOf(name)}${span}.${name.epoch}.${name.generation}.${endings[name.compression]}`
}

const wide = (offset: bigint): string => String(offset).padStart(20, '0')

const pattern = /^([a-z.]+)\/(\d{4,})\/(\d{20})-(\d{20})\.(\d+)\.(\d+)\.ndjson\.(zst|gz)$/

/** `null` for anything that no archive wrote. */
export const readPath = (path: string): SegmentName | null => {
  const [, topicText, partition, first, next, epoch, generation, ending] = pattern.exec(path) ?? []
  const topic = archivedTopics.find((each) => each === topicText)
  if (topic === undefined) return null
  return {
    topic,
    partition: Number(partition),
    first: BigInt(first ?? 0),
    next: BigInt(next ?? 0),
    epoch: BigInt(epoch ?? 0),
    generation: Number(generation),
    compression: ending === 'gz' ? 'gzip' : 'zstd',
  }
}
