// Every bound of the sync stage, by name.

export const syncLimits = {
  /** Users are spread over this many shards by the projector; fixed for the life of a database. */
  shards: 64,
  /** Users whose changes one transaction takes up, over all its chunks. */
  chunkUsersMax: 1_000,
  /** Shards whose chunks may share one transaction. */
  shardsOfStep: 16,
  /** Such transactions in flight at once, a connection each. */
  stepsAtOnce: 4,
  /** Times a chunk is replayed after a serialization failure before the stage starts over. */
  chunkReplaysMax: 50,
  /** Outbox rows of one append; a run stops to relay when it is this far ahead. */
  appendRowsMax: 1_000,
  /** Outbox rows kept in memory between their chunk and their append; more are read back. */
  handedRowsMax: 8_000,
  /** Bytes of their bodies kept so. */
  handedBytesMax: 16_777_216,
  /** Appends between two readings of the topic's own bounds. */
  appendsPerBounds: 100,
  /** The longest pause after a rejected append. */
  appendPauseMaxMs: 5_000,
  /** A run that waits longer for the projector is logged, again after each such time. */
  barrierWarnMs: 600_000,
  /** The longest sleep of a loop between two looks at the clock. */
  pollMs: 250,
  /** How often a process that does not lead looks whether the place is free. */
  standbyMs: 1_000,
  /** How long a request may name an audience that no snapshot here has yet. */
  unknownAudienceMs: 10_000,
  /** Requested runs taken in one look. */
  requestsMax: 100,
  /** Records of older runs are deleted. */
  runsKept: 10_000,
  /** How often an audience was counted; older counts are deleted. At the usual pace, half a year. */
  sizesKept: 2_000,
  /** As many changes of counts of members are not left waiting for the end of a run. */
  membershipChangesMax: 10_000,
  /** Changes of accounts added up in one transaction. */
  accountDeltasMax: 5_000,
  /** Users of accounts whose memberships one transaction sets. */
  accountUsersMax: 1_000,
  /** As many changes of accounts are not left waiting for a run that asks for them. */
  accountBacklogMax: 10_000,
} as const

export type SyncLimits = { readonly [name in keyof typeof syncLimits]: number }
