// A thousand destinations at once, each of which answers in 10 ms: deliver against a bare undici loop over the
// same receivers. Both are counted while they run steadily: each run leads in before it is counted, on either side alike.
import { setTimeout as sleep } from 'node:timers/promises'
import { openProcesses } from './deliver-processes.ts'
import type { Usage } from './deliver-product.ts'
import {
  demand,
  megabytes,
  type Receivers,
  rssMaxBytes,
  type Stand,
  withStand,
} from './deliver-stand.ts'
import { type Figure, type Run, runPairs, type Span } from './pairs.ts'

const budget = 0.6
const destinations = 1_000
const delayMs = 10
/** Requests at a time of the bare loop: one at each receiver. */
const concurrency = destinations
/** More than the product can send in a second, so that its log never runs dry. */
const perSecondMost = 15_000
/** After the first thousand requests: connections are opened, partitions gained and lanes filled in this time, which nobody counts. */
const leadSeconds = 1
/** Once before the pairs: compilers need tens of thousands of posts. */
const warmUpSeconds = 3

export const run = (span: Span): Promise<void> =>
  withStand(async (stand) => {
    const receivers = await stand.receivers([{ kind: 'well', ports: destinations, delayMs }])
    const processes = openProcesses()
    try {
      const [bare] = await processes.start('deliver-sender.ts', ['bare'])
      const [urls = []] = receivers.urls
      const ratio = await runPairs({
        name: 'destinations',
        budget,
        unit: 'posts/s',
        warmUpSeconds,
        bare: async (seconds) => {
          await bare.ask({ type: 'start', urls, concurrency })
          const usage = async () => usageOf(await bare.ask<BareUsage>({ type: 'usage' }))
          const figure = await measured(receivers, seconds, usage)
          await bare.ask({ type: 'stop' })
          return figure
        },
        product: product({ stand, receivers, urls }),
        ...span,
      })
      const { rssMostBytes } = await stand.send({ type: 'usage' })
      if (span.total !== undefined) return
      demand(ratio >= budget, `destinations reached ${ratio.toFixed(3)}, less than ${budget}`)
      demand(rssMostBytes < rssMaxBytes, `the sender took ${megabytes(rssMostBytes)}`)
    } finally {
      await processes.end()
    }
  })

type BareUsage = { readonly cpu: NodeJS.CpuUsage; readonly rssBytes: number }

const usageOf = ({ cpu, rssBytes }: BareUsage): Usage => ({
  cpuUs: cpu.user + cpu.system,
  rssBytes,
  rssMostBytes: rssBytes,
})

type Scene = {
  readonly stand: Stand
  readonly receivers: Receivers
  readonly urls: readonly string[]
}

/** Sends what is in its log before the time begins. */
const product =
  ({ stand, receivers, urls }: Scene): Run =>
  (seconds) =>
    stand.onPlace(async (place) => {
      const sourceIds = urls.map((_url, at) => at + 1)
      await stand.load({ type: 'open', ...place })
      const calls = Math.ceil((seconds + leadSeconds) * perSecondMost)
      await stand.load({ type: 'fill', calls, sourceIds })
      await stand.send({ type: 'start', ...place, urls })
      const usage = () => stand.send({ type: 'usage' })
      const figure = await measured(receivers, seconds, usage)
      await stand.send({ type: 'stop' })
      await stand.load({ type: 'close' })
      return figure
    })

/** Counted at the receivers, between two instants of a steady run; so is the CPU. */
const measured = async (
  receivers: Receivers,
  seconds: number,
  usage: () => Promise<Usage>,
): Promise<Figure> => {
  await receivers.ask('reset')
  while ((await receivers.ask('count')).well < destinations) await sleep(5)
  await sleep(leadSeconds * 1_000)
  const before = await usage()
  const first = await receivers.ask('count')
  const began = performance.now()
  await sleep(seconds * 1_000)
  const last = await receivers.ask('count')
  const took = (performance.now() - began) / 1_000
  const after = await usage()
  const posts = last.well - first.well
  const cpu = (after.cpuUs - before.cpuUs) / Math.max(1, posts)
  const notes = { 'CPU µs/post': cpu, 'RSS MB': after.rssMostBytes / 1_048_576 }
  return { rate: posts / took, notes }
}
