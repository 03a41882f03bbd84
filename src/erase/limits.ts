// Every bound of erasing, by name.

export const eraseLimits = {
  pollMs: 500,
  /** A process that has not beaten for this long died: nobody waits for it. As the heartbeat has it. */
  aliveMs: 60_000,
  /** The hard limit of a delivery round: what was on its way when all was erased has ended by then. */
  roundMs: 10_000,
  /** Requests taken on in one pass, and ids that share one reading of all that is kept. */
  requestsMax: 1_000,
  idsMax: 20_000,
  /** Orders of one append. */
  ordersMax: 500,
  /** The longest pause after a failure. */
  pauseMaxMs: 5_000,
}

export type EraseLimits = typeof eraseLimits
