// Every bound of replays, by name.

export const replayLimits = {
  /** Replays that are open at a time: each needs a shard of the topic of its own. */
  openMax: 64,
  /** Calls decoded and decided at once; as many more are prepared while they are sent. */
  sliceMax: 2_000,
  /** Of one replay in the topic and parked: more is not sent before some of it is delivered or given up. */
  outstandingMax: 10_000,
  /** How often states, and what is outstanding, are looked at. */
  pollMs: 250,
  /** The pause of a replay that waits for its rate. */
  paceMs: 20,
  /** A rate that was not used is worth this much later. */
  creditMs: 1_000,
  /** How often a process that does not lead looks whether the place is free. */
  standbyMs: 1_000,
  /** Where a cancelled replay ends is known to every process that delivers after this, and what it knew before is stale. */
  cutKnownMs: 2_000,
  duplicateBytesMax: 8_388_608,
  /** Clocks of collectors and of the log differ by no more than this. */
  skewMs: 600_000,
} as const

export type ReplayLimits = { readonly [name in keyof typeof replayLimits]: number }
