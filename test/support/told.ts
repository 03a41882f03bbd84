// What is heard and said around the naive evaluator: calls without duplicates, and the differences between what
// people had at one instant and at the next.
import type { Audience, Call, Json } from './language.ts'

/** By user id. */
export type Answers = ReadonlyMap<string, Json>

/** `null` for a computed trait's value that is gone. */
export type Told = { readonly userId: string; readonly audience: string; readonly value: Json }

/** What a sync must say when it follows one that saw `before`. */
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

/** Of one source's calls in one partition: a duplicate has an earlier one received less than 24 h before. */
export const withoutDuplicates = (log: readonly Call[]): readonly Call[] => {
  const before = new Map<string, number[]>()
  return log.filter(({ messageId, receivedAt }) => {
    const times = before.get(messageId) ?? []
    const duplicate = times.some((time) => receivedAt - time < 86_400_000)
    before.set(messageId, [...times, receivedAt])
    return !duplicate
  })
}
