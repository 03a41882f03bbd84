// What one dead, one slow and one flapping destination of a hundred cost the others: the p99 from append to
// receiver of the healthy ones at half of what deliver can do, with the three over without them.
import { setTimeout as sleep } from 'node:timers/promises'
import type { Pool } from '../src/postgres/sql.ts'
import {
  demand,
  type Place,
  type Receivers,
  rssMaxBytes,
  type Stand,
  withStand,
} from './deliver-stand.ts'
import { type Run, runPairs, type Span } from './pairs.ts'

const budget = 1.1
const destinations = 100
const sick = 3
const delayMs = 10
const slowMs = 4_900
/** So much of each sick destination waits already when the time begins: more than its lane holds. */
const burst = 2_000
/** Until breakers have opened, and what could not be sent is parked. */
const settleMs = 8_000
/** While the most is measured so many calls wait, and so many are appended at a time: few, as in the runs. */
const ahead = 4_000
const topUp = 500
const appendCalls = 20
const peakMs = 3_000

export const run = (span: Span): Promise<void> =>
  withStand(async (stand) => {
    const isShort = span.total !== undefined
    const receivers = await stand.receivers([
      { kind: 'well', ports: destinations, delayMs },
      { kind: 'dead', ports: 1, delayMs: 0 },
      { kind: 'slow', ports: 1, delayMs: slowMs },
      { kind: 'flapping', ports: 1, delayMs },
    ])
    if (!isShort) await stand.onPlace((_place, pool) => runIn(pool))
    const peak = await peakOf(stand, receivers)
    console.log(`deliver to ${destinations} destinations: ${Math.round(peak)} posts/s`)
    const scene = { stand, receivers, perSecond: Math.floor(peak / 2) }
    const [well = [], ...troubles] = receivers.urls
    const some = well.slice(0, destinations - sick)
    const ratio = await runPairs({
      name: 'isolation',
      budget,
      lower: true,
      sides: ['without', 'with'],
      unit: 'µs p99',
      bare: runner(scene, well),
      product: runner(scene, [...some, ...troubles.flat()]),
      // In its short form each run still has to settle.
      pairs: isShort ? 1 : span.pairs,
      seconds: isShort ? 4 : 4 * span.seconds,
      warmUp: !isShort,
    })
    const { rssMostBytes } = await stand.send({ type: 'usage' })
    if (isShort) return
    demand(ratio <= budget, `isolation reached ${ratio.toFixed(3)}, more than ${budget}`)
    demand(rssMostBytes < rssMaxBytes, `the sender took ${rssMostBytes} bytes`)
  })

/**
 * A server that is new makes a file for each 16 MB of its log, which holds everybody up; one that has run for a
 * while takes an old file again. So many megabytes, until the checkpoint after which files come back.
 */
const runInMegabytes = 704

const runIn = async (pool: Pool): Promise<void> => {
  const megabyte = Buffer.alloc(1_048_576)
  for (let done = 0; done < runInMegabytes; done += 1)
    await pool.query("select pg_logical_emit_message(false, 'bench', $1::bytea)", [megabyte])
  await pool.query('checkpoint')
}

/** What is sent in a second when there is always more, and more is appended beside it, as in the runs. */
const peakOf = (stand: Stand, receivers: Receivers): Promise<number> =>
  stand.onPlace(async (place) => {
    const [urls = []] = receivers.urls
    const sourceIds = idsOf(urls)
    let waiting = 0
    const fillUp = async () => {
      const calls = waiting < ahead ? topUp : 0
      waiting += calls
      if (calls > 0) await stand.load({ type: 'fill', calls, sourceIds, each: appendCalls })
      else await sleep(20)
    }
    const sent = async (): Promise<number> => {
      const { well } = await receivers.ask('reset')
      waiting -= well
      return well
    }
    await stand.load({ type: 'open', ...place })
    while (waiting < ahead) await fillUp()
    await stand.send({ type: 'start', ...place, urls })
    while ((await sent()) === 0) await fillUp()
    const began = performance.now()
    let posts = 0
    while (performance.now() - began < peakMs) {
      await fillUp()
      posts += await sent()
    }
    const seconds = (performance.now() - began) / 1_000
    await end(stand)
    return posts / seconds
  })

type Scene = {
  readonly stand: Stand
  readonly receivers: Receivers
  readonly perSecond: number
}

/** The same calls at the same rate either way; only who answers the last three destinations differs. */
const runner =
  ({ stand, receivers, perSecond }: Scene, urls: readonly string[]): Run =>
  (seconds) =>
    stand.onPlace(async (place) => {
      await begin(stand, place, urls)
      const sourceIds = idsOf(urls)
      await stand.load({ type: 'fill', calls: sick * burst, sourceIds: sourceIds.slice(-sick) })
      await stand.load({ type: 'run', perSecond, sourceIds })
      await sleep(settleMs)
      const before = await stand.send({ type: 'usage' })
      await receivers.ask('reset')
      await sleep(seconds * 1_000)
      const counts = await receivers.ask('count')
      const after = await stand.send({ type: 'usage' })
      const { waitingMost } = await stand.load({ type: 'halt' })
      await end(stand)
      const notes = {
        'p50 µs': counts.p50Us,
        'healthy posts/s': counts.well / seconds,
        'CPU %': (after.cpuUs - before.cpuUs) / seconds / 10_000,
        'most waiting for the log': waitingMost,
        'RSS MB': after.rssMostBytes / 1_048_576,
      }
      return { rate: counts.p99Us, notes }
    })

const begin = async (stand: Stand, place: Place, urls: readonly string[]): Promise<void> => {
  await stand.load({ type: 'open', ...place })
  await stand.send({ type: 'start', ...place, urls })
}

const end = async (stand: Stand): Promise<void> => {
  await stand.send({ type: 'stop' })
  await stand.load({ type: 'close' })
}

/** Each destination has a source of its own. */
const idsOf = (urls: readonly string[]): readonly number[] => urls.map((_url, at) => at + 1)
