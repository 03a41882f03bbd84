// A segment that is being written: lines become blocks, blocks a file. Nothing here touches disk or network.
import { createHash } from 'node:crypto'
import { compressed } from './frames.ts'
import type { Compression } from './name.ts'

/** What the index says of a segment's entries. */
export type Summary = {
  readonly entries: number
  /** Epoch milliseconds, `null` when there is no entry. */
  readonly receivedFrom: number | null
  readonly receivedTo: number | null
  readonly timestampFrom: number | null
  readonly timestampTo: number | null
}

export const emptySummary: Summary = {
  entries: 0,
  receivedFrom: null,
  receivedTo: null,
  timestampFrom: null,
  timestampTo: null,
}

export type Times = { readonly receivedAt: number; readonly timestamp: number }

export const summed = (summary: Summary, { receivedAt, timestamp }: Times): Summary => ({
  entries: summary.entries + 1,
  receivedFrom: Math.min(summary.receivedFrom ?? receivedAt, receivedAt),
  receivedTo: Math.max(summary.receivedTo ?? receivedAt, receivedAt),
  timestampFrom: Math.min(summary.timestampFrom ?? timestamp, timestamp),
  timestampTo: Math.max(summary.timestampTo ?? timestamp, timestamp),
})

export type Segment = {
  readonly first: bigint
  /** One past the last offset taken in or known to hold nothing. */
  next: bigint
  summary: Summary
  /** When its first entry was taken in, by the clock. */
  readonly openedAt: number
  /** In memory: compressed blocks and lines that are in none yet. */
  readonly bytes: number
  add(line: Buffer, entry: { readonly offset: bigint }, times: Times): void
  /** Resolves when no more than a block of lines is uncompressed. */
  settle(): Promise<void>
  /** The file's bytes. Nothing can be added after. */
  finish(): Promise<{ readonly bytes: Buffer; readonly sha256: Buffer }>
}

type Options = {
  readonly first: bigint
  readonly openedAt: number
  readonly compression: Compression
  readonly blockBytesMax: number
}

export const openSegment = ({ first, openedAt, compression, blockBytesMax }: Options): Segment => {
  const blocks: Buffer[] = []
  let lines: Buffer[] = []
  let blockBytes = 0
  let lineBytes = 0
  const close = async () => {
    const block = await compressed(compression, Buffer.concat(lines))
    blocks.push(block)
    blockBytes += block.length
    lines = []
    lineBytes = 0
  }
  const segment: Segment = {
    first,
    next: first,
    summary: emptySummary,
    openedAt,
    get bytes() {
      return blockBytes + lineBytes
    },
    add: (line, { offset }, times) => {
      lines.push(line)
      lineBytes += line.length
      segment.next = offset + 1n
      segment.summary = summed(segment.summary, times)
    },
    settle: async () => {
      if (lineBytes >= blockBytesMax) await close()
    },
    finish: async () => {
      if (lineBytes > 0 || blocks.length === 0) await close()
      // The file takes the blocks' place: nothing is held twice while it is being written.
      const bytes = Buffer.concat(blocks.splice(0))
      blockBytes = bytes.length
      return { bytes, sha256: createHash('sha256').update(bytes).digest() }
    },
  }
  return segment
}
