// Every bound of an import.

export const importLimits = {
  /** Of one chunk after decompression; a longer line is rejected. */
  chunkBytesMax: 2_097_152,
  /** What a client may send as one chunk. */
  bodyBytesMax: 4_194_304,
  /** So that judging one leaves the process to others soon. */
  chunkLinesMax: 5_000,
  /** Judged or waiting to be appended, over all imports of this process. */
  chunksMax: 16,
  /** Judging goes on for so long before others have a turn. */
  sliceMs: 1,
  /** Where the log ended is asked anew after this long. */
  endsMsMax: 5_000,
  /** Of one import's rejected lines, as an upload in one piece is answered. */
  answeredRejectedMax: 1_000,
  columnsMax: 1_000,
}
