// Whether a sender grows: its RSS over a minute at a constant rate, every attempt recorded.
import { setTimeout as sleep } from 'node:timers/promises'
import { demand, megabytes, rssMaxBytes, withStand } from './deliver-stand.ts'
import type { Span } from './pairs.ts'

const destinations = 50
const delayMs = 10
const perSecond = 1_000
const seconds = 60
/** The heap and the caches take their size first. */
const settleShare = 0.4

export const run = (span: Span): Promise<void> =>
  withStand(async (stand) => {
    const receivers = await stand.receivers([{ kind: 'well', ports: destinations, delayMs }])
    const [urls = []] = receivers.urls
    const isShort = span.total !== undefined
    const took = isShort ? (span.total ?? 0) : seconds
    await stand.onPlace(async (place, pool) => {
      const sourceIds = urls.map((_url, at) => at + 1)
      await stand.load({ type: 'open', ...place })
      await stand.send({ type: 'start', ...place, urls })
      await stand.load({ type: 'run', perSecond, sourceIds })
      const points: Point[] = []
      for (let at = 1; at <= took; at += 1) {
        await sleep(1_000)
        const { rssBytes } = await stand.send({ type: 'usage' })
        points.push({ second: at, bytes: rssBytes })
      }
      await stand.load({ type: 'halt' })
      const { rssMostBytes } = await stand.send({ type: 'stop' })
      const { well } = await receivers.ask('count')
      const { rows } = await pool.query<{ attempts: bigint }>(
        'select count(*) as attempts from attempt',
      )
      await stand.load({ type: 'close' })
      const settled = points.slice(Math.floor(points.length * settleShare))
      const slope = slopeOf(settled) * 60
      console.log(`RSS each fifth of the time: ${fifths(points).map(megabytes).join(', ')}`)
      console.log(
        `${well} posts at ${perSecond} a second, ${rows[0]?.attempts} attempts recorded; ${megabytes(slope)} a minute over the last ${settled.length} s`,
      )
      if (!isShort) demand(rssMostBytes < rssMaxBytes, `the sender took ${megabytes(rssMostBytes)}`)
      console.log(`memory ratio ${(rssMostBytes / rssMaxBytes).toFixed(3)} budget at most 1`)
    })
  })

type Point = { readonly second: number; readonly bytes: number }

const fifths = (points: readonly Point[]): readonly number[] =>
  [1, 2, 3, 4, 5].map((part) => points[Math.ceil((points.length * part) / 5) - 1]?.bytes ?? 0)

/** Bytes a second, by least squares. */
const slopeOf = (points: readonly Point[]): number => {
  const mean = (of: (point: Point) => number) =>
    points.reduce((sum, point) => sum + of(point), 0) / points.length
  const [second, bytes] = [mean((point) => point.second), mean((point) => point.bytes)]
  const covariance = mean((point) => (point.second - second) * (point.bytes - bytes))
  return covariance / mean((point) => (point.second - second) ** 2)
}
