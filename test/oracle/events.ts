// The naive evaluator's view of one person's calls: which events pass a filter, in order, and the traits.
import type { Events, Filter } from './language.ts'
import type { Call } from './people.ts'
import type { Happened } from './reduce.ts'
import { isScalar, type Json, type Path, passes, valueAt } from './values.ts'

export type Seen = Happened & { readonly receivedAt: number }

export const happened = (
  { name, where }: Pick<Events, 'name' | 'where'>,
  calls: readonly Call[],
  zone: string,
): readonly Seen[] =>
  inOrder(calls.filter(({ type, event }) => type === 'track' && event === name))
    .filter(({ properties }) => where === undefined || matches(where, properties, { zone }))
    .map((call) => ({ ...call, te: effectiveTime(call) }))

type Steps = {
  readonly zone: string
  readonly chosen?: (label: string) => Json | undefined
  readonly traits?: Json
}

export const matches = (filter: Filter, properties: Json, steps: Steps): boolean => {
  if ('all' in filter) return filter.all.every((part) => matches(part, properties, steps))
  if ('any' in filter) return filter.any.some((part) => matches(part, properties, steps))
  if ('not' in filter) return !matches(filter.not, properties, steps)
  const when = { at: 0, zone: steps.zone }
  const { ref } = filter
  if (ref === undefined) return passes({ ...filter, path: filter.prop }, properties, when)
  const trait =
    typeof ref === 'string' ? /^trait:(.+)$/.exec(ref)?.[1] : (ref as { trait: Path }).trait
  if (trait !== undefined) {
    const value = valueAt(steps.traits ?? null, trait)
    return isScalar(value) && passes({ ...filter, value, path: filter.prop }, properties, when)
  }
  const [, label = '', path = ''] = /^([^.]+)\.prop\.(.+)$/.exec(String(ref)) ?? []
  const { step, prop } =
    typeof ref === 'object' && 'step' in ref ? ref : { step: label, prop: path }
  const value = valueAt(steps.chosen?.(step) ?? null, prop)
  return isScalar(value) && passes({ ...filter, value, path: filter.prop }, properties, when)
}

/** No event is in the future; one before 1970 happened when it was received. */
export const effectiveTime = ({ timestamp, receivedAt }: Call): number =>
  timestamp >= 0 ? Math.min(timestamp, receivedAt) : receivedAt

/** By (te, receivedAt, message id). */
const inOrder = (calls: readonly Call[]): readonly Call[] =>
  [...calls].sort(
    (a, b) =>
      effectiveTime(a) - effectiveTime(b) ||
      a.receivedAt - b.receivedAt ||
      (a.messageId < b.messageId ? -1 : 1),
  )

/** Each top-level key has its newest write; null deletes. */
export const traitsAt = (calls: readonly Call[], at: number): { readonly [key: string]: Json } => {
  const written = calls.filter(({ type, receivedAt }) => type === 'identify' && receivedAt <= at)
  const traits = new Map<string, Json>()
  for (const call of inOrder(written))
    for (const [key, value] of Object.entries(call.traits)) traits.set(key, value)
  return Object.fromEntries(traits)
}
