// Reads the topic `outbound` from where it was last read, as the acceptance's view of every sync.
import type { Outbound } from '../../src/domain/message.ts'
import type { Codec, Source } from '../../src/log/log.ts'

export type OutboundReader = {
  /** What was appended since the last call, in each partition's order. */
  fresh(): Promise<readonly Outbound[]>
}

export const readOutbound = (source: Source, codec: Codec<Outbound>): OutboundReader => {
  const next: bigint[] = []
  return {
    fresh: async () => {
      const found: Outbound[] = []
      const bounds = await source.bounds('outbound')
      for (const [partition, { end }] of bounds.entries()) {
        const from = next[partition] ?? 0n
        if (end <= from) continue
        for await (const batch of source.read({ topic: 'outbound', partition, from, until: end }))
          found.push(...(await codec.decode(batch.entries.map(({ value }) => value))))
        next[partition] = end
      }
      return found
    },
  }
}
