// A naive evaluator of audiences: what membership and identify messages must be, written from the
// definition of the condition language alone. Plain arrays, no buckets, no caches, no timers; it
// shares no code with the engine it checks.
//
// Cost: `evaluate` is users × leaves × calls of a user, from nothing, for one instant. `history` is
// that for every instant, users × instants × leaves × calls of a user: some 20 s for 3 audiences of
// 23,570 users of 3 calls at 4,370 instants. Neither skips an instant because nothing could have changed.
import { type Call, type Person, peopleOf } from './people.ts'
import { type Comparison, compares, type Json, valueAt } from './values.ts'

type Path = string | readonly string[]
export type Filter =
  | { readonly all: readonly Filter[] }
  | { readonly any: readonly Filter[] }
  | { readonly not: Filter }
  | (Comparison & { readonly prop: Path })
export type Condition =
  | { readonly all: readonly Condition[] }
  | { readonly any: readonly Condition[] }
  | { readonly not: Condition }
  | (Comparison & { readonly trait: Path })
  | {
      readonly event: {
        readonly name: string
        readonly where?: Filter
        readonly window?: { readonly last: string; readonly grid?: string }
      }
      readonly count: { readonly op: string; readonly value: number }
    }

type Judge = (at: number) => boolean

/** Whether one person's calls satisfy the condition at an instant; only calls received by then count. */
export const judgeOf = (condition: Condition, calls: readonly Call[]): Judge => {
  if ('all' in condition) {
    const parts = condition.all.map((part) => judgeOf(part, calls))
    return (at) => parts.every((part) => part(at))
  }
  if ('any' in condition) {
    const parts = condition.any.map((part) => judgeOf(part, calls))
    return (at) => parts.some((part) => part(at))
  }
  if ('not' in condition) {
    const part = judgeOf(condition.not, calls)
    return (at) => !part(at)
  }
  if ('trait' in condition)
    return (at) => compares(condition, valueAt(traitsAt(calls, at), condition.trait))
  if ('event' in condition) return countJudge(condition, calls)
  throw new Error(`the oracle does not know the condition ${JSON.stringify(condition)}`)
}

const countJudge = (
  { event, count }: Extract<Condition, { event: unknown }>,
  calls: readonly Call[],
): Judge => {
  const { where } = event
  const times = calls
    .filter(({ type, event: name }) => type === 'track' && name === event.name)
    .filter(({ properties }) => where === undefined || matches(where, properties))
    .map((call) => ({ te: effectiveTime(call), receivedAt: call.receivedAt }))
  const isIn = event.window ? windowTest(event.window) : () => true
  return (at) => {
    let n = 0
    for (const { te, receivedAt } of times) if (receivedAt <= at && te <= at && isIn(te, at)) n += 1
    return counts(n, count.op, count.value)
  }
}

const counts = (n: number, op: string, value: number): boolean => {
  if (op === 'gte') return n >= value
  if (op === 'gt') return n > value
  if (op === 'eq') return n === value
  if (op === 'lte') return n <= value
  if (op === 'lt') return n < value
  throw new Error(`the oracle does not know the count operator ${op}`)
}

const matches = (filter: Filter, properties: Json): boolean => {
  if ('all' in filter) return filter.all.every((part) => matches(part, properties))
  if ('any' in filter) return filter.any.some((part) => matches(part, properties))
  if ('not' in filter) return !matches(filter.not, properties)
  return compares(filter, valueAt(properties, filter.prop))
}

/** No event is in the future; one before 1970 happened when it was received. */
export const effectiveTime = ({ timestamp, receivedAt }: Call): number =>
  timestamp >= 0 ? Math.min(timestamp, receivedAt) : receivedAt

const second = 1_000
const minute = 60 * second
const hour = 60 * minute
const day = 24 * hour

const durationOf = (text: string): number => {
  const units: Record<string, number> = { s: second, m: minute, h: hour, d: day, w: 7 * day }
  const found = /^([0-9]+)([smhdw])$/.exec(text)
  if (!found) throw new Error(`the oracle does not know the duration ${text}`)
  return Number(found[1]) * (units[found[2] as string] as number)
}

/** In the window iff floor(te/g) > floor(T/g) − W/g. */
const windowTest = ({ last, grid }: { last: string; grid?: string }) => {
  const w = durationOf(last)
  const g = grid ? durationOf(grid) : w <= hour ? second : w <= 48 * hour ? minute : longGrid(w)
  if (w % g !== 0) throw new Error(`the window ${last} is not a multiple of its grid`)
  return (te: number, at: number) => Math.floor(te / g) > Math.floor(at / g) - w / g
}

const longGrid = (w: number) => (w <= 90 * day ? hour : day)

/** Each top-level key has its newest write by (te, receivedAt, message id); null deletes. */
const traitsAt = (calls: readonly Call[], at: number): { readonly [key: string]: Json } => {
  const written = calls
    .filter(({ type, receivedAt }) => type === 'identify' && receivedAt <= at)
    .sort(
      (a, b) =>
        effectiveTime(a) - effectiveTime(b) ||
        a.receivedAt - b.receivedAt ||
        (a.messageId < b.messageId ? -1 : 1),
    )
  const traits = new Map<string, Json>()
  for (const call of written)
    for (const [key, value] of Object.entries(call.traits)) traits.set(key, value)
  return Object.fromEntries(traits)
}

const isSeen = ({ calls }: Person, at: number) => calls.some(({ receivedAt }) => receivedAt <= at)

/** The user ids that are members at `at`, of everyone in the log (as far as it was read). */
export const evaluate = (
  log: readonly Call[],
  condition: Condition,
  at: number,
): ReadonlySet<string> =>
  new Set(
    peopleOf(log).flatMap((person) => {
      const member = isSeen(person, at) && judgeOf(condition, person.calls)(at)
      return member && person.userId !== null ? [person.userId] : []
    }),
  )

export type Audience = { readonly key: string; readonly condition: Condition }

export type Told = { readonly userId: string; readonly audience: string; readonly member: boolean }

/** What a sync must say when it follows one that saw `before`, by user id. */
export const changesBetween = (
  audience: string,
  before: ReadonlySet<string>,
  after: ReadonlySet<string>,
): readonly Told[] =>
  [...new Set([...before, ...after])]
    .filter((userId) => before.has(userId) !== after.has(userId))
    .map((userId) => ({ userId, audience, member: after.has(userId) }))
    .sort((a, b) => (a.userId < b.userId ? -1 : 1))

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
    throw new Error('history follows people who never change identity: use evaluate')
  const told: Told[][] = instants.map(() => [])
  for (const person of peopleOf(log))
    for (const { key, condition } of audiences) {
      const judge = judgeOf(condition, person.calls)
      let before = false
      instants.forEach((at, index) => {
        const member = isSeen(person, at) && judge(at)
        if (member !== before)
          told[index]?.push({ userId: person.userId as string, audience: key, member })
        before = member
      })
    }
  return told
}
