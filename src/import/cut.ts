// Cuts content into chunks of whole records, wherever its pieces came apart on their way.
import type { Chunk } from './chunk.ts'
import { importLimits } from './limits.ts'
import { openRecords, type Records } from './record-end.ts'

export type Cutting = {
  /** Where the content goes on. */
  readonly place: number
  readonly line: number
  /** `null`: every line is a record, as in NDJSON. */
  readonly delimiter: string | null
  readonly linesMax?: number
}

/** The last chunk says so; of no content there is one empty chunk. */
export async function* cutChunks(
  pieces: AsyncIterable<Uint8Array>,
  cutting: Cutting,
): AsyncGenerator<Chunk> {
  const cutter = openCutter(cutting)
  for await (const piece of pieces) {
    cutter.add(piece)
    for (let chunk = cutter.next(); chunk; chunk = cutter.next()) yield chunk
  }
  yield* cutter.rest()
}

const openCutter = (cutting: Cutting) => {
  const { linesMax = importLimits.chunkLinesMax, delimiter } = cutting
  let records: Records = openRecords(delimiter)
  let { place, line } = cutting
  let held: Buffer = Buffer.alloc(0)
  /** Of a line that is too long, what has been passed over so far. */
  let skipped = 0

  const chunkOf = (length: number, lines: number): Chunk => {
    const chunk = { place, line, bytes: held.subarray(0, length), skipped: 0, isLast: false }
    held = held.subarray(length)
    place += length
    line += lines
    records = openRecords(delimiter)
    return chunk
  }
  /** The end of its first line ends what is too long: a quote may not have been closed. */
  const skip = (): Chunk | null => {
    const found = held.indexOf(newline)
    const passed = found < 0 ? held.length : found + 1
    skipped += passed
    held = held.subarray(passed)
    return found < 0 ? null : skippedChunk()
  }
  const skippedChunk = (): Chunk => {
    const chunk = { place, line, bytes: Buffer.alloc(0), skipped, isLast: false }
    place += skipped
    line += 1
    skipped = 0
    records = openRecords(delimiter)
    return chunk
  }
  const next = (): Chunk | null => {
    if (skipped > 0) return skip()
    records.scan(held, { bytesMax: importLimits.chunkBytesMax, linesMax })
    // Held back while it may be the last.
    if (records.isFull && records.end > 0) return chunkOf(records.end, records.lines)
    return held.length > importLimits.chunkBytesMax && records.end === 0 ? skip() : null
  }
  return {
    add: (piece: Uint8Array) => {
      held = held.length === 0 ? Buffer.from(piece) : Buffer.concat([held, piece])
    },
    next,
    rest: function* (): Generator<Chunk> {
      if (skipped > 0) yield skippedChunk()
      while (held.length > importLimits.chunkBytesMax) {
        const chunk = next()
        if (!chunk) break
        yield chunk
      }
      yield { ...chunkOf(held.length, 0), isLast: true }
    },
  }
}

const newline = 10
