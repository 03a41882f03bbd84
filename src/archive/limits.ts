// The archive's limits, each with its unit; what is in memory is bounded by them, whatever the store does.

export type ArchiveLimits = {
  /** Of values fetched from the log and not yet taken. */
  readonly fetchBytesMax: number
  /** Entries decoded and written down before others get their turn. */
  readonly entriesAtOnce: number
  /** Uncompressed, of one partition: then it becomes a compressed block. */
  readonly blockBytesMax: number
  /** Of one segment, compressed. */
  readonly segmentBytesMax: number
  /** Of all open segments: beyond it the largest is written. */
  readonly openBytesMax: number
  /** An open segment is written after this long, by the clock. */
  readonly segmentMsMax: number
  /** Nothing new for this long, and entries that are older than a segment may be are written at once. */
  readonly idleMs: number
  /** Between two looks for segments whose time has come. */
  readonly tickMs: number
  /** Before a segment that could not be written is tried again. */
  readonly retryMs: number
  /** Between two looks at the log's bounds. */
  readonly figuresMs: number
  /** Between two rounds of keeping the archive, by the clock. */
  readonly keepEveryMs: number
  /** How long segments are kept after their last entry came; 0: for ever. */
  readonly keepMs: number
}

const mebibyte = 1_048_576

export const archiveLimits: ArchiveLimits = {
  fetchBytesMax: 16 * mebibyte,
  entriesAtOnce: 256,
  blockBytesMax: mebibyte,
  segmentBytesMax: 16 * mebibyte,
  openBytesMax: 64 * mebibyte,
  segmentMsMax: 3_600_000,
  idleMs: 10_000,
  tickMs: 250,
  retryMs: 5_000,
  figuresMs: 15_000,
  keepEveryMs: 3_600_000,
  keepMs: 0,
}
