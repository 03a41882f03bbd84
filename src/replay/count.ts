// Counts what a replay would send, for as long as somebody waits; a cursor goes on where it stopped.
import type { Destination } from '../domain/configuration.ts'
import { rendererFor, type Selection, type WithheldReason } from '../domain/replay.ts'
import { lengthOf, readAt, type Span } from '../domain/replay-span.ts'
import { isDropped } from '../domain/suppression.ts'
import { dyingOf, narrowToDead, siftDead } from './dead.ts'
import type { ReplayDeps } from './deps.ts'
import { replayLimits } from './limits.ts'
import { planSpans } from './plan.ts'
import { readSlices } from './read.ts'

export type Counted = {
  readonly spans: readonly Span[]
  read: number
  selected: number
  /** Of those selected, what the destination would get; repeats of a client's among them. */
  sendable: number
  suppressed: number
} & Record<WithheldReason, number>

type Deps = Pick<ReplayDeps, 'history' | 'suppressions' | 'pool'> & {
  readonly codecs: Pick<ReplayDeps['codecs'], 'call'>
}

type Counting = {
  readonly selection: Selection
  readonly destination: Destination
  /** When it is asked: what died since does not count. */
  readonly at: Date
  /** What was counted before; `null`: nothing. */
  readonly before: Counted | null
  /** Real time. */
  readonly msMax: number
}

export const countReplay = async (deps: Deps, counting: Counting): Promise<Counted> => {
  const { selection, destination, before, msMax, at } = counting
  const { sliceMax, skewMs } = replayLimits
  const until = performance.now() + msMax
  const dying = dyingOf({ selection, destinationId: destination.id, createdAt: at })
  const planned = async () => {
    const spans = await planSpans(deps.history, selection, skewMs)
    return dying ? narrowToDead(deps.pool, spans, dying) : spans
  }
  const counted = before ? { ...before } : nothingCounted(await planned())
  const render = rendererFor(destination)
  const sift = dying && siftDead(deps.pool, dying)
  const reading = { history: deps.history, codec: deps.codecs.call, selection, sift, sliceMax }
  for await (const { span, next, found } of readSlices(reading, counted)) {
    counted.selected += found.length
    for (const { message } of found) {
      if (isDropped(deps.suppressions, message)) counted.suppressed += 1
      else {
        const rendered = render(message)
        counted['withheld' in rendered ? rendered.withheld : 'sendable'] += 1
      }
    }
    counted.read = readAt(span, next)
    if (performance.now() >= until) break
  }
  return counted
}

const nothingCounted = (spans: readonly Span[]): Counted => ({
  ...{ spans, read: 0, selected: 0, sendable: 0, suppressed: 0 },
  ...{ historical: 0, filtered: 0, unsendable: 0 },
})

export const isComplete = ({ spans, read }: Counted): boolean => read >= lengthOf(spans)
