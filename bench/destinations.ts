// A thousand destinations at once, each of which answers in 10 ms: deliver against a bare undici loop over the
// same receivers.
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
/** More than anything can send in a second. */
const perSecondMost = 9_000

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
        bare: async (seconds) => {
          const usage = await bare.ask<BareUsage>({ type: 'start', urls, concurrency })
          return measured(receivers, seconds, {
            before: usageOf(usage),
            stop: async () => usageOf(await bare.ask<BareUsage>({ type: 'stop' })),
          })
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
      const calls = Math.ceil((seconds + 1) * perSecondMost)
      await stand.load({ type: 'fill', calls, sourceIds })
      const before = await stand.send({ type: 'start', ...place, urls })
      const figure = await measured(receivers, seconds, {
        before,
        stop: () => stand.send({ type: 'stop' }),
      })
      await stand.load({ type: 'close' })
      return figure
    })

type Measuring = { readonly before: Usage; readonly stop: () => Promise<Usage> }

/** Counted at the receivers, from the first thousand requests on: each destination has been asked by then. */
const measured = async (
  receivers: Receivers,
  seconds: number,
  { before, stop }: Measuring,
): Promise<Figure> => {
  await receivers.ask('reset')
  let first = await receivers.ask('count')
  while (first.well < destinations) {
    await sleep(5)
    first = await receivers.ask('count')
  }
  const began = performance.now()
  await sleep(seconds * 1_000)
  const last = await receivers.ask('count')
  const took = (performance.now() - began) / 1_000
  const after = await stop()
  const { well } = await receivers.ask('count')
  const cpu = (after.cpuUs - before.cpuUs) / Math.max(1, well)
  const notes = { 'CPU µs/post': cpu, 'RSS MB': after.rssMostBytes / 1_048_576 }
  return { rate: (last.well - first.well) / took, notes }
}
