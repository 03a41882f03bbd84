// A process with much to remember that lets go of what it takes a while later: forked by heap.system.test.ts.
import { setTimeout as sleep } from 'node:timers/promises'
import { getHeapSpaceStatistics, setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { watchHeap } from '../../src/heap.ts'

const old = () =>
  getHeapSpaceStatistics().find(({ space_name }) => space_name === 'old_space')?.space_used_size ??
  0

const aThing = (n: number) => ({ n, text: `thing ${n}`, at: { n } })

const things = 1_000_000
const sliceEach = 10_000
/** The collector works beside it, and must keep up on a machine that does much else. */
const breathMs = 3
const kept: unknown[] = []
/** Long enough to outlive the young generation. */
const passing: unknown[] = Array.from({ length: 100_000 })

watchHeap()
for (let n = 0; n < things; n += 1) {
  kept.push(aThing(n))
  if (n % sliceEach === 0) await sleep(breathMs)
}
let mostBytes = 0
for (let n = 0; n < 5 * things; n += 1) {
  passing[n % passing.length] = aThing(n)
  if (n % sliceEach > 0) continue
  await sleep(breathMs)
  // By then there was a collection that knew how large it is.
  if (n > 3 * things) mostBytes = Math.max(mostBytes, old())
}
setFlagsFromString('--expose-gc')
;(runInNewContext('gc') as () => void)()
process.send?.({ liveBytes: old(), mostBytes, kept: kept.length })
