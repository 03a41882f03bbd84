// Why a condition holds for a user, or does not: its tree, with what is known behind each comparison.

import type { Json, JsonObject } from '../message.ts'
import { dayStart } from '../zone.ts'
import type { Condition, EventSpec, Measure, Sequence } from './condition.ts'
import {
  type BoundCondition,
  type BoundLeaf,
  bind,
  type Facts,
  holds,
  type LeafFinder,
  leafValue,
} from './evaluate.ts'
import { countNeed, type LeafNeed, measureNeed, sequenceNeed } from './leaf.ts'
import { traitsAsked } from './moving.ts'
import { anyElement, type Path, valueAt, valuesAt } from './path.ts'
import type { CountOperator } from './summary/count.ts'
import { printCondition } from './text/print.ts'
import { nextChange } from './turn.ts'
import type { Comparison } from './value.ts'
import { headOf, tailOf, type Window } from './window.ts'

/** When time alone turns an answer over, if no call arrives before. */
export type Turn = {
  /** Epoch ms; `Infinity` for never. */
  readonly at: number
  /** Otherwise it is not before that, and may be never. */
  readonly isExact: boolean
}

/** From `from`, inclusive, to `until`, exclusive; `null` where there is no bound. */
export type Bounds = { readonly from: number | null; readonly until: number | null }

/** What one side of a comparison is at the instant asked for. */
export type Fact = {
  /**
   * Which: "trait", or the reducer, such as "count"; of a reference with "ref " before it, and "where trait city"
   * of one that a property of events is compared with.
   */
  readonly name: string
  /** `undefined` for a missing value. */
  readonly value: Json | undefined
  /** A count that is known to be this or more: no comparison looks further. */
  readonly isFloor: boolean
  /** Which events were looked at; `null` for all, and for traits. */
  readonly window: Bounds | null
  /** Whether something was, or may have been, left out to keep it bounded. */
  readonly isCapped: boolean
}

export type Explained = {
  readonly type: Condition['type']
  readonly holds: boolean
  readonly turns: Turn
} & (
  | { readonly of: readonly Explained[] }
  | {
      /** In the text form. */
      readonly says: string
      readonly facts: readonly Fact[]
      /** What would make it hold; `null` when it does. */
      readonly takes: string | null
    }
)

export type Asked = {
  /** Closed, as it is stored: its lists stand in the order of the parsed condition's. */
  readonly json: JsonObject
  readonly condition: Condition
  readonly find: LeafFinder
  readonly facts: Facts
  /** Epoch ms, not before anything folded into the facts. */
  readonly at: number
}

type Looked = Pick<Asked, 'find' | 'facts' | 'at'>

/** `null` when a leaf is not kept yet. */
export const explain = (asked: Asked): Explained | null => {
  const bound = bind(asked.condition, asked.find)
  return bound === null ? null : explainNode(asked, bound)
}

const explainNode = (asked: Asked, bound: BoundCondition): Explained => {
  const { condition, json, facts, at } = asked
  const base = { type: condition.type, turns: turnAfter(bound, facts, at) }
  const inner = (child: Condition, of: Json | undefined, boundChild: BoundCondition) =>
    explainNode({ ...asked, condition: child, json: of as JsonObject }, boundChild)
  if (condition.type === 'not') {
    const of = inner(condition.of, json['not'], (bound as { of: BoundCondition }).of)
    return { ...base, holds: !of.holds, of: [of] }
  }
  if (condition.type === 'all' || condition.type === 'any') {
    const written = json[condition.type] as readonly Json[]
    const children = (bound as { of: readonly BoundCondition[] }).of
    const of = condition.of.map((child, index) =>
      inner(child, written[index], children[index] as BoundCondition),
    )
    const isMet = ({ holds: met }: Explained) => met
    return { ...base, holds: condition.type === 'all' ? of.every(isMet) : of.some(isMet), of }
  }
  const isMet = holds(bound, facts, at)
  const found = factsOf(asked)
  const takes = isMet ? null : takesOf(condition, json, found)
  return { ...base, holds: isMet, says: printCondition(json), facts: found, takes }
}

/** A change of a part is not always one of the whole: more of them than this are not followed. */
const turnsFollowedMax = 64

/** Goes from change to change of the parts until the answer is another one. */
export const turnAfter = (bound: BoundCondition, facts: Facts, at: number): Turn => {
  const now = holds(bound, facts, at)
  let turn = at
  for (let followed = 0; followed < turnsFollowedMax; followed++) {
    turn = nextChange(bound, facts, turn)
    if (turn === Number.POSITIVE_INFINITY || holds(bound, facts, turn) !== now)
      return { at: turn, isExact: true }
  }
  return { at: turn, isExact: false }
}

const factsOf = (asked: Asked): readonly Fact[] => {
  const { condition } = asked
  switch (condition.type) {
    case 'all':
    case 'any':
    case 'not':
      return []
    case 'identified':
      return [plain('identified', asked.facts.identified)]
    case 'trait': {
      const { path, comparison } = condition.test
      return [plain('trait', traitAt(asked, path)), ...refFacts(asked, comparison)]
    }
    case 'count': {
      const { events, threshold } = condition
      const need = countNeed(events, threshold.value + 1)
      const fact = leafFact(asked, { name: 'count', need, window: events.window })
      const isFloor = (fact.value as number) > threshold.value
      return [{ ...fact, isFloor }, ...whereFacts(asked, events)]
    }
    case 'measure':
      return [
        measureFact(asked, condition.measure, ''),
        ...refFacts(asked, condition.comparison),
        ...whereFacts(asked, condition.measure.events),
      ]
    case 'compare':
      return [
        measureFact(asked, condition.left, ''),
        measureFact(asked, condition.right, ''),
        ...whereFacts(asked, condition.left.events, condition.right.events),
      ]
    case 'sequence':
      return [sequenceFact(asked, condition.sequence)]
  }
}

/** Through lists, all that is found there. */
const traitAt = ({ facts }: Asked, path: Path): Json | undefined =>
  path.includes(anyElement) ? valuesAt(facts.traits(), path) : valueAt(facts.traits(), path)

const plain = (name: string, value: Json | undefined): Fact => ({
  ...{ name, value },
  isFloor: false,
  window: null,
  isCapped: false,
})

const refFacts = (asked: Asked, comparison: Comparison): readonly Fact[] => {
  if (!('ref' in comparison)) return []
  const { ref } = comparison
  return ref.type === 'trait'
    ? [plain('ref trait', valueAt(asked.facts.traits(), ref.path))]
    : [measureFact(asked, ref.measure, 'ref ')]
}

/** The traits that the properties of events are compared with. */
export const whereFacts = (
  { facts }: Pick<Asked, 'facts'>,
  ...events: readonly EventSpec[]
): readonly Fact[] => {
  const paths = events.flatMap(({ where }) => (where === null ? [] : traitsAsked(where)))
  const texts = new Set(paths.map((path) => JSON.stringify(path)))
  return [...texts].map((text) => {
    const path = JSON.parse(text) as Path
    return plain(`${whereFact}${path.join('.')}`, valueAt(facts.traits(), path))
  })
}

const whereFact = 'where trait '

export const measureFact = (asked: Looked, measure: Measure, before: string): Fact =>
  leafFact(asked, {
    name: `${before}${measure.reduce.type}`,
    need: measureNeed(measure),
    window: measure.events.window,
  })

const sequenceFact = (asked: Asked, sequence: Sequence): Fact =>
  leafFact(asked, { name: 'sequence', need: sequenceNeed(sequence), window: sequence.window })

type Wanted = { readonly name: string; readonly need: LeafNeed } & Pick<EventSpec, 'window'>

const leafFact = ({ find, facts, at }: Looked, { name, need, window }: Wanted): Fact => {
  const leaf = find(need) as BoundLeaf
  const summary = facts.summary(leaf)
  return {
    name,
    value: leafValue(leaf, facts, at),
    isFloor: false,
    window: boundsOf(window, at),
    isCapped: summary !== undefined && (leaf.kind.capped?.(summary) ?? false),
  }
}

/** The instants an event of the window may have at `at`. */
export const boundsOf = (window: Window | null, at: number): Bounds | null => {
  switch (window?.type) {
    case undefined:
      return null
    case 'fixed':
      return { from: window.after, until: window.before }
    case 'last':
      return { from: (tailOf(window, at) + 1) * window.gridMs, until: null }
    case 'ago':
      return {
        from: (tailOf(window, at) + 1) * window.gridMs,
        until: (headOf(window, at) + 1) * window.gridMs,
      }
    case 'calendar':
      return { from: dayStart(window.timezone, tailOf(window, at)), until: null }
  }
}

const words: Readonly<Record<string, string>> = {
  eq: 'equal to',
  neq: 'there and other than',
  gt: 'above',
  gte: 'at least',
  lt: 'below',
  lte: 'at most',
  exists: 'there',
  absent: 'missing',
}

const wordOf = (op: string): string => words[op] ?? op.replaceAll('_', ' ')

const takesOf = (condition: Condition, json: JsonObject, facts: readonly Fact[]): string | null => {
  switch (condition.type) {
    case 'all':
    case 'any':
    case 'not':
      return null
    case 'identified':
      return 'a user id'
    case 'count':
      return countTakes(condition.threshold, facts[0]?.value as number)
    case 'sequence':
      return 'its steps, one after the other and each in its time'
    case 'trait':
      return `a trait that is ${comparedWith(json, facts)}`
    case 'measure': {
      const { type } = condition.measure.reduce
      return `${articled(type)} that is ${comparedWith(json[type] as JsonObject, facts)}`
    }
    case 'compare': {
      const [left, right] = facts
      return `${articled(left?.name ?? '')} that is ${wordOf(condition.op)} ${textOf(right?.value)}`
    }
  }
}

const articled = (name: string): string => `${/^[aeiou]/.test(name) ? 'an' : 'a'} ${name}`

const comparedWith = ({ op, value }: JsonObject, facts: readonly Fact[]): string => {
  const word = wordOf(String(op))
  const ref = facts.find(({ name }) => name.startsWith('ref '))
  if (ref !== undefined) return `${word} ${textOf(ref.value)}`
  return value === undefined ? word : `${word} ${textOf(value)}`
}

const textOf = (value: Json | undefined): string =>
  value === undefined ? 'a value that is missing' : JSON.stringify(value)

type Threshold = { readonly op: CountOperator; readonly value: number }

const countTakes = ({ op, value }: Threshold, count: number): string => {
  const target = { gte: value, gt: value + 1, eq: value, lte: value, lt: value - 1 }[op]
  if (target < 0) return 'nothing: no count is below 0'
  return count < target ? `${target - count} more` : `${count - target} fewer`
}
