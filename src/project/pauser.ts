// Long work gives way to the event loop: the batch being written must not wait for the one prepared behind it.
import { setImmediate as nextTurn } from 'node:timers/promises'

/** Asked at every so many turns what time it is. */
export const pauser = (everyMs: number, everyTurns = 32) => {
  let since = performance.now()
  let turns = 0
  return {
    due: () => ++turns % everyTurns === 0 && performance.now() - since > everyMs,
    take: async () => {
      await nextTurn()
      since = performance.now()
    },
  }
}
