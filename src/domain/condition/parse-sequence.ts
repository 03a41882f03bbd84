// Parsing sequences of events: steps one after the other, each with its time and what it shares with an earlier one.
import { singlePathAt, traitRefAt } from './comparison.ts'
import {
  type Condition,
  conditionLimits,
  type Filter,
  type Match,
  orderOperators,
  type Step,
} from './condition.ts'
import { childrenAt, parseFilter } from './parse-events.ts'
import { durationAt, parseWindow } from './parse-window.ts'
import { readPath } from './path.ts'
import type { Reading } from './reading.ts'

const settles = ['immediate', 'after_deadline'] as const

export const parseSequence = (at: Reading): Condition | null => {
  at.only(['sequence'])
  at.leaf()
  const written = at.in('sequence')
  if (written.object() === null) return null
  written.only(['window', 'settle', 'steps'])
  const window = written.in('window').given() ? parseWindow(written.in('window')) : undefined
  const settle = written.in('settle').given() ? written.in('settle').oneOf(settles) : 'immediate'
  const steps = parseSteps(written.in('steps'))
  if (window === null || settle === null || steps === null) return null
  const last = steps[steps.length - 1] as Step
  if (settle === 'after_deadline' && last.then === 'did')
    return written.in('settle').refuse('expected a last step with "then": "did_not"')
  if (settle === 'after_deadline' && last.withinMs === null)
    return written
      .in('settle')
      .refuse('expected a "within" of the last step, which sets the deadline')
  return { type: 'sequence', sequence: { window: window ?? null, settle, steps } }
}

const labelForm = /^[A-Za-z_][A-Za-z0-9_]{0,63}$/

const parseSteps = (at: Reading): readonly Step[] | null => {
  const list = at.list()
  if (list === null) return null
  if (list.length < 2 || list.length > conditionLimits.stepsMax)
    return at.refuse(`expected 2 to ${conditionLimits.stepsMax} steps`)
  const labels: string[] = []
  const steps = list.map((step, index) => {
    const parsed = parseStep(step, { labels, first: index === 0, last: index === list.length - 1 })
    labels.push(labelAt(step.in('as'), labels))
    return parsed
  })
  return steps.includes(null) ? null : (steps as readonly Step[])
}

/** Empty where none is given, which no reference can name. */
const labelAt = (at: Reading, taken: readonly string[]): string => {
  if (!at.given()) return ''
  const sound = typeof at.value === 'string' && labelForm.test(at.value)
  if (sound && !taken.includes(at.value as string)) return at.value as string
  at.refuse(sound ? 'expected a name no other step has' : 'expected a name of letters and digits')
  return ''
}

type Place = { readonly labels: readonly string[]; readonly first: boolean; readonly last: boolean }

const parseStep = (at: Reading, { labels, first, last }: Place): Step | null => {
  if (at.object() === null) return null
  at.only(first ? ['event', 'as'] : ['event', 'as', 'then', 'within'])
  const event = at.in('event')
  if (event.object() === null) return null
  event.only(['name', 'where'])
  const name = event.in('name').text()
  const where = event.in('where').given() ? parseWhere(event.in('where'), labels) : nothing
  const then = at.in('then').given() ? at.in('then').oneOf(['did', 'did_not'] as const) : 'did'
  const withinMs = at.in('within').given() ? durationAt(at.in('within')) : undefined
  if (then === 'did_not' && !last)
    return at.in('then').refuse('expected "did": only the last step may be "did_not"')
  if (name === null || where === null || then === null || withinMs === null) return null
  return { name, where: where.filter, then, withinMs: withinMs ?? null, match: where.match }
}

type Where = { readonly filter: Filter | null; readonly match: readonly Match[] }

const nothing: Where = { filter: null, match: [] }

/** Comparisons with an earlier step stand at the top, or in an "all" there. */
const parseWhere = (at: Reading, labels: readonly string[]): Where | null => {
  const node = at.object()
  if (node === null) return null
  if (!Object.hasOwn(node, 'all')) {
    const [found] = partsOf([at], labels)
    return found === undefined || found === null ? null : joined([found])
  }
  at.only(['all'])
  const children = childrenAt(at.in('all'), 'all')
  if (children === null) return null
  const parts = partsOf(children, labels)
  return parts.includes(null) ? null : joined(parts as readonly Part[])
}

type Part = { readonly filter: Filter } | { readonly match: Match }

const partsOf = (list: readonly Reading[], labels: readonly string[]): readonly (Part | null)[] =>
  list.map((at) => {
    if (at.in('prop').given() && at.in('ref').given()) {
      const match = parseMatch(at, labels)
      return match === null ? null : { match }
    }
    const filter = parseFilter(at, 1)
    return filter === null ? null : { filter }
  })

const joined = (parts: readonly Part[]): Where => {
  const filters = parts.flatMap((part) => ('filter' in part ? [part.filter] : []))
  const match = parts.flatMap((part) => ('match' in part ? [part.match] : []))
  const [only] = filters
  if (only === undefined) return { filter: null, match }
  return { filter: filters.length === 1 ? only : { type: 'all', of: filters }, match }
}

const parseMatch = (at: Reading, labels: readonly string[]): Match | null => {
  at.leaf()
  at.only(['prop', 'op', 'ref'])
  const path = singlePathAt(at.in('prop'))
  const op = at.in('op').oneOf(orderOperators)
  const ref = stepRefAt(at.in('ref'), labels)
  return path === null || op === null || ref === null ? null : { path, op, ...ref }
}

/** "a.prop.cart_id" or {"step": "a", "prop": path} */
const stepRefAt = (at: Reading, labels: readonly string[]): Pick<Match, 'step' | 'of'> | null => {
  const { value } = at
  if (traitRefAt(at) !== undefined)
    return at.refuse(
      'expected a property of an earlier step: a trait can stand in the "where" of an event that is counted or measured, not in a sequence',
    )
  if (typeof value === 'object' && value !== null) {
    at.only(['step', 'prop'])
    const of = singlePathAt(at.in('prop'))
    const step = labels.indexOf(String(at.in('step').value))
    if (step < 0) return at.in('step').refuse(earlier(labels))
    return of === null ? null : { step, of }
  }
  const [, label = '', path = ''] = /^([^.]+)\.prop\.(.+)$/s.exec(String(value)) ?? []
  const [step, of] = [label === '' ? -1 : labels.indexOf(label), readPath(path)]
  if (step < 0 || of === null || of.includes('[*]')) return at.refuse(earlier(labels))
  return { step, of }
}

const earlier = (labels: readonly string[]): string => {
  const named = labels.filter((label) => label !== '')
  return named.length === 0
    ? 'expected a property of an earlier step, which must be named with "as"'
    : `expected a property of an earlier step (${named.join(', ')}), such as "${named[0]}.prop.cart_id"`
}
