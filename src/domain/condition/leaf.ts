// A leaf is what audiences share: what it keeps of which events, but not what that is compared with.
import { createHash } from 'node:crypto'
import { measureText, sequenceText } from './canonical.ts'
import type { Condition, EventSpec, Filter, Measure, Reduce, Sequence } from './condition.ts'
import { splitFilter } from './moving.ts'
import type { Kind, Summary } from './summary/kind.ts'
import { measureKind } from './summary/measure.ts'
import { sequenceKind } from './summary/sequence.ts'
import type { Comparison } from './value.ts'

export type LeafSpec =
  | { readonly type: 'measure'; readonly measure: Measure }
  | { readonly type: 'sequence'; readonly sequence: Sequence }

/** One leaf as the conditions ask for it; `keep` is the number of newest events that must be known. */
export type LeafNeed = { readonly hash: string; readonly spec: LeafSpec; readonly keep: number }

/** For whatever is not compared with a literal count. */
export const keepAll = 2_147_483_647

export const leavesOf = (condition: Condition): readonly LeafNeed[] => {
  switch (condition.type) {
    case 'all':
    case 'any':
      return condition.of.flatMap(leavesOf)
    case 'not':
      return leavesOf(condition.of)
    case 'identified':
      return []
    case 'trait':
      return leavesOfRef(condition.test.comparison)
    case 'count':
      return [countNeed(condition.events, condition.threshold.value + 1)]
    case 'measure':
      return [measureNeed(condition.measure), ...leavesOfRef(condition.comparison)]
    case 'compare':
      return [measureNeed(condition.left), measureNeed(condition.right)]
    case 'sequence':
      return [sequenceNeed(condition.sequence)]
  }
}

const leavesOfRef = (comparison: Comparison): readonly LeafNeed[] =>
  'ref' in comparison && comparison.ref.type === 'measure'
    ? [measureNeed(comparison.ref.measure)]
    : []

export const countNeed = (events: EventSpec, keep: number): LeafNeed => {
  const reduce: Reduce = { type: 'count' }
  return { ...needOf({ type: 'measure', measure: { events, reduce } }), keep }
}

export const measureNeed = (measure: Measure): LeafNeed => needOf({ type: 'measure', measure })

export const sequenceNeed = (sequence: Sequence): LeafNeed => needOf({ type: 'sequence', sequence })

const needOf = (spec: LeafSpec): LeafNeed => ({ hash: leafHash(spec), spec, keep: keepAll })

const leafHash = (spec: LeafSpec): string =>
  createHash('sha256')
    .update(
      spec.type === 'measure'
        ? measureText(spec.measure)
        : `sequence ${sequenceText(spec.sequence)}`,
    )
    .digest('hex')

/** What feeds a leaf: an event of this name that passes the filter, at this step. */
export type Feed = {
  readonly event: string
  readonly where: Filter | null
  readonly step: number
  /** Whether the leaf looks at properties beyond the filter. */
  readonly reads: boolean
}

export const feedsOf = (spec: LeafSpec): readonly Feed[] => {
  if (spec.type === 'sequence')
    return spec.sequence.steps.map(({ name: event, where }, step) => ({
      ...{ event, where, step },
      reads: spec.sequence.steps.some(({ match }) => match.length > 0),
    }))
  const { events, reduce } = spec.measure
  const { fixed, moving } = splitFilter(events.where)
  const reads = 'path' in reduce || moving !== null
  return [{ event: events.name, where: fixed, step: 0, reads }]
}

/** `keep`: no question about a count looks further than that many newest events. */
export const kindOf = (spec: LeafSpec, keep: number): Kind<Summary> =>
  (spec.type === 'sequence'
    ? sequenceKind(spec.sequence)
    : measureKind(spec.measure, keep)) as Kind<Summary>
