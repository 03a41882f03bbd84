// Finds what of a chunk was appended by somebody who died, or was not heard, before saying so.
import type { Message } from '../domain/message.ts'
import { partitionOf } from '../domain/partition.ts'
import type { Codec, History } from '../log/log.ts'
import type { Prepared } from './judge.ts'
import type { Ends } from './store.ts'

export type Seeking = {
  readonly history: Pick<History, 'read' | 'bounds'>
  readonly codec: Codec<Message>
  /** Where the log ended in each partition before any of it can have been appended. */
  readonly ends: Ends
  readonly entries: readonly Prepared[]
}

/** What is not in the log yet. Only the partitions are read that the chunk's calls belong to. */
export const notAppended = async (seeking: Seeking): Promise<readonly Prepared[]> => {
  const { history, codec, ends, entries } = seeking
  const bounds = await history.bounds('calls.import')
  const missing = new Set(entries.map(({ digest }) => nameOf(digest)))
  const partitions = new Set(
    // Where partitions were added since, keys have moved: then it may be in any of them.
    ends.length === bounds.length
      ? entries.map(({ entry }) => partitionOf(entry.key, bounds.length))
      : bounds.keys(),
  )
  for (const partition of partitions) {
    const from = BigInt(ends[partition] ?? 0)
    const until = bounds[partition]?.end ?? from
    if (from >= until) continue
    for await (const batch of history.read({ topic: 'calls.import', partition, from, until }))
      for (const message of await codec.decode(batch.entries.map(({ value }) => value)))
        missing.delete(nameOf(message.digest))
  }
  return entries.filter(({ digest }) => missing.has(nameOf(digest)))
}

const nameOf = (digest: Uint8Array): string => Buffer.from(digest).toString('latin1')
