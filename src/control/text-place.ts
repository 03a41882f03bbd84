// Where in the text of a condition a problem lies that only shows beside other definitions: what it refers to.
import { placedAt, readConditionText } from '../domain/condition/text/read.ts'
import { tokensOf } from '../domain/condition/text/token.ts'
import type { Json } from '../domain/message.ts'
import type { Problem } from './problem.ts'

/** `given` is what was written, at `path`: of JSON the paths say where, of text the line and the column. */
export const placedInText = (
  problems: readonly Problem[],
  given: unknown,
  path: string,
): readonly Problem[] => {
  if (typeof given !== 'string') return problems
  const read = readConditionText(given)
  if (!read.ok) return problems
  return problems.map((problem) => {
    if (!problem.path.startsWith(`${path}/`)) return problem
    const key = keyAt(read.json, problem.path.slice(path.length + 1).split('/'))
    const at = key === null ? undefined : placeOf(given, key)
    if (at === undefined) return { ...problem, path }
    const { line, column, message } = placedAt(given, at, problem.message)
    return { ...problem, path, message: `line ${line}, column ${column}: ${message}` }
  })
}

/** The first key on the way: behind it the path is that of another definition. */
const keyAt = (json: Json, [first, ...rest]: readonly string[]): string | null => {
  if (typeof json === 'string') return json.replace(/^computed:/, '')
  if (first === undefined || json === null || typeof json !== 'object') return null
  return keyAt((json as { readonly [key: string]: Json })[first] ?? null, rest)
}

/** Where the key is first referred to: as words of the text, which its literals are not. */
const placeOf = (text: string, key: string): number | undefined => {
  const tokens = tokensOf(text)
  return tokens.find(
    ({ type, text: word }, n) =>
      type === 'name' &&
      ['audience', 'computed'].includes(word) &&
      tokens[n + 1]?.text === '(' &&
      tokens[n + 2]?.type === 'string' &&
      tokens[n + 2]?.text === key,
  )?.at
}
