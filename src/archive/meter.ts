// What the archive counts and knows of itself, for whoever asks: metrics, `millrace archive status`, doctor.

export type Standing = {
  readonly topic: string
  readonly partition: number
  /** Entries in the log that are in no segment yet. */
  readonly lag: number
  /** Entries that retention may take before the archive would lose one. */
  readonly headroom: number
}

export type ArchiveMeter = {
  /** Of the partitions this process holds. */
  standing: readonly Standing[]
  /** Of the whole archive, as the index has it. */
  segments: number
  bytes: number
  /** Of this process, since its start. */
  written: number
  writtenBytes: number
  erased: number
  failures: number
  /** Epoch ms of the last failure while it has not been made good. */
  failingSince: number | null
}

export const openArchiveMeter = (): ArchiveMeter => ({
  standing: [],
  segments: 0,
  bytes: 0,
  written: 0,
  writtenBytes: 0,
  erased: 0,
  failures: 0,
  failingSince: null,
})
