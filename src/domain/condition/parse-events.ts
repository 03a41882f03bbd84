// Parsing which events are meant: {"name", "where", "window"}; and groups, which conditions have too.
import type { JsonObject } from '../message.ts'
import { operators, parseTest, traitRefAt } from './comparison.ts'
import { conditionLimits, type EventSpec, type Filter } from './condition.ts'
import { spanOperators } from './date.ts'
import { parseWindow } from './parse-window.ts'
import { anyElement } from './path.ts'
import type { Reading } from './reading.ts'
import type { Ref } from './value.ts'

export const parseEvents = (at: Reading): EventSpec | null => {
  const node = at.object()
  if (node === null) return null
  at.only(['name', 'where', 'window'])
  const name = at.in('name').text()
  const where = Object.hasOwn(node, 'where') ? parseEventFilter(at.in('where'), 0) : undefined
  const window = Object.hasOwn(node, 'window') ? parseWindow(at.in('window')) : undefined
  if (name === null || where === null || window === null) return null
  return { name, where: where ?? null, window: window ?? null }
}

/** Filters say the same of an event whenever they are asked: nothing in them moves with the time. */
const filterOperators = operators.filter((op) => !(spanOperators as readonly string[]).includes(op))

type ParseFilter = (at: Reading, depth: number) => Filter | null

const filterParser = (ref: (at: Reading) => Ref | null): ParseFilter => {
  const parse: ParseFilter = (at, depth) => {
    const node = at.object()
    if (node === null) return null
    const kind = kindOf(at, node, ['all', 'any', 'not', 'prop'] as const)
    if (kind === null) return null
    if (kind !== 'prop') return parseJunction({ at, kind, depth, parse })
    const test = parseTest(at, 'prop', { operators: filterOperators, ref })
    if (test === null) return null
    return 'ref' in test.comparison && test.path.includes(anyElement)
      ? at.in('prop').refuse('expected a path to one value, without "[*]", to compare with a trait')
      : { type: 'prop', test }
  }
  return parse
}

/** Of one call alone: there is no user whose traits could be asked. */
export const parseFilter = filterParser((at) =>
  at.refuse(
    'expected a "value" here: only a later step of a sequence, at the top of its "where", refers to an earlier one; a trait stands in the "where" of an event that is counted or measured',
  ),
)

/** Of the events that something is made of. */
const parseEventFilter = filterParser((at) => {
  const trait = traitRefAt(at)
  return trait === undefined
    ? at.refuse(
        'expected a trait such as "trait:city" to compare with; a step of a sequence is referred to in a later step, a measure outside the "where"',
      )
    : trait
})

/** The one key that says what kind of node this is. */
export const kindOf = <K extends string>(
  at: Reading,
  node: JsonObject,
  of: readonly K[],
): K | null => {
  const found = of.filter((kind) => Object.hasOwn(node, kind))
  if (found.length === 1) return found[0] as K
  const named = of.map((kind) => `"${kind}"`).join(', ')
  const problem =
    found.length === 0
      ? `expected one of ${named}, found ${describe(Object.keys(node))}`
      : `expected only one of ${named}, found ${describe(found)}`
  return at.refuse(problem)
}

const describe = (keys: readonly string[]): string =>
  keys.length === 0 ? 'an empty object' : keys.map((key) => `"${key}"`).join(' and ')

type Junction<N> = {
  readonly at: Reading
  readonly kind: 'all' | 'any' | 'not'
  readonly depth: number
  readonly parse: (at: Reading, depth: number) => N | null
}

type Joined<N> =
  | { readonly type: 'all' | 'any'; readonly of: readonly N[] }
  | { readonly type: 'not'; readonly of: N }

export const parseJunction = <N>({ at, kind, depth, parse }: Junction<N>): Joined<N> | null => {
  at.only([kind])
  if (depth >= conditionLimits.depthMax)
    return at.refuse(`expected at most ${conditionLimits.depthMax} levels of nesting`)
  if (kind === 'not') {
    const of = parse(at.in('not'), depth + 1)
    return of === null ? null : { type: 'not', of }
  }
  const children = childrenAt(at.in(kind), kind)
  if (children === null) return null
  const of = children.map((child) => parse(child, depth + 1))
  return of.includes(null) ? null : { type: kind, of: of as readonly N[] }
}

export const childrenAt = (at: Reading, kind: 'all' | 'any'): readonly Reading[] | null => {
  const children = at.list()
  return children?.length === 0
    ? at.refuse(
        `expected at least one condition: an empty "${kind}" would hold for everyone or no one`,
      )
    : children
}
