// How fast imports go: as fast as they can while nobody else is there, and a share of the time while live calls come.

/** What is looked at of the line, now and again. */
export type Signs = {
  /** Live calls a second. */
  readonly livePerSecond: number
  /** Live calls that readers have before them. */
  readonly liveLag: number
  /** Imported calls that the slowest reader has before it. */
  readonly importLag: number
  /** How late this process's event loop is. */
  readonly loopDelayMs: number
}

export const paceLimits = {
  shareMin: 0.02,
  /** While there are live calls. */
  shareMax: 0.25,
  /** A reader that is behind by so many seconds of live calls is in need of the machine. */
  liveLagSecondsMax: 2,
  loopDelayMsMax: 15,
  /** Beyond it imports wait: what is read later than the log keeps it would be lost to its readers. */
  importLagMax: 2_000_000,
  /** One wait is at most this long: then it is looked again. */
  waitMsMax: 5_000,
}

/** The share of the time that imports may work, from 0 to 1: halved under pressure, raised step by step. */
export const shareOf = (before: number, signs: Signs, limits = paceLimits): number => {
  if (signs.importLag > limits.importLagMax) return 0
  if (signs.livePerSecond === 0) return 1
  const { shareMin, shareMax } = limits
  const isPressed =
    signs.liveLag > signs.livePerSecond * limits.liveLagSecondsMax ||
    signs.loopDelayMs > limits.loopDelayMsMax
  return isPressed
    ? Math.max(shareMin, Math.min(before, shareMax) / 2)
    : Math.min(shareMax, Math.max(shareMin, before) + shareMin)
}

/** After work that took so long, how long nothing is done for the share to hold. */
export const pauseOf = (share: number, workedMs: number, limits = paceLimits): number =>
  share >= 1
    ? 0
    : Math.min(limits.waitMsMax, share === 0 ? limits.waitMsMax : workedMs * (1 / share - 1))

export type Pace = {
  /** Before a chunk is appended; `false` when that must wait for so long that it had better be asked again. */
  wait(): Promise<boolean>
  /** What it takes is counted. */
  working<R>(work: () => Promise<R>): Promise<R>
}

export const unpaced: Pace = { wait: async () => true, working: (work) => work() }
