// Keeps a large heap near to what is alive in it: where a machine has memory to spare, the engine would let it
// grow to a multiple before it collects, and a process with much to remember would take more than it may.
import { getHeapSpaceStatistics, setFlagsFromString } from 'node:v8'

const lookEveryMs = 1_000
/** Old objects: above the first it is large, until it is below the second. */
const largeBytes = 50_331_648
const smallBytes = 33_554_432
/** So much garbage for what is alive, in percent, before a large one is collected. */
const growingPercent = 40
/** The engine decides. */
const anyPercent = 0

export const watchHeap = (): void => {
  let isLarge = false
  const look = () => {
    const isLargeNow = oldBytes() > (isLarge ? smallBytes : largeBytes)
    if (isLargeNow === isLarge) return
    isLarge = isLargeNow
    // Read at the end of each collection, to say when the next one is due.
    setFlagsFromString(`--heap-growing-percent=${isLarge ? growingPercent : anyPercent}`)
  }
  setInterval(look, lookEveryMs).unref()
}

const oldBytes = (): number =>
  getHeapSpaceStatistics().find(({ space_name }) => space_name === 'old_space')?.space_used_size ??
  0
