// Keeps a large heap near to what is alive in it: where a machine has memory to spare, the engine would let it
// grow to a multiple before it collects, and a process with much to remember would take more than it may.
import { getHeapSpaceStatistics, setFlagsFromString } from 'node:v8'

const lookEveryMs = 1_000
/** Old objects: above the first it is large, until it is below the second. */
const largeBytes = 50_331_648
const smallBytes = 33_554_432
/** About so much garbage before a large one is collected: each collection holds up everything for a tenth of a second. */
const garbageBytes = 67_108_864
/** Of what is alive, in percent: where that is much, memory counts for more than time. */
const growingPercentMin = 40
const growingPercentMax = 120
/** The engine decides. */
const anyPercent = 0

export const watchHeap = (): void => {
  let isLarge = false
  let told = anyPercent
  const look = () => {
    const bytes = oldBytes()
    isLarge = bytes > (isLarge ? smallBytes : largeBytes)
    const percent = isLarge ? growingPercentOf(bytes) : anyPercent
    if (percent === told) return
    told = percent
    // Read at the end of each collection, to say when the next one is due.
    setFlagsFromString(`--heap-growing-percent=${percent}`)
  }
  setInterval(look, lookEveryMs).unref()
}

const growingPercentOf = (bytes: number): number =>
  Math.round(Math.min(growingPercentMax, Math.max(growingPercentMin, (100 * garbageBytes) / bytes)))

const oldBytes = (): number =>
  getHeapSpaceStatistics().find(({ space_name }) => space_name === 'old_space')?.space_used_size ??
  0
