// A process with much to remember that lets go of what it takes a while later: forked by heap.system.test.ts.
import { constants, PerformanceObserver } from 'node:perf_hooks'
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
/** Of how large the heap is, and some more: it looks each second. */
const twoLooksMs = 2_500
/** The collector works beside it, and must keep up on a machine that does much else. */
const breathMs = 3
const kept: unknown[] = []
/** Long enough to outlive the young generation. */
const passing: unknown[] = Array.from({ length: 100_000 })

const pass = async (n: number): Promise<void> => {
  passing[n % passing.length] = aThing(n)
  if (n % sliceEach === 0) await sleep(breathMs)
}

let collections = 0
new PerformanceObserver((list) => {
  for (const entry of list.getEntries()) {
    const { detail } = entry as unknown as { readonly detail: { readonly kind: number } }
    if (detail.kind === constants.NODE_PERFORMANCE_GC_MAJOR) collections += 1
  }
}).observe({ entryTypes: ['gc'] })

/** Until it was seen how large the heap is, and there was a collection that knew it. */
const settle = async (): Promise<void> => {
  const seenAt = performance.now() + twoLooksMs
  let n = 0
  for (; performance.now() < seenAt; n += 1) await pass(n)
  for (const before = collections; collections === before; n += 1) await pass(n)
}

watchHeap()
for (let n = 0; n < things; n += 1) {
  kept.push(aThing(n))
  if (n % sliceEach === 0) await sleep(breathMs)
}
await settle()
let mostBytes = 0
for (let n = 0; n < 3 * things; n += 1) {
  await pass(n)
  if (n % sliceEach === 0) mostBytes = Math.max(mostBytes, old())
}
setFlagsFromString('--expose-gc')
;(runInNewContext('gc') as () => void)()
process.send?.({ liveBytes: old(), mostBytes, kept: kept.length })
