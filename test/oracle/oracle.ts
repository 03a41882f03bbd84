// A naive evaluator of audiences and computed traits: what membership, values and identify messages must
// be, written from the definition of the condition language alone. Plain arrays, no buckets, no timers;
// it shares no code with the engine it checks.
//
// Cost: `answers` is users × leaves × calls of a user, from nothing, for one instant. `history` is that for
// every instant, users × instants × leaves × calls of a user. Neither skips an instant because nothing
// could have changed.
import { type Call, type Person, peopleOf } from './people.ts'
import { type Happened, type Reducer, type Reducing, reduce, reducers } from './reduce.ts'
import { isThere, type Sequence, type SequenceStep } from './sequence.ts'
import { type Window, windowTest } from './time.ts'
import {
  type Comparison,
  compares,
  isScalar,
  type Json,
  type Path,
  passes,
  valueAt,
} from './values.ts'

type Referring = Comparison & { readonly ref?: Ref }
type Ref =
  | string
  | { readonly trait: Path }
  | { readonly step: string; readonly prop: Path }
  | Measure
export type Filter =
  | { readonly all: readonly Filter[] }
  | { readonly any: readonly Filter[] }
  | { readonly not: Filter }
  | (Referring & { readonly prop: Path })
type Events = { readonly name: string; readonly where?: Filter; readonly window?: Window }
export type Measure = { readonly event: Events } & {
  readonly [R in Reducer]?: Reducing & Partial<Referring>
}
export type Condition =
  | { readonly all: readonly Condition[] }
  | { readonly any: readonly Condition[] }
  | { readonly not: Condition }
  | { readonly identified: true }
  | { readonly audience: string; readonly in?: boolean }
  | (Referring & { readonly trait: Path })
  | (Referring & { readonly computed: string })
  | { readonly compare: readonly Measure[]; readonly op: string }
  | { readonly sequence: Sequence<Filter> }
  | Measure

export type Audience = {
  readonly key: string
  /** A computed trait's is a measure that is compared with nothing. */
  readonly condition: Condition
  readonly kind?: 'audience' | 'trait'
  readonly timezone?: string
  readonly includeAnonymous?: boolean
}

/** What a condition is read in: time zone of the whole, and whom it may refer to. */
type Scope = {
  readonly zone: string
  readonly others: readonly Audience[]
  readonly identified: boolean
}
type At<T> = (at: number) => T

const alone: Scope = { zone: 'UTC', others: [], identified: true }

/** Whether one person's calls satisfy the condition at an instant; only calls received by then count. */
export const judgeOf = (
  condition: Condition,
  calls: readonly Call[],
  scope: Scope = alone,
): At<boolean> => {
  const judge = (part: Condition) => judgeOf(part, calls, scope)
  if ('all' in condition) {
    const parts = condition.all.map(judge)
    return (at) => parts.every((part) => part(at))
  }
  if ('any' in condition) {
    const parts = condition.any.map(judge)
    return (at) => parts.some((part) => part(at))
  }
  if ('not' in condition) {
    const part = judge(condition.not)
    return (at) => !part(at)
  }
  if ('identified' in condition) return () => scope.identified
  if ('audience' in condition) {
    const part = memberOf(named(condition.audience, scope), calls, scope)
    return (at) => part(at) === (condition.in ?? true)
  }
  if ('trait' in condition) {
    const test = withRef(condition, calls, scope)
    return (at) =>
      test(at, (it) =>
        passes({ ...it, path: condition.trait }, traitsAt(calls, at), { at, zone: scope.zone }),
      )
  }
  if ('computed' in condition) {
    const trait = named(condition.computed, scope)
    const zone = trait.timezone ?? 'UTC'
    const value = measured(trait.condition as Measure, calls, { ...scope, zone })
    const test = withRef(condition, calls, scope)
    return (at) => test(at, (it) => compares(it, value(at), { at, zone }))
  }
  if ('compare' in condition) {
    const [left, right] = condition.compare.map((it) => measured(it, calls, scope))
    return (at) => {
      const value = right?.(at)
      return isScalar(value) && compares({ op: condition.op, value }, left?.(at))
    }
  }
  if ('sequence' in condition) return sequenceJudge(condition.sequence, calls, scope)
  if (!('event' in condition))
    throw new Error(`the oracle does not know the condition ${JSON.stringify(condition)}`)
  const value = measured(condition, calls, scope)
  const comparison = condition[reducerOf(condition)] as Referring
  const test = withRef(comparison, calls, scope)
  return (at) => test(at, (it) => compares(it, value(at), { at, zone: scope.zone }))
}

const named = (key: string, { others }: Scope): Audience => {
  const found = others.find((it) => it.key === key)
  if (!found) throw new Error(`the oracle knows nothing called ${key}`)
  return found
}

const memberOf = (audience: Audience, calls: readonly Call[], scope: Scope): At<boolean> => {
  const judge = judgeOf(audience.condition, calls, { ...scope, zone: audience.timezone ?? 'UTC' })
  return (at) => judge(at) && (scope.identified || audience.includeAnonymous !== false)
}

const reducerOf = (measure: Measure): Reducer =>
  reducers.find((reducer) => measure[reducer] !== undefined) as Reducer

type Passes = (comparison: Comparison) => boolean

/** With what `ref` is at the instant in the place of the literal; nothing compares with a missing value. */
const withRef = (comparison: Referring, calls: readonly Call[], scope: Scope) => {
  const { ref } = comparison
  if (ref === undefined) return (_: number, test: Passes) => test(comparison)
  const valueAtInstant = refOf(ref, calls, scope)
  return (at: number, test: Passes) => {
    const value = valueAtInstant(at)
    return isScalar(value) && test({ ...comparison, value })
  }
}

const refOf = (ref: Ref, calls: readonly Call[], scope: Scope): At<Json | undefined> => {
  if (typeof ref === 'object' && 'event' in ref) return measured(ref, calls, scope)
  const [kind, ...rest] = typeof ref === 'string' ? ref.split(':') : []
  if (kind !== 'computed') {
    const path = typeof ref === 'string' ? rest.join(':') : (ref as { trait: Path }).trait
    return (at) => valueAt(traitsAt(calls, at), path)
  }
  const { condition, timezone: zone = 'UTC' } = named(rest.join(':'), scope)
  return measured(condition as Measure, calls, { ...scope, zone })
}

type Seen = Happened & { readonly receivedAt: number }

const happened = (
  { name, where }: Pick<Events, 'name' | 'where'>,
  calls: readonly Call[],
  zone: string,
): readonly Seen[] =>
  inOrder(calls.filter(({ type, event }) => type === 'track' && event === name))
    .filter(({ properties }) => where === undefined || matches(where, properties, { zone }))
    .map((call) => ({ ...call, te: effectiveTime(call) }))

export const measured = (
  measure: Measure,
  calls: readonly Call[],
  { zone }: Scope = alone,
): At<Json | undefined> => {
  const { name, where } = measure.event
  const isMoving = JSON.stringify(where ?? {}).includes('"ref"')
  const events = happened(isMoving ? { name } : measure.event, calls, zone)
  /** What is compared with traits is compared with those of the instant. */
  const passing = (seen: readonly Seen[], at: number) => {
    if (!isMoving || where === undefined) return seen
    const traits = traitsAt(calls, at)
    return seen.filter(({ properties }) => matches(where, properties, { zone, traits }))
  }
  const isIn = windowTest(measure.event.window, zone)
  const reducer = reducerOf(measure)
  const how = { timezone: zone, ...measure[reducer] }
  return (at) =>
    reduce(
      reducer,
      how,
      passing(
        events.filter(({ te, receivedAt }) => receivedAt <= at && te <= at && isIn(te, at)),
        at,
      ),
    )
}

const sequenceJudge = (
  sequence: Sequence<Filter>,
  calls: readonly Call[],
  { zone }: Scope,
): At<boolean> => {
  const isIn = windowTest(sequence.window, zone)
  const found = sequence.steps.map(({ event }) => happened({ name: event.name }, calls, zone))
  return (at) => {
    const eventsOf = ({ event }: SequenceStep<Filter>, chain: readonly Happened[]) => {
      const chosen = (label: string) =>
        chain[sequence.steps.findIndex(({ as }) => as === label)]?.properties
      return (found[chain.length] as readonly Seen[]).filter(
        ({ receivedAt, properties }) =>
          receivedAt <= at &&
          (event.where === undefined || matches(event.where, properties, { zone, chosen })),
      )
    }
    return isThere(sequence, { eventsOf, isIn }, at)
  }
}

type Steps = {
  readonly zone: string
  readonly chosen?: (label: string) => Json | undefined
  readonly traits?: Json
}

const matches = (filter: Filter, properties: Json, steps: Steps): boolean => {
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
const traitsAt = (calls: readonly Call[], at: number): { readonly [key: string]: Json } => {
  const written = calls.filter(({ type, receivedAt }) => type === 'identify' && receivedAt <= at)
  const traits = new Map<string, Json>()
  for (const call of inOrder(written))
    for (const [key, value] of Object.entries(call.traits)) traits.set(key, value)
  return Object.fromEntries(traits)
}

const isSeen = ({ calls }: Person, at: number) => calls.some(({ receivedAt }) => receivedAt <= at)

/** What a person has: `true` where in the audience, the computed trait's value, or nothing. */
const answerOf = (
  audience: Audience,
  { userId, calls }: Person,
  others: readonly Audience[],
): At<Json | undefined> => {
  const scope = { zone: audience.timezone ?? 'UTC', others, identified: userId !== null }
  if (audience.kind === 'trait') return measured(audience.condition as Measure, calls, scope)
  const judge = memberOf(audience, calls, scope)
  return (at) => judge(at) || undefined
}

export type Answers = ReadonlyMap<string, Json>

/** By user id, of everyone in the log as far as it was read; `others` are those it may refer to. */
export const answers = (
  log: readonly Call[],
  { others = [], ...audience }: Audience & { readonly others?: readonly Audience[] },
  at: number,
): { readonly named: Answers; readonly nameless: readonly Json[] } => {
  const named = new Map<string, Json>()
  const nameless: Json[] = []
  for (const person of peopleOf(log)) {
    const value = isSeen(person, at) ? answerOf(audience, person, others)(at) : undefined
    if (value === undefined) continue
    if (person.userId === null) nameless.push(value)
    else named.set(person.userId, value)
  }
  return { named, nameless }
}

/** The user ids that are members at `at`. */
export const evaluate = (log: readonly Call[], condition: Condition, at: number) =>
  new Set(answers(log, { key: '', condition }, at).named.keys()) as ReadonlySet<string>

/** `null` for a computed trait's value that is gone. */
export type Told = { readonly userId: string; readonly audience: string; readonly value: Json }

/** What a sync must say when it follows one that saw `before`, by user id. */
export const changesBetween = (
  { key, kind }: Pick<Audience, 'key' | 'kind'>,
  before: Answers,
  after: Answers,
): readonly Told[] =>
  [...new Set([...before.keys(), ...after.keys()])]
    .sort()
    .filter((id) => JSON.stringify(before.get(id)) !== JSON.stringify(after.get(id)))
    .map((userId) => {
      const value = after.get(userId) ?? (kind === 'trait' ? null : false)
      return { userId, audience: key, value }
    })

/**
 * What the sync at each instant must say, for a log in which nobody changes identity (every call has
 * a user id, none is an alias): then each person can be followed alone.
 */
export const history = (
  log: readonly Call[],
  audiences: readonly Audience[],
  instants: readonly number[],
): readonly (readonly Told[])[] => {
  if (log.some(({ type, userId, anonymousId }) => type === 'alias' || !userId || anonymousId))
    throw new Error('history follows people who never change identity: use answers')
  const told: Told[][] = instants.map(() => [])
  for (const person of peopleOf(log))
    for (const audience of audiences) {
      const answer = answerOf(audience, person, audiences)
      const userId = person.userId as string
      const had = (value: Json | undefined): Answers =>
        new Map(value === undefined ? [] : [[userId, value]])
      let before: Json | undefined
      instants.forEach((at, index) => {
        const value = isSeen(person, at) ? answer(at) : undefined
        if (value === before) return
        told[index]?.push(...changesBetween(audience, had(before), had(value)))
        before = value
      })
    }
  return told
}
