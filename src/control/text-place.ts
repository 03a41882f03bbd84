// Where in the text of a condition a problem lies that only shows beside other definitions: what it refers to.
import { placedAt, readConditionText } from '../domain/condition/text/read.ts'
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
    const [found] = [...given.matchAll(references)].filter((it) => it[2] === key)
    if (found === undefined) return { ...problem, path }
    const { line, column, message } = placedAt(given, found.index, problem.message)
    return { ...problem, path, message: `line ${line}, column ${column}: ${message}` }
  })
}

/** The first key on the way: behind it the path is that of another definition. */
const keyAt = (json: Json, [first, ...rest]: readonly string[]): string | null => {
  if (typeof json === 'string') return json.replace(/^computed:/, '')
  if (first === undefined || json === null || typeof json !== 'object') return null
  return keyAt((json as { readonly [key: string]: Json })[first] ?? null, rest)
}

const references = /\b(?:audience|computed)\s*\(\s*(['"])(.*?)\1/g
