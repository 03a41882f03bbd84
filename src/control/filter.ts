// The filters of a destination: the form they are written in, and what is refused of it.
import Type from 'typebox'
import { parsePropertyFilter } from '../domain/condition/parse.ts'
import { type Filter, filterKinds, filterSections, type Matching } from '../domain/filter.ts'
import { type JsonObject, sentTypes } from '../domain/message.ts'
import { at, type Problem, pointerOf } from './problem.ts'
import { AnyObject, closed, oneOf } from './schema.ts'

export const filterLimits = {
  filtersMax: 50,
  /** Of all of them as JSON: they are in every snapshot. */
  bytesMax: 262_144,
  pathsMax: 200,
  pathCharactersMax: 500,
  eventsMax: 1_000,
}

const MatchingInput = closed(
  {
    types: Type.Optional(Type.Array(oneOf(sentTypes))),
    events: Type.Optional(Type.Array(Type.String())),
    where: Type.Optional(AnyObject),
  },
  'Which calls the rule is about: by type, by the name of a track call, by properties; all that is given must hold.',
)

/** One form for all kinds: what belongs to which is said in words, not as a failed union. */
export const FilterInput = closed({
  kind: oneOf(filterKinds),
  rate: Type.Optional(
    Type.Number({ minimum: 0, maximum: 1, description: 'The share of users that sample takes.' }),
  ),
  paths: Type.Optional(
    Type.Array(Type.String(), {
      description: 'Of allow and block: properties.price, traits.email, context.',
    }),
  ),
  if: Type.Optional(MatchingInput),
})

export const filtersInput = Type.Array(FilterInput, {
  description: 'At most 50; applied in the order sample, drop, allow, block.',
})

export type FilterDraft = {
  readonly kind: Filter['kind']
  readonly rate?: number
  readonly paths?: readonly string[]
  readonly if?: {
    readonly types?: Matching['types']
    readonly events?: readonly string[]
    readonly where?: Readonly<Record<string, unknown>>
  }
}

/** Only for drafts without problems; one order of fields, so that the same filter is the same text. */
export const filterOf = ({ kind, rate = 1, paths = [], if: matching }: FilterDraft): Filter => {
  const rest = matching && Object.keys(matching).length > 0 ? { if: matchingOf(matching) } : {}
  switch (kind) {
    case 'sample':
      return { kind, rate, ...rest }
    case 'drop':
      return { kind, if: {}, ...rest }
    case 'allow':
    case 'block':
      return { kind, paths, ...rest }
  }
}

const matchingOf = ({ types, events, where }: NonNullable<FilterDraft['if']>): Matching => ({
  ...(types === undefined ? {} : { types }),
  ...(events === undefined ? {} : { events }),
  ...(where === undefined ? {} : { where: where as JsonObject }),
})

export const filtersProblems = (
  filters: readonly FilterDraft[],
  path: string,
): readonly Problem[] => {
  const { filtersMax, bytesMax } = filterLimits
  if (filters.length > filtersMax || Buffer.byteLength(JSON.stringify(filters)) > bytesMax)
    return [
      {
        code: 'filters_too_many',
        path,
        message: `a destination has at most ${filtersMax} filters of ${bytesMax} bytes together as JSON`,
      },
    ]
  return filters.flatMap((filter, index) => filterProblems(filter, at(path, index)))
}

const filterProblems = (filter: FilterDraft, path: string): readonly Problem[] => [
  ...fieldProblems(filter, path),
  ...(filter.paths ?? []).flatMap((text, index) =>
    isPath(text)
      ? []
      : [invalid(at(at(path, 'paths'), index), `"${text}" is no path like "properties.price"`)],
  ),
  ...(filter.if === undefined ? [] : matchingProblems(filter.if, at(path, 'if'))),
]

const fieldProblems = (filter: FilterDraft, path: string): readonly Problem[] => {
  const { kind, rate, paths, if: matching } = filter
  const choosesPaths = kind === 'allow' || kind === 'block'
  const problems: Problem[] = []
  if (kind === 'sample' && rate === undefined)
    problems.push(invalid(at(path, 'rate'), 'sample needs a rate from 0 to 1'))
  if (kind !== 'sample' && rate !== undefined)
    problems.push(invalid(at(path, 'rate'), `${kind} has no rate`))
  if (!choosesPaths && paths !== undefined)
    problems.push(invalid(at(path, 'paths'), `${kind} has no paths`))
  if (choosesPaths && (paths === undefined || paths.length === 0))
    problems.push(invalid(at(path, 'paths'), `${kind} needs at least one path`))
  if (paths !== undefined && paths.length > filterLimits.pathsMax)
    problems.push(invalid(at(path, 'paths'), `at most ${filterLimits.pathsMax} paths`))
  if (kind === 'drop' && Object.keys(matching ?? {}).length === 0)
    problems.push(
      invalid(at(path, 'if'), 'drop needs to say which calls: switch a destination off by enabled'),
    )
  return problems
}

/** A section, or keys below one, joined by dots. */
const isPath = (text: string): boolean => {
  const [section, ...keys] = text.split('.')
  return (
    text.length <= filterLimits.pathCharactersMax &&
    filterSections.some((known) => known === section) &&
    !keys.includes('')
  )
}

const matchingProblems = (
  { types, events, where }: NonNullable<FilterDraft['if']>,
  path: string,
): readonly Problem[] => {
  const problems: Problem[] = []
  if (types?.length === 0)
    problems.push(invalid(at(path, 'types'), 'an empty list would match no call'))
  if (events?.length === 0)
    problems.push(invalid(at(path, 'events'), 'an empty list would match no call'))
  if (events !== undefined && events.length > filterLimits.eventsMax)
    problems.push(invalid(at(path, 'events'), `at most ${filterLimits.eventsMax} names`))
  if (where === undefined) return problems
  const parsed = parsePropertyFilter(where)
  if (parsed.ok) return problems
  return [
    ...problems,
    ...parsed.problems.map((problem) =>
      invalid(`${at(path, 'where')}${pointerOf(problem.path)}`, problem.message),
    ),
  ]
}

const invalid = (path: string, message: string): Problem => ({
  code: 'filter_invalid',
  path,
  message,
})
