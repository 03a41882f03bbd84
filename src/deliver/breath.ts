// Gives the event loop back when intake held it for too long: sockets are looked at before anybody goes on.
import { openQueue } from './queue.ts'

/** To be asked between two small pieces of work; a promise: wait for it. */
export type Breath = () => Promise<void> | undefined

/** Of all partitions together: at each turn of the loop one of them goes on, so that many hold it no longer than one. */
export type Breaths = { open(yieldMs: number): Breath }

export const openBreaths = (): Breaths => {
  const waiting = openQueue<() => void>()
  const turn = () => {
    const next = waiting.shift()
    if (waiting.size() > 0) setImmediate(turn)
    next?.()
  }
  const pause = () =>
    new Promise<void>((resolve) => {
      waiting.push(resolve)
      if (waiting.size() === 1) setImmediate(turn)
    })
  return {
    open: (yieldMs) => {
      let since = performance.now()
      return () => {
        if (performance.now() - since < yieldMs) return undefined
        return pause().then(() => {
          since = performance.now()
        })
      }
    },
  }
}
