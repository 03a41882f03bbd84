// The past of a log and of its archive as one: what the log has let go of is read from segments, the rest from the log.
import type { Message, Outbound } from '../domain/message.ts'
import { Fault } from '../fault.ts'
import type { Batch, Codec, History, Range, Recorded } from '../log/log.ts'
import type { Pool } from '../postgres/sql.ts'
import { entryOf, type Kept } from './line.ts'
import { findSegment, loadChains, loadFirstsAt, type SegmentRow } from './manifest.ts'
import { type ArchivedTopic, archivedTopics } from './name.ts'
import { segmentLines } from './read.ts'
import { codecOf } from './stage.ts'
import type { Store } from './store.ts'

type Deps = {
  readonly log: History
  readonly pool: Pool
  readonly store: Store
  readonly codecs: { readonly call: Codec<Message>; readonly outbound: Codec<Outbound> }
}

export const archiveHistory = (deps: Deps): History => ({
  read: (range) => readRange(deps, range),
  bounds: async (topic) => {
    const [bounds, chains] = await Promise.all([
      deps.log.bounds(topic),
      loadChains(deps.pool, topic),
    ])
    const byPartition = new Map(chains.map((chain) => [chain.partition, chain]))
    return bounds.map(({ start, end }, partition) => {
      const chain = byPartition.get(partition)
      const reaches = chain !== undefined && chain.start < start && chain.end >= start
      return { start: reaches ? chain.start : start, end }
    })
  },
  // Of the archive it is the segment's first offset: whoever reads from there looks at each entry's own instant.
  offsetsAt: async (topic, at) => {
    const [bounds, offsets, firsts] = await Promise.all([
      deps.log.bounds(topic),
      deps.log.offsetsAt(topic, at),
      loadFirstsAt(deps.pool, { topic, at: new Date(at.getTime() - appendMsMax) }),
    ])
    return offsets.map((offset, partition) => {
      const start = bounds[partition]?.start ?? 0n
      const first = firsts.get(partition)
      return offset <= start && first !== undefined && first < offset ? first : offset
    })
  },
})

/** From an entry being received to its being in the log, at the most. */
const appendMsMax = 60_000

async function* readRange(deps: Deps, range: Range): AsyncGenerator<Batch> {
  const { topic, partition, until } = range
  const history = await archiveHistory(deps).bounds(topic)
  const begin = history[partition]?.start ?? 0n
  let next = range.from < begin ? begin : range.from
  while (next < until) {
    const kept = (await deps.log.bounds(topic))[partition]?.start ?? 0n
    if (next < kept) {
      for await (const batch of readSegment(deps, { ...range, from: next })) {
        yield batch
        next = batch.next
      }
      continue
    }
    for await (const batch of deps.log.read({ topic, partition, from: next, until })) {
      // Let go of between two fetches: what is missing is in the archive by now.
      if (batch.from > next) break
      yield batch
      next = batch.next
    }
  }
}

/** A file may be written anew, or dropped, between looking it up and reading it. */
const triesMax = 3

/** What the segment over `from` holds from there on. */
async function* readSegment(deps: Deps, range: Range): AsyncGenerator<Batch> {
  const { topic, partition, from, until } = range
  for (let tries = 1; ; tries += 1) {
    const segment = await findSegment(deps.pool, { topic, partition, at: from })
    if (segment === null)
      throw new Fault(
        'log_gap',
        `neither the log nor the archive has ${topic}/${partition} from offset ${from} on`,
      )
    let next = from
    try {
      for await (const batch of batchesOf(deps, segment, { from, until })) {
        yield batch
        next = batch.next
      }
      return
    } catch (error) {
      const isMissing = error instanceof Fault && error.code === 'archive_damaged'
      if (!isMissing || next > from || tries >= triesMax) throw error
    }
  }
}

const batchBytesMax = 1_048_576

type Span = { readonly from: bigint; readonly until: bigint }

async function* batchesOf(
  deps: Deps,
  segment: SegmentRow,
  { from, until }: Span,
): AsyncGenerator<Batch> {
  const codec = topicCodec(deps, segment)
  const end = segment.next < until ? segment.next : until
  let begin = from
  let entries: Recorded[] = []
  let bytes = 0
  for await (const lines of segmentLines(deps.store, segment))
    for (const line of lines) {
      const entry = entryOf(codec, line)
      if (entry.offset < from) continue
      if (entry.offset >= end) break
      entries.push(entry)
      bytes += entry.value.byteLength
      if (bytes < batchBytesMax) continue
      const next = entry.offset + 1n
      yield { from: begin, next, entries }
      begin = next
      entries = []
      bytes = 0
    }
  if (begin < end) yield { from: begin, next: end, entries }
}

const topicCodec = ({ codecs }: Deps, { topic }: SegmentRow): Codec<Kept> => {
  const archived: ArchivedTopic | undefined = archivedTopics.find((each) => each === topic)
  return codecOf(codecs, archived ?? 'calls')
}
