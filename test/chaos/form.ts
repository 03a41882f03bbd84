// Which form of the chaos tests runs: set by main.ts, short when it is vitest alone.

export const isLong = process.env['CHAOS_FORM'] === 'long'

const longRuns = 200

/** How many kills: as many as were asked for. */
export const runsOr = (short: number): number =>
  Number(process.env['CHAOS_RUNS'] ?? (isLong ? longRuns : short))

const longHerd = 10_000

/** How many destinations recover together: as many as were asked for. */
export const herdOr = (short: number): number =>
  Number(process.env['CHAOS_DESTINATIONS'] ?? (isLong ? longHerd : short))
