// When a client that was told to wait may come again, in whole seconds.

/** Published clients wait no longer, whatever they are told. */
export const retryAfterSecondsMax = 300

const bounded = (seconds: number) => Math.min(retryAfterSecondsMax, Math.max(1, Math.ceil(seconds)))

/** When there will be room is known. */
export const whenRoom = (waitMs: number): number => bounded(waitMs / 1_000)

export type Overload = {
  readonly seconds: number
  /** Demand over what can be met: 1 when they just meet. */
  readonly excess: number
  /** In [0, 1). */
  readonly random: number
}

/** The more is refused, the longer, and the further apart: those refused together must not return together. */
export const whenCalmer = ({ seconds, excess, random }: Overload): number =>
  bounded(seconds * Math.max(1, excess) * (0.5 + random))
