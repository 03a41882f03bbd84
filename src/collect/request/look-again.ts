// A key that nobody has here may have been made a moment ago in another process: the configuration is looked at again.

export type LookAgain = () => Promise<void>

/** From the start of one look to the next: bad keys, however many, cost Postgres no more than this. */
const everyMs = 1_000

/** Without a way to look there is nothing to wait for. `refresh` ends by itself, and never rejects. */
export const openLookAgain = (
  refresh: (() => Promise<void>) | undefined,
  nowMs: () => number = () => performance.now(),
): LookAgain => {
  let begunAt = Number.NEGATIVE_INFINITY
  let inHand: Promise<void> | null = null
  return async () => {
    const now = nowMs()
    if (refresh && inHand === null && now - begunAt >= everyMs) {
      begunAt = now
      inHand = refresh().finally(() => {
        inHand = null
      })
    }
    await inHand
  }
}
