// What a run's set-up started, stopped as a whole: all of it, also where a part did not start or does not stop.

export type Stop = () => Promise<unknown>

/** Starts them side by side. Rejects once those that did start are stopped again. */
export const startAll = async (
  ...starts: readonly (() => Promise<Stop>)[]
): Promise<() => Promise<void>> => {
  const started = await Promise.allSettled(starts.map((start) => start()))
  const stops = started.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []))
  const stop = async () => throwFirst(await Promise.allSettled(stops.map((each) => each())))
  if (stops.length < starts.length) await stop()
  throwFirst(started)
  return stop
}

/** A start that fails leaves nothing behind. */
export const orStopped = async <T>(stop: Stop, start: () => Promise<T>): Promise<T> => {
  try {
    return await start()
  } catch (error) {
    await stop()
    throw error
  }
}

export const throwFirst = (results: readonly PromiseSettledResult<unknown>[]): void => {
  for (const result of results) if (result.status === 'rejected') throw result.reason
}
