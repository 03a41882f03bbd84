// Whether this process should be sent calls: only while the log takes what is appended.

const freshMs = 10_000
const probeMsMax = 2_000

export type Readiness = {
  readonly appended: (isAcknowledged: boolean) => void
  readonly isReady: () => Promise<boolean>
}

/**
 * An append of the last seconds decides. Without one the log is asked; without a way to ask, a
 * failure is forgotten after those seconds, because no call would come to prove the log is back.
 */
export const openReadiness = (probe?: () => Promise<unknown>): Readiness => {
  let last: { readonly isAcknowledged: boolean; readonly at: number } | null = null
  return {
    appended: (isAcknowledged) => {
      last = { isAcknowledged, at: performance.now() }
    },
    isReady: async () => {
      const isFresh = last !== null && performance.now() - last.at < freshMs
      if (isFresh && last?.isAcknowledged) return true
      if (!probe) return !isFresh
      return withinMs(probe(), probeMsMax)
    },
  }
}

const withinMs = (asked: Promise<unknown>, ms: number) =>
  new Promise<boolean>((resolve) => {
    const timer = setTimeout(() => resolve(false), ms)
    asked
      .then(
        () => resolve(true),
        () => resolve(false),
      )
      .finally(() => clearTimeout(timer))
  })
