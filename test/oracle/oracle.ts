// A naive evaluator of audiences and computed traits: what membership, values and identify messages must
// be, written from the definition of the condition language alone. Plain arrays, no buckets, no timers;
// it shares no code with the engine it checks.
//
// Cost: `answers` is users × leaves × calls of a user, from nothing, for one instant. `history` is that for
// every instant, users × instants × leaves × calls of a user. Neither skips an instant because nothing
// could have changed.
import { type At, judgeOf, measured, memberOf } from './judge.ts'
import type { Audience, Condition, Measure, OfUsers } from './language.ts'
import { type Call, groupsOf, type Person, peopleOf } from './people.ts'
import type { Json } from './values.ts'

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

/** Who belongs to an account of which so many users meet the condition; whoever they are themselves. */
const usersOfAccounts = (
  { condition, timezone, includeAnonymous }: Audience & { readonly condition: OfUsers },
  log: readonly Call[],
  { at, others }: { readonly at: number; readonly others: readonly Audience[] },
): readonly Person[] => {
  const { quantifier, where } = condition.users
  const people = peopleOf(log).filter((person) => isSeen(person, at))
  const counted = people.filter(({ userId }) => userId !== null || includeAnonymous !== false)
  const meets = ({ userId, calls }: Person) =>
    judgeOf(where, calls, { zone: timezone ?? 'UTC', others, identified: userId !== null })(at)
  const passes = (group: string) => {
    const users = counted.filter((person) => groupsOf(person).includes(group))
    if (quantifier === 'any') return users.some(meets)
    return users.length > 0 && users.every((user) => meets(user) === (quantifier === 'all'))
  }
  const passing = [...new Set(people.flatMap(groupsOf))].filter(passes)
  return people.filter((person) => groupsOf(person).some((group) => passing.includes(group)))
}

const isOfAccounts = (audience: Audience): audience is Audience & { readonly condition: OfUsers } =>
  'users' in audience.condition

/** By user id, of everyone in the log as far as it was read; `others` are those it may refer to. */
export const answers = (
  log: readonly Call[],
  { others = [], ...audience }: Audience & { readonly others?: readonly Audience[] },
  at: number,
): { readonly named: Answers; readonly nameless: readonly Json[] } => {
  const named = new Map<string, Json>()
  const nameless: Json[] = []
  const members = isOfAccounts(audience) ? usersOfAccounts(audience, log, { at, others }) : null
  for (const person of members ?? peopleOf(log)) {
    const answer = () => (members ? true : answerOf(audience, person, others)(at))
    const value = isSeen(person, at) ? answer() : undefined
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
