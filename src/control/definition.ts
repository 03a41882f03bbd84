// Whether what an audience or computed trait says can be worked out, and whatever refers to it still.
import { referencesOf } from '../domain/condition/expand.ts'
import { readConditionText, readMeasureText } from '../domain/condition/text/read.ts'
import type { Audience } from '../domain/configuration.ts'
import { byKey, closedCondition, parseDefinition } from '../domain/definition.ts'
import type { JsonObject } from '../domain/message.ts'
import { isTimezone } from '../domain/zone.ts'
import { type Problem, pointerOf } from './problem.ts'

type Given = {
  readonly kind: Audience['kind']
  /** JSON, or the text form. */
  readonly given: string | Readonly<Record<string, unknown>>
  readonly timezone: string
  readonly path: string
}

/** What people write, as JSON: text becomes what it says, or says where it is wrong. */
export const readGiven = ({
  kind,
  given,
  timezone,
  path,
}: Given): { readonly json: JsonObject } | { readonly problems: readonly Problem[] } => {
  if (typeof given !== 'string') return { json: given as JsonObject }
  // A zone that is none is told of as such.
  const options = { timezone: isTimezone(timezone) ? timezone : 'UTC' }
  const read = (kind === 'trait' ? readMeasureText : readConditionText)(given, options)
  if (read.ok) return read
  return {
    problems: read.problems.map((problem) => ({
      code: 'condition_invalid',
      path,
      message: `line ${problem.line}, column ${problem.column}: ${problem.message}`,
    })),
  }
}

type Wanted = Pick<Audience, 'kind' | 'key' | 'condition' | 'timezone' | 'includeAnonymous'>

/** `others` are all of its workspace, itself as it was among them or not; `path` is where it is defined. */
export const definitionProblems = (
  wanted: Wanted & Pick<Audience, 'workspaceId'>,
  others: readonly Audience[],
  path: string,
): readonly Problem[] => {
  const known = byKey(others, wanted.workspaceId)
  // As it was written: paths are those of the one who wrote it.
  const written = problemsOf({ ...wanted, includeAnonymous: true }, known, path)
  if (written.length > 0) return written
  const whole = problemsOf(wanted, known, '').map((problem) => ({ ...problem, path }))
  return whole.length > 0 ? whole : brokenBy(wanted, known, path)
}

type Known = ReadonlyMap<string, Audience>

const problemsOf = (wanted: Wanted, known: Known, path: string): readonly Problem[] => {
  const closed = closedCondition(wanted, known)
  const parsed = closed.ok
    ? parseDefinition({ ...wanted, condition: closed.json })
    : { ok: false as const, problems: closed.problems }
  if (parsed.ok) return []
  return parsed.problems.map((problem) => ({
    code: 'condition_invalid',
    path: `${path}${pointerOf(problem.path)}`,
    message: problem.message,
  }))
}

/** Those that refer to it, straight or through others, must be fine with the change. */
const brokenBy = (wanted: Wanted, known: Known, path: string): readonly Problem[] => {
  const current = known.get(wanted.key)
  if (current === undefined) return []
  const next = new Map(known).set(wanted.key, { ...current, ...wanted })
  return [...next.values()].flatMap((other) => {
    if (other.key === wanted.key || referencesOf(other.condition).length === 0) return []
    const [problem] = problemsOf(other, next, '')
    if (problem === undefined) return []
    return [
      {
        code: 'condition_invalid' as const,
        path,
        message: `"${other.name}" refers to it, and could not be worked out any more: ${problem.message}`,
      },
    ]
  })
}

/** Those that say its key. */
export const referrersOf = (audience: Audience, others: readonly Audience[]): readonly Audience[] =>
  others.filter(
    ({ id, workspaceId, kind, condition }) =>
      id !== audience.id &&
      workspaceId === audience.workspaceId &&
      kind === 'audience' &&
      referencesOf(condition).some(
        ({ type, key }) =>
          key === audience.key && (type === 'audience') === (audience.kind === 'audience'),
      ),
  )
