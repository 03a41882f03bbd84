// The naive evaluator's sequences: every chain of events there is gets tried.

import type { Happened } from './reduce.ts'
import { durationOf, type Window } from './time.ts'

export type SequenceStep<Where> = {
  readonly event: { readonly name: string; readonly where?: Where }
  readonly as?: string
  readonly then?: string
  readonly within?: string
}

export type Sequence<Where> = {
  readonly window?: Window
  readonly settle?: string
  readonly steps: readonly SequenceStep<Where>[]
}

type Ground<Where> = {
  /** Those that are the step's, after the ones chosen for the steps before it. */
  readonly eventsOf: (step: SequenceStep<Where>, chain: readonly Happened[]) => readonly Happened[]
  readonly isIn: (te: number, at: number) => boolean
}

export const isThere = <Where>(
  { steps, settle }: Sequence<Where>,
  { eventsOf, isIn }: Ground<Where>,
  at: number,
): boolean => {
  const goesOn = (chain: readonly Happened[]): boolean => {
    const step = steps[chain.length]
    const before = chain.at(-1)
    if (step === undefined) return true
    const from = before?.te ?? -Infinity
    const deadline = step.within === undefined ? Infinity : from + durationOf(step.within)
    const next = eventsOf(step, chain).filter(({ te }) => te > from && te <= deadline)
    if (step.then === 'did_not')
      return next.length === 0 && (settle !== 'after_deadline' || at >= deadline)
    return next.some((it) => (before !== undefined || isIn(it.te, at)) && goesOn([...chain, it]))
  }
  return goesOn([])
}
