// Long work gives way to the event loop: the batch being written must not wait for the one prepared behind it.
import { setImmediate as nextTurn } from 'node:timers/promises'

export const pauser = (everyMs: number) => {
  let since = performance.now()
  let turns = 0
  return {
    due: () => (++turns & 31) === 0 && performance.now() - since > everyMs,
    take: async () => {
      await nextTurn()
      since = performance.now()
    },
  }
}
