// References to audiences and computed traits, written out: what is stored and evaluated knows none.
import type { Json, JsonObject } from '../message.ts'
import { conditionLimits, type Problem } from './condition.ts'
import { stampTimezone } from './stamp-timezone.ts'
import { isAboutAccounts } from './users.ts'

export type Reference = { readonly type: 'audience' | 'computed'; readonly key: string }

/** What a reference stands for, as it was saved; `null` where there is none. */
export type References = {
  readonly audience: (key: string) => ReferencedAudience | null
  readonly computed: (key: string) => ReferencedTrait | null
}

export type ReferencedAudience = {
  readonly where: JsonObject
  readonly timezone: string
  readonly includeAnonymous: boolean
}

/** `definition` is a measure without a comparison. */
export type ReferencedTrait = { readonly definition: JsonObject; readonly timezone: string }

export type Expanded =
  | { readonly ok: true; readonly json: JsonObject }
  | { readonly ok: false; readonly problems: readonly Problem[] }

type Run = {
  readonly references: References
  readonly problems: Problem[]
  /** References written out so far: each may hold others, twice. */
  written: number
}

/** Where in the condition it stands: `trail` is the audiences entered, the outermost first. */
type Place = { readonly path: string; readonly depth: number; readonly trail: readonly string[] }

/** Each reference brings a comparison at least, or one side of it. */
const writtenMax = 2 * conditionLimits.leavesMax

/**
 * The condition without references. What it refers to keeps the time zone it was saved with. `self` is the
 * key of the audience whose condition this is, so that it is not found in itself.
 */
export const expandReferences = (
  json: JsonObject,
  references: References,
  self: string | null = null,
): Expanded => {
  const run: Run = { references, problems: [], written: 0 }
  const trail = self === null ? [] : [self]
  const expanded = expandNode(json, run, { path: '', depth: 0, trail })
  return run.problems.length > 0
    ? { ok: false, problems: run.problems }
    : { ok: true, json: expanded as JsonObject }
}

/** What a condition refers to itself, each once. */
export const referencesOf = (json: JsonObject): readonly Reference[] => {
  const found = new Map<string, Reference>()
  const note = (type: Reference['type'], key: string) => {
    found.set(`${type} ${key}`, { type, key })
    return null
  }
  const references: References = {
    audience: (key) => note('audience', key),
    // Behind a computed trait there may be another that it is compared with.
    computed: (key) => note('computed', key) ?? { definition: anyMeasure, timezone: 'UTC' },
  }
  expandReferences(json, references)
  return [...found.values()]
}

const anyMeasure: JsonObject = { event: { name: 'any' }, last: { prop: 'any' } }

const expandNode = (node: Json, run: Run, place: Place): Json => {
  // What is no object, or too deep, is refused where it is parsed.
  if (!isObject(node) || place.depth > conditionLimits.depthMax) return node
  const at = (key: string, below: Place = place) => ({
    ...below,
    path: below.path === '' ? key : `${below.path}.${key}`,
    depth: below.depth + 1,
  })
  if (Object.hasOwn(node, 'audience')) return expandAudience(node, run, place)
  if (Object.hasOwn(node, 'computed')) {
    const measured = expandComputed(node, run, place)
    return measured === null ? null : expandRef(measured, run, place)
  }
  const expanded: Record<string, Json> = { ...node }
  const { users } = node
  if (place.depth === 0 && isObject(users) && Object.hasOwn(users, 'where'))
    expanded['users'] = {
      ...users,
      where: expandNode(users['where'] as Json, run, at('users.where')),
    }
  for (const kind of ['all', 'any'] as const) {
    const children = node[kind]
    if (Array.isArray(children))
      expanded[kind] = children.map((child: Json, index) =>
        expandNode(child, run, at(`${kind}[${index}]`)),
      )
  }
  if (Object.hasOwn(node, 'not')) expanded['not'] = expandNode(node['not'] as Json, run, at('not'))
  return expandRef(expanded, run, place)
}

const expandAudience = (node: JsonObject, run: Run, place: Place): Json => {
  const { audience: key, in: isIn = true, ...rest } = node
  const path = place.path === '' ? 'audience' : `${place.path}.audience`
  const refuse = (message: string) => refused(run, path, message)
  const [unknown] = Object.keys(rest)
  if (unknown !== undefined)
    return refuse(`expected only "audience", "in"; "${unknown}" is not known here`)
  if (typeof isIn !== 'boolean') return refuse('expected "in" to be true or false')
  if (typeof key !== 'string') return refuse('expected the key of an audience')
  if (place.trail.includes(key)) {
    const cycle = [...place.trail.slice(place.trail.indexOf(key)), key]
    return refuse(`expected no audience that refers to itself: ${cycle.join(' → ')}`)
  }
  const found = run.references.audience(key)
  if (found === null) return refuse(`expected the key of an audience: there is none "${key}"`)
  if (isAboutAccounts(found.where))
    return refuse(`expected the key of an audience of users: "${key}" is one of accounts`)
  if (++run.written > writtenMax) return tooMany(run, path)
  const where = expandNode(stampTimezone(found.where, found.timezone), run, {
    ...{ path, depth: 0, trail: [...place.trail, key] },
  })
  const members = found.includeAnonymous ? where : { all: [{ identified: true }, where] }
  return isIn ? members : { not: members }
}

/** The comparison goes to where the measure keeps it. */
const expandComputed = (node: JsonObject, run: Run, place: Place): JsonObject | null => {
  const { computed: key, ...comparison } = node
  const path = place.path === '' ? 'computed' : `${place.path}.computed`
  const measure = measureOf(key, run, path)
  if (measure === null) return null
  const reducer = Object.keys(measure).find((part) => part !== 'event') as string
  return { ...measure, [reducer]: { ...(measure[reducer] as JsonObject), ...comparison } }
}

const measureOf = (key: Json | undefined, run: Run, path: string): JsonObject | null => {
  const refuse = (message: string) => refused(run, path, message)
  if (typeof key !== 'string') return refuse('expected the key of a computed trait')
  const found = run.references.computed(key)
  if (found === null) return refuse(`expected the key of a computed trait: there is none "${key}"`)
  if (++run.written > writtenMax) return tooMany(run, path)
  return stampTimezone(found.definition, found.timezone)
}

/** In the place of a literal: "ref": "computed:key" of a trait, or beside a reducer's operator. */
const expandRef = (node: JsonObject, run: Run, place: Place): Json => {
  const expanded = Object.entries(node).map(([key, value]): readonly [string, Json] => {
    if (key === 'ref') return [key, refOf(value, run, place.path)]
    const isReducer = key !== 'event' && isObject(value) && Object.hasOwn(value, 'ref')
    if (!isReducer || !Object.hasOwn(node, 'event')) return [key, value]
    const path = place.path === '' ? key : `${place.path}.${key}`
    return [key, { ...value, ref: refOf(value['ref'] as Json, run, path) }]
  })
  return Object.fromEntries(expanded)
}

const refOf = (value: Json, run: Run, path: string): Json => {
  if (typeof value !== 'string' || !value.startsWith('computed:')) return value
  const at = path === '' ? 'ref' : `${path}.ref`
  return measureOf(value.slice('computed:'.length), run, at) ?? value
}

const tooMany = (run: Run, path: string): null =>
  refused(run, path, `expected at most ${writtenMax} references, written out`)

const refused = (run: Run, path: string, message: string): null => {
  // Past the bound every further one would say the same again.
  if (run.written <= writtenMax || !run.problems.some((problem) => problem.message === message))
    run.problems.push({ path, message })
  return null
}

const isObject = (value: Json | undefined): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
