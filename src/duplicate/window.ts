// Which earlier records a record is compared with: a pure function of receipts seen so far.

export const hourMs = 3_600_000
export const windowMs = 24 * hourMs
/**
 * How far a record's receipt may lie behind the highest before it and still be compared with its
 * whole window. Beyond this its window is cut where hours are forgotten, for every reader alike.
 */
const slackHours = 2
const keepHours = windowMs / hourMs + slackHours

export const hourOf = (receivedAt: number): number => Math.floor(receivedAt / hourMs)

/** Hours before this one are forgotten once `high` is the highest receipt. */
export const firstHourKept = (high: number): number => hourOf(high) - keepHours

/** The earliest receipt that makes an earlier record with this digest the original. */
export const windowStart = (receivedAt: number, high: number): number =>
  Math.max(receivedAt - windowMs + 1, firstHourKept(high) * hourMs)
