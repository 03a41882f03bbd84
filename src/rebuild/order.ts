// Which partition's calls are folded next, and how many of them at once. Pure.
//
// Between partitions the log has no order. Calls that decided who is who are folded in the order that the
// live projector folded them in; all others about as they were received, so that people come to be as they
// did live even where that order was not recorded.
import type { IdentityKind } from '../domain/identity.ts'

/** A call of the past that decided who is who, and its place among all such. */
export type Decision = {
  readonly offset: bigint
  readonly seq: bigint
  /** What an alias took its previous id for. */
  readonly previous: IdentityKind | null
}

export type Head = {
  /** Of the calls at hand: ascending offsets. */
  readonly calls: readonly { readonly offset: bigint; readonly receivedAt: number }[]
  /** The next one of this partition that decided, if any is left. */
  readonly decision: Decision | null
}

export type Run = {
  /** Index of the head. */
  readonly head: number
  /** How many of its calls. */
  readonly calls: number
}

type Options = {
  /** How far calls may be folded before others that were received earlier, in milliseconds. */
  readonly slackMs: number
  readonly callsMax: number
}

/** `null` when no partition has calls. Of those that have, one can always go on: live went on with it. */
export const chooseRun = (heads: readonly Head[], options: Options): Run | null => {
  const first = firstDecision(heads)
  let chosen = -1
  let earliest = Number.POSITIVE_INFINITY
  let second = Number.POSITIVE_INFINITY
  for (const [index, { calls, decision }] of heads.entries()) {
    const call = calls[0]
    if (call === undefined || waits(call.offset, decision, first)) continue
    if (call.receivedAt < earliest) {
      second = earliest
      earliest = call.receivedAt
      chosen = index
    } else second = Math.min(second, call.receivedAt)
  }
  const head = heads[chosen]
  if (head === undefined) return null
  return { head: chosen, calls: lengthOf(head, first, { ...options, until: second }) }
}

/** The decision that is due: all before it were folded. */
const firstDecision = (heads: readonly Head[]): bigint | null =>
  heads.reduce<bigint | null>((least, { decision }) => {
    if (decision === null) return least
    return least === null || decision.seq < least ? decision.seq : least
  }, null)

const waits = (offset: bigint, decision: Decision | null, first: bigint | null): boolean =>
  decision !== null && offset >= decision.offset && decision.seq !== first

/** A call that decides ends the run: who is due after it may be another partition. */
const lengthOf = (
  { calls, decision }: Head,
  first: bigint | null,
  { until, slackMs, callsMax }: Options & { readonly until: number },
): number => {
  const most = Math.min(calls.length, callsMax)
  for (let at = 0; at < most; at++) {
    const { offset, receivedAt } = calls[at] as Head['calls'][number]
    if (at > 0 && receivedAt > until + slackMs) return at
    if (decision === null || offset < decision.offset) continue
    return decision.seq === first ? at + 1 : at
  }
  return most
}
