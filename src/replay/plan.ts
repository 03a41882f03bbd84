// Which stretches of the log can hold what a replay selects: imports first, as they are the older calls.
import type { Selection } from '../domain/replay.ts'
import type { Span } from '../domain/replay-span.ts'
import type { History } from '../log/log.ts'

type Times = Pick<Selection, 'by' | 'from' | 'until'>

const topics = ['calls.import', 'calls'] as const

/**
 * A call is appended after it was received and no sooner than its own time, give or take what clocks differ;
 * how long after its own time nobody knows.
 */
export const planSpans = async (
  history: Pick<History, 'bounds' | 'offsetsAt'>,
  { by, from, until }: Times,
  skewMs: number,
): Promise<readonly Span[]> => {
  const spans: Span[] = []
  for (const topic of topics) {
    const bounds = await history.bounds(topic)
    const starts = await history.offsetsAt(topic, new Date(Math.max(0, from - skewMs)))
    const ends =
      by === 'receivedAt' ? await history.offsetsAt(topic, new Date(until + skewMs)) : null
    for (const [partition, { start, end }] of bounds.entries()) {
      const first = Number(larger(starts[partition] ?? end, start))
      const last = Number(smaller(ends?.[partition] ?? end, end))
      if (first < last) spans.push({ topic, partition, from: first, until: last })
    }
  }
  return spans
}

const larger = (a: bigint, b: bigint): bigint => (a > b ? a : b)
const smaller = (a: bigint, b: bigint): bigint => (a < b ? a : b)
