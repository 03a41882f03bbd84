// The projector's limits, each with its unit; every queue and cache of the stage is bounded by one.

export type ProjectLimits = {
  /** Calls in one transaction. */
  readonly batchCallsMax: number
  /** How long a small batch waits for more calls right after another batch, in milliseconds. */
  readonly gatherMs: number
  /** Decoded calls waiting for a transaction; handles wait beyond it. */
  readonly queueCallsMax: number
  /** Of values fetched from the log and not yet decoded. */
  readonly fetchBytesMax: number
  readonly userCacheBytesMax: number
  readonly identityCacheBytesMax: number
  /** Of ids known to be metered for their month. */
  readonly sightingCacheBytesMax: number
  /** Of message digests remembered for one partition. */
  readonly duplicateBytesMax: number
  /** Folding gives way to the event loop after this many milliseconds. */
  readonly yieldMs: number
  /** A batch that fails more often than this while the database answers ends the stage. */
  readonly replaysMax: number
  /** Between two tries of a batch when the database is away, in milliseconds. */
  readonly retryMs: number
  /** Calls of history in one transaction of a build. */
  readonly historyCallsMax: number
  /** Users in one transaction of a build. */
  readonly evaluateUsersMax: number
  /** Between two looks for audiences to build, in milliseconds. */
  readonly buildPollMs: number
  /** Between two looks for ids to fold into pages, in milliseconds. */
  readonly usageFoldMs: number
}

const mebibyte = 1_048_576

export const projectLimits: ProjectLimits = {
  batchCallsMax: 5_000,
  gatherMs: 10,
  queueCallsMax: 10_000,
  fetchBytesMax: 16 * mebibyte,
  userCacheBytesMax: 48 * mebibyte,
  identityCacheBytesMax: 16 * mebibyte,
  sightingCacheBytesMax: 8 * mebibyte,
  duplicateBytesMax: 4 * mebibyte,
  yieldMs: 5,
  replaysMax: 1_000,
  retryMs: 500,
  historyCallsMax: 2_000,
  evaluateUsersMax: 1_000,
  buildPollMs: 250,
  usageFoldMs: 10_000,
}
