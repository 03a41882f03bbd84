// A naive evaluator of audiences and computed traits: who is in and what they have, written from the definition
// of the condition language alone. Everything is worked out from the whole log, for every person and instant
// anew: plain arrays, no buckets, no timers. It shares no code with the engine it checks.

import { dateOf, day, durationOf, hour, localDay, minute } from '../support/calendar.ts'
import type { Asked, Audience, Comparison, Json, Sequence, Window } from '../support/language.ts'
import { type Call, type Measure, type Ref, reducers } from '../support/language.ts'
import { once } from '../support/once.ts'
import { accountsOf, type Person, peopleOf } from './people.ts'
import { compares, isScalar, passes, reduce, valueAt } from './values.ts'

/** Of everyone in the log as far as it was read, by user id; `others` may be referred to. */
export const answers = (
  log: readonly Call[],
  { others = [], ...audience }: Audience & { readonly others?: readonly Audience[] },
  at: number,
) => {
  const named = new Map<string, Json>()
  const nameless: Json[] = []
  const people = peopleOf(log).filter((person) => isSeen(person, at))
  for (const person of people) {
    const value = answerOf(audience, { person, at, others, zone: 'UTC' }, people)
    if (value !== undefined && person.userId === null) nameless.push(value)
    if (value !== undefined && person.userId !== null) named.set(person.userId, value)
  }
  return { named, nameless }
}

export const isSeen = ({ calls }: Person, at: number) =>
  calls.some(({ receivedAt }) => receivedAt <= at)

/** What a person who was seen has: `true` where in it, the computed trait's value, or nothing. */
export const answerOf = (audience: Audience, view: View, people: readonly Person[]) => {
  if (audience.kind === 'trait') return traitValueOf(audience, view)
  if (!('users' in audience.condition)) return isMember(audience, view) || undefined
  const { quantifier, where } = audience.condition.users
  const counts = ({ userId }: Person) => userId !== null || audience.includeAnonymous !== false
  const meets = (person: Person) => holds(where, inZoneOf(audience, { ...view, person }))
  const isPassing = (account: string) => {
    const users = people.filter((it) => counts(it) && accountsOf(it).includes(account))
    if (quantifier === 'any') return users.some(meets)
    return users.length > 0 && users.every((user) => meets(user) === (quantifier === 'all'))
  }
  // Everyone of such an account, whoever they are themselves.
  return accountsOf(view.person).some(isPassing) || undefined
}

/** Whose calls are asked at which instant, in which zone, and what may be referred to. */
type View = {
  readonly person: Person
  readonly at: number
  readonly zone: string
  readonly others: readonly Audience[]
  /** Of the event that a filter is asked of, and of those chosen for the steps before it, by label. */
  readonly properties?: Json
  readonly chosen?: { readonly [label: string]: Json }
}

/** A filter is a condition on one event. */
const holds = (it: Asked, view: View): boolean => {
  if ('event' in it)
    return compares(resolved(it[reducerOf(it)] as Comparison, view), measured(it, view), view)
  if ('prop' in it) return passes(resolved(it, view), [view.properties ?? null, it.prop], view)
  if ('all' in it) return it.all.every((part) => holds(part, view))
  if ('any' in it) return it.any.some((part) => holds(part, view))
  if ('not' in it) return !holds(it.not, view)
  if ('trait' in it) return passes(resolved(it, view), [traitsOf(view), it.trait], view)
  if ('sequence' in it) return happensInTurn(it.sequence, view)
  if ('audience' in it) return isMember(named(it.audience, view), view) === (it.in ?? true)
  if ('identified' in it) return view.person.userId !== null
  if ('compare' in it) {
    const [left, right] = it.compare.map((measure) => measured(measure, view))
    return isScalar(right) && compares({ op: it.op, value: right }, left)
  }
  const trait = named(it.computed, view)
  return compares(resolved(it, view), traitValueOf(trait, view), inZoneOf(trait, view))
}

const isMember = (audience: Audience, view: View): boolean =>
  (view.person.userId !== null || audience.includeAnonymous !== false) &&
  holds(audience.condition as Asked, inZoneOf(audience, view))

const traitValueOf = (trait: Audience, view: View): Json | undefined =>
  measured(trait.condition as Measure, inZoneOf(trait, view))
const inZoneOf = ({ timezone: zone = 'UTC' }: Audience, view: View): View =>
  zone === view.zone ? view : { ...view, zone }

const named = (key: string, { others }: View): Audience => {
  const found = others.find((it) => it.key === key)
  if (!found) throw new Error(`the oracle knows nothing called ${key}`)
  return found
}

/** With what `ref` is in the place of the literal; where that is missing nothing holds. */
const resolved = (test: Comparison, view: View): Comparison => {
  if (test.ref === undefined) return test
  const value = referred(test.ref, view)
  return isScalar(value) ? { ...test, value } : { op: 'never' }
}

const referred = (ref: Ref, view: View): Json | undefined => {
  if (typeof ref === 'object') {
    if ('event' in ref) return measured(ref, view)
    if ('trait' in ref) return valueAt(traitsOf(view), ref.trait)
    return valueAt(view.chosen?.[ref.step] ?? null, ref.prop)
  }
  const [, kind, name = ''] = partsOf(ref)
  if (kind === 'trait:') return valueAt(traitsOf(view), name)
  if (kind === 'computed:') return traitValueOf(named(name, view), view)
  return valueAt(view.chosen?.[kind?.split('.')[0] ?? ''] ?? null, name)
}

const partsOf = once((ref: string) => /^(trait:|computed:|[^.]+\.prop\.)(.+)$/.exec(ref) ?? [])

/** Each top-level key has its newest write; null deletes. */
const traitsOf = ({ person, at }: View): { readonly [key: string]: Json } => {
  const known = {}
  for (const { type, receivedAt, traits } of person.calls)
    if (type === 'identify' && receivedAt <= at) Object.assign(known, traits)
  return known
}

const happened = ({ name, where }: Measure['event'], view: View, isIn: (te: number) => boolean) =>
  view.person.calls.filter(({ type, event, receivedAt, te, properties }) => {
    if (type !== 'track' || event !== name || receivedAt > view.at || !isIn(te)) return false
    return where === undefined || holds(where, { ...view, properties })
  })

const measured = (measure: Measure, view: View): Json | undefined => {
  const events = happened(measure.event, view, openAt(measure.event.window, view))
  const reducer = reducerOf(measure)
  return reduce(reducer, measure[reducer] ?? {}, { events, zone: view.zone })
}
const reducerOf = once(
  (measure: Measure) => reducers.find((reducer) => measure[reducer] !== undefined) ?? 'count',
)

/** Whether what happened at an instant, not after `at`, is in the window at `at`. */
const openAt = (window: Window = {}, { at, zone }: View): ((te: number) => boolean) => {
  const here = window.timezone ?? zone
  const { last, after, before, calendar_days } = window
  if (calendar_days !== undefined)
    return (te) => localDay(here, te) > localDay(here, at) - calendar_days
  const start = after === undefined ? -Infinity : (dateOf(after, here) as number)
  const end = before === undefined ? Infinity : (dateOf(before, here) as number)
  const ages = window.between_ago ?? (last === undefined ? null : ['0s', last])
  if (ages === null) return (te) => te >= start && te < end
  // In `last` W iff floor(te/g) > floor(T/g) − W/g; of ages the lower is in, the upper is not.
  const [from, until] = ages.map(durationOf) as [number, number]
  const g = window.grid ? durationOf(window.grid) : gridOf(until)
  const now = Math.floor(at / g)
  const age = (te: number) => now - Math.floor(te / g)
  return (te) => age(te) >= from / g && age(te) < until / g && te >= start && te < end
}

/** Of windows so wide at most. */
const gridOf = (width: number) => {
  if (width <= hour) return 1_000
  if (width <= 48 * hour) return minute
  return width <= 90 * day ? hour : day
}

/** Every chain of events there is gets tried. */
const happensInTurn = (sequence: Sequence, whole: View): boolean => {
  const isOpen = openAt(sequence.window, whole)
  const goesOn = (place: number, from: number, view: View): boolean => {
    const step = sequence.steps[place]
    if (step === undefined) return true
    const deadline = step.within === undefined ? Infinity : from + durationOf(step.within)
    const isNext = (te: number) => te > from && te <= deadline && (place > 0 || isOpen(te))
    const next = happened(step.event, view, isNext)
    if (step.then === 'did_not')
      return next.length === 0 && (sequence.settle !== 'after_deadline' || view.at >= deadline)
    return next.some(({ te, properties }) => {
      const chosen = { ...view.chosen, [step.as ?? '']: properties }
      return goesOn(place + 1, te, { ...view, chosen })
    })
  }
  return goesOn(0, -Infinity, whole)
}
