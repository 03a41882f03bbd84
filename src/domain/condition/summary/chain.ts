// Looking for the chains of a sequence among the events that are held of each of its steps.
import type { Json } from '../../message.ts'
import type { OrderOperator, Sequence, Step } from '../condition.ts'
import { type Path, valueAt } from '../path.ts'
import { compare, type Seen } from '../value.ts'
import { type Scalar, scalarOf } from './scalar.ts'

/** One event of a step: when it was, and its values that are compared with those of other steps. */
export type Held = { readonly te: number; readonly values: readonly HeldValue[] }

/** `null` for a missing one; of lists and objects just that there was one. */
export type HeldValue = Scalar | null | typeof composite

/** Equal to nothing, and not missing. */
export const composite: readonly never[] = []

/** Of each step, ascending. */
export type Lists = readonly (readonly Held[])[]

/** A first step that has a chain, and from when on that is complete. */
export type Start = { readonly te: number; readonly from: number }

/** `gaveUp` where the search was longer than one user may take. */
export type Starts = { readonly found: readonly Start[]; readonly gaveUp: boolean }

/** Events looked at in one search. */
const visitsMax = 200_000

export type Chains = {
  /** How many values are held of an event at a step, and which. */
  widthOf(step: number): number
  valuesOf(step: number, properties: Json | undefined): readonly HeldValue[]
  /** Whether the second event, at a step, follows the first in time and in all it shares with that. */
  follows(step: number, before: Held, after: Held): boolean
  /** First steps with a chain, newest first. */
  starts(lists: Lists, newestOnly: boolean): Starts
}

export const chainsOf = ({ steps, settle }: Sequence): Chains => {
  const plans = steps.map((step, index) => planOf(steps, step, index))
  const isMatched = ({ links }: Plan, chain: readonly Held[], after: Held) =>
    links.every((link) => holds(link, chain[link.step] as Held, after))
  return {
    widthOf: (step) => (plans[step] as Plan).paths.length,
    valuesOf: (step, properties) =>
      (plans[step] as Plan).paths.map((path) => held(properties, path)),
    follows: (step, before, after) => {
      const plan = plans[step] as Plan
      const chain = new Array<Held>(step).fill(before)
      return (
        after.te > before.te &&
        after.te <= before.te + plan.withinMs &&
        isMatched(plan, chain, after)
      )
    },
    starts: (lists, newestOnly) => {
      const search = searchOf({ plans, lists, settle, isMatched })
      const found: Start[] = []
      for (const first of (lists[0] ?? []).toReversed()) {
        const from = search.from(first)
        if (from === Number.POSITIVE_INFINITY) continue
        found.push({ te: first.te, from })
        if (newestOnly) break
      }
      return { found, gaveUp: search.gaveUp() }
    },
  }
}

type Link = {
  /** Which of the values held of this event, and of that of the earlier step. */
  readonly own: number
  readonly op: OrderOperator
  readonly step: number
  readonly theirs: number
}

type Plan = {
  readonly paths: readonly Path[]
  readonly links: readonly Link[]
  readonly withinMs: number
  readonly isForbidden: boolean
  /** Values of earlier steps that later ones are compared with: what goes on depends on them. */
  readonly needs: readonly { readonly step: number; readonly value: number }[]
}

const planOf = (steps: readonly Step[], step: Step, index: number): Plan => ({
  paths: pathsOf(steps, index),
  links: step.match.map((match) => ({
    own: placeOf(steps, index, match.path),
    op: match.op,
    step: match.step,
    theirs: placeOf(steps, match.step, match.of),
  })),
  withinMs: step.withinMs ?? Number.POSITIVE_INFINITY,
  isForbidden: step.then === 'did_not',
  needs: steps
    .slice(index + 1)
    .flatMap(({ match }) => match)
    .filter((match) => match.step < index)
    .map((match) => ({ step: match.step, value: placeOf(steps, match.step, match.of) })),
})

const pathsOf = (steps: readonly Step[], index: number): readonly Path[] => {
  const own = steps[index]?.match.map(({ path }) => path) ?? []
  const theirs = steps.flatMap(({ match }) =>
    match.filter(({ step }) => step === index).map(({ of }) => of),
  )
  const texts = new Set([...own, ...theirs].map((path) => JSON.stringify(path)))
  return [...texts].map((text) => JSON.parse(text) as Path)
}

const placeOf = (steps: readonly Step[], index: number, path: Path): number => {
  const text = JSON.stringify(path)
  return pathsOf(steps, index).findIndex((held) => JSON.stringify(held) === text)
}

const held = (properties: Json | undefined, path: Path): HeldValue => {
  const value = valueAt(properties, path)
  return value === undefined || value === null ? null : (scalarOf(value) ?? composite)
}

/** Nothing but the two values is looked at. */
const nothingSeen: Seen = { at: 0, ref: () => undefined }

const holds = ({ own, op, theirs }: Link, before: Held, after: Held): boolean => {
  const value = before.values[theirs] ?? null
  if (value === null || typeof value === 'object') return false
  return compare({ op, value, foldCase: false }, after.values[own] as Json, nothingSeen)
}

type Ground = {
  readonly plans: readonly Plan[]
  readonly lists: Lists
  readonly settle: Sequence['settle']
  readonly isMatched: (plan: Plan, chain: readonly Held[], after: Held) => boolean
}

/** From when on the chain of a first step is complete, `Infinity` for never. */
const searchOf = ({ plans, lists, settle, isMatched }: Ground) => {
  const known: Map<string, Map<Held, number>>[] = []
  const chain: Held[] = []
  let visits = 0
  /** The place from `at` on of the next event that may follow the chain at a step, -1 where there is none. */
  const nextOf = (step: number, at: number): number => {
    const plan = plans[step] as Plan
    const list = lists[step] as readonly Held[]
    const deadline = (chain[step - 1] as Held).te + plan.withinMs
    for (let place = at; place < list.length; place++) {
      const event = list[place] as Held
      if (event.te > deadline || ++visits > visitsMax) return -1
      if (isMatched(plan, chain, event)) return place
    }
    return -1
  }
  /** After `step` of the chain. */
  const onwards = (step: number): number => {
    const next = plans[step + 1]
    if (next === undefined) return Number.NEGATIVE_INFINITY
    const { te } = chain[step] as Held
    const list = lists[step + 1] as readonly Held[]
    let place = nextOf(step + 1, firstAfter(list, te))
    if (next.isForbidden) {
      if (place >= 0 || visits > visitsMax) return Number.POSITIVE_INFINITY
      return settle === 'immediate' ? Number.NEGATIVE_INFINITY : te + next.withinMs
    }
    let best = Number.POSITIVE_INFINITY
    for (; place >= 0 && best !== Number.NEGATIVE_INFINITY; place = nextOf(step + 1, place + 1)) {
      chain[step + 1] = list[place] as Held
      best = Math.min(best, remembered(step + 1))
    }
    return best
  }
  const remembered = (step: number): number => {
    // After the last there is nothing to look for.
    if (step === plans.length - 1) return onwards(step)
    const event = chain[step] as Held
    const context = contextOf(plans[step] as Plan, chain)
    known[step] ??= new Map()
    const held = known[step].get(context)
    const answers = held ?? new Map<Held, number>()
    if (held === undefined) known[step].set(context, answers)
    const answer = answers.get(event) ?? onwards(step)
    answers.set(event, answer)
    return answer
  }
  return {
    from: (first: Held): number => {
      chain[0] = first
      return onwards(0)
    },
    gaveUp: () => visits > visitsMax,
  }
}

const contextOf = ({ needs }: Plan, chain: readonly Held[]): string =>
  needs.length === 0
    ? ''
    : JSON.stringify(needs.map(({ step, value }) => (chain[step] as Held).values[value]))

/** The place of the first event after an instant. */
export const firstAfter = (list: readonly Held[], te: number): number => {
  let [from, until] = [0, list.length]
  while (from < until) {
    const middle = (from + until) >> 1
    if ((list[middle] as Held).te <= te) from = middle + 1
    else until = middle
  }
  return from
}
