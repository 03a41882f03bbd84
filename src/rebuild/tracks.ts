// The calls of one partition, read ahead of their turn, with the decisions that stand among them.
import type { IdentityKind } from '../domain/identity.ts'
import type { Message } from '../domain/message.ts'
import type { Batch } from '../log/log.ts'
import { decodeCalls, piecesOf } from '../project/lane.ts'
import type { Lane, Piece } from '../project/lanes.ts'
import type { RebuildDeps } from './deps.ts'
import type { Decision, Head } from './order.ts'
import { readDecisions } from './store.ts'

type Held = {
  readonly offset: bigint
  readonly receivedAt: number
  readonly message: Message
}

export type Track = {
  readonly lane: Lane
  head(): Head
  /** So that the head has calls and their decision, unless the target is reached. */
  fill(): Promise<void>
  /** Takes so many calls off. */
  take(calls: number): readonly Piece[]
  /** What is left to be said when there are no more calls: `null` if the position says it already. */
  rest(): Piece | null
  close(): Promise<void>
}

/** Reads from the lane's position up to `target`. */
export const openTrack = (deps: RebuildDeps, lane: Lane, target: bigint): Track => {
  const { topic, partition } = lane.lease
  const { runCallsMax, decisionsMax } = deps.limits
  const place = { topic, partition }
  const parts = partsOf(deps, { ...place, from: lane.next, until: target })
  let calls: readonly Held[] = []
  let next = lane.next
  let ahead: ReturnType<typeof parts.next> | null = null
  let decisions: Decision[] = []
  let known = lane.next
  const fillDecisions = async () => {
    if (decisions.length > 0 || known >= target) return
    const range = { ...place, from: known, until: target, limit: decisionsMax }
    const found = await readDecisions(deps.pool, range)
    decisions = [...found]
    const last = found.at(-1)
    known = found.length < decisionsMax || last === undefined ? target : last.offset + 1n
  }
  return {
    lane,
    head: () => ({ calls, decision: decisions[0] ?? null }),
    fill: async () => {
      await fillDecisions()
      while (calls.length === 0 && next < target) {
        const { value, done } = await (ahead ?? parts.next())
        ahead = null
        if (done) return
        calls = value
        // The next part is decoded while this one is folded.
        ahead = parts.next()
        ahead.catch(() => undefined)
      }
    },
    take: (count) => {
      const taken = calls.slice(0, Math.min(count, runCallsMax))
      calls = calls.slice(taken.length)
      next = (taken.at(-1) as Held).offset + 1n
      const decided = new Map<bigint, IdentityKind>()
      while (decisions[0] && decisions[0].offset < next) {
        const { offset, previous } = decisions.shift() as Decision
        if (previous !== null) decided.set(offset, previous)
      }
      const asThen = ({ offset, message }: Held) => ({
        ...{ offset, message },
        previous: decided.get(offset),
      })
      return piecesOf(lane, decided.size === 0 ? taken : taken.map(asThen), next)
    },
    rest: () => {
      if (calls.length > 0 || next >= target) return null
      next = target
      return { lane, next, calls: [] }
    },
    close: async () => {
      await parts.return()
    },
  }
}

type Reading = { readonly topic: Lane['lease']['topic']; readonly partition: number } & {
  readonly from: bigint
  readonly until: bigint
}

async function* partsOf(
  { history, codecs, limits }: RebuildDeps,
  range: Reading,
): AsyncGenerator<readonly Held[], void> {
  for await (const { entries } of history.read(range) as AsyncIterable<Batch>)
    for (let at = 0; at < entries.length; at += limits.runCallsMax) {
      const part = entries.slice(at, at + limits.runCallsMax)
      const decoded = await decodeCalls(codecs.call, part)
      yield decoded.map(({ offset, message }) => ({
        offset,
        receivedAt: message.receivedAt,
        message,
      }))
    }
}
