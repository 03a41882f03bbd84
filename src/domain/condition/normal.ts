// The normal JSON of conditions: one spelling of every part, in the order it was written.
import type { Json, JsonObject } from '../message.ts'
import { spanOperators } from './date.ts'
import { readPath, writePath } from './path.ts'
import { defaultGrid, parseDuration } from './window.ts'

const unitsMs = [
  ...([
    ['d', 86_400_000],
    ['h', 3_600_000],
    ['m', 60_000],
  ] as const),
  ...([['s', 1_000]] as const),
] as const

/** The shortest text that `parseDuration` reads back to the same. */
export const durationText = (ms: number): string => {
  const [unit, size] = unitsMs.find(([, each]) => ms % each === 0) ?? ['s', 1_000]
  return `${ms / size}${unit}`
}

/** Of a condition that is sound; it may hold references. */
export const normalCondition = (json: JsonObject): JsonObject => {
  const users = json['users'] as JsonObject | undefined
  if (users === undefined) return normalOfUser(json)
  return { users: { ...users, where: normalOfUser(users['where'] as JsonObject) } }
}

const normalOfUser = (json: JsonObject): JsonObject =>
  normalTree(json, (leaf) => {
    if (Object.hasOwn(leaf, 'event')) return normalMeasured(leaf)
    if (Object.hasOwn(leaf, 'compare')) {
      const [left, right] = leaf['compare'] as readonly [JsonObject, JsonObject]
      return { compare: [normalMeasure(left), normalMeasure(right)], op: leaf['op'] as Json }
    }
    if (Object.hasOwn(leaf, 'sequence'))
      return { sequence: normalSequence(leaf['sequence'] as JsonObject) }
    if (Object.hasOwn(leaf, 'audience')) return normalAudience(leaf)
    return normalComparison(leaf)
  })

/** Without groups of one, groups in groups of their kind, and negations negated. */
const normalTree = (json: JsonObject, normalLeaf: (leaf: JsonObject) => JsonObject): JsonObject => {
  if (Object.hasOwn(json, 'not')) {
    const of = normalTree(json['not'] as JsonObject, normalLeaf)
    return Object.hasOwn(of, 'not') ? (of['not'] as JsonObject) : { not: of }
  }
  const kind = ['all', 'any'].find((each) => Object.hasOwn(json, each))
  if (kind === undefined) return normalLeaf(json)
  const members = (json[kind] as readonly JsonObject[]).flatMap((child) => {
    const normal = normalTree(child, normalLeaf)
    return Object.hasOwn(normal, kind) ? (normal[kind] as readonly JsonObject[]) : [normal]
  })
  return members.length === 1 ? (members[0] as JsonObject) : { [kind]: members }
}

const normalAudience = ({ audience, in: isIn }: JsonObject): JsonObject => {
  const member = { audience: audience as Json, in: true }
  return isIn === false ? { not: member } : member
}

const normalMeasured = (json: JsonObject): JsonObject => {
  const { event, ...rest } = json
  const [reducer, made] = Object.entries(rest)[0] as [string, JsonObject]
  const { ref, ci } = made
  if (isObject(ref) && Object.hasOwn(ref, 'event') && ci !== true) {
    const { op, ref: _ref, ci: _ci, ...bare } = made
    const left = normalMeasure({ event: event as Json, [reducer]: bare })
    return { compare: [left, normalMeasure(ref)], op: op as Json }
  }
  return { event: normalEvents(event as JsonObject), [reducer]: normalComparison(made) }
}

export const normalMeasure = ({ event, ...rest }: JsonObject): JsonObject => {
  const [reducer, made] = Object.entries(rest)[0] as [string, JsonObject]
  return { event: normalEvents(event as JsonObject), [reducer]: normalComparison(made) }
}

const normalEvents = ({ name, where, window }: JsonObject): JsonObject => ({
  name: name as Json,
  ...(where === undefined ? {} : { where: normalFilter(where as JsonObject) }),
  ...(window === undefined ? {} : { window: normalWindow(window as JsonObject) }),
})

const normalFilter = (json: JsonObject): JsonObject => normalTree(json, normalComparison)

/** What a trait, a property or a measure is compared with, and how. */
const normalComparison = (json: JsonObject): JsonObject => {
  const normal: Record<string, Json> = {}
  for (const [key, value] of Object.entries(json)) {
    if (key === 'trait' || key === 'prop') normal[key] = normalPath(value)
    else if (key === 'ref') normal[key] = normalRef(value)
    else if (key === 'value') normal[key] = normalValue(value, json['op'])
    else if (!(key === 'ci' && value === false) && !(key === 'min_frequency' && value === 2))
      normal[key] = value
  }
  return normal
}

const normalPath = (path: Json): Json => writePath(readPath(path) ?? []) as Json

const normalRef = (ref: Json): Json => {
  if (typeof ref === 'string' && ref.startsWith('trait:'))
    return `trait:${normalPath(ref.slice('trait:'.length))}`
  if (!isObject(ref)) return ref
  if (Object.hasOwn(ref, 'trait')) {
    const path = normalPath(ref['trait'] as Json)
    return typeof path === 'string' ? `trait:${path}` : { trait: path }
  }
  if (!Object.hasOwn(ref, 'step')) return normalMeasure(ref)
  const path = normalPath(ref['prop'] as Json)
  return typeof path === 'string' ? `${ref['step']}.prop.${path}` : { ...ref, prop: path }
}

const normalValue = (value: Json, op: Json | undefined): Json => {
  if (Array.isArray(value)) return value.map((each: Json) => (each === 0 ? 0 : each))
  if (value === 0) return 0
  return (spanOperators as readonly Json[]).includes(op ?? null) ? normalDuration(value) : value
}

const normalDuration = (text: Json): Json => durationText(parseDuration(text as string) ?? 0)

const normalWindow = (json: JsonObject): JsonObject => {
  const { grid, ...window } = json
  const ages = (window['between_ago'] as readonly Json[] | undefined)?.map(normalDuration)
  const last = window['last'] === undefined ? undefined : normalDuration(window['last'])
  const longest = parseDuration(String(ages?.[1] ?? last)) ?? 0
  const isDefault = grid === undefined || parseDuration(grid as string) === defaultGrid(longest)
  return {
    ...window,
    ...(ages === undefined ? {} : { between_ago: ages }),
    ...(last === undefined ? {} : { last }),
    ...(isDefault ? {} : { grid: normalDuration(grid) }),
  }
}

const normalSequence = (json: JsonObject): JsonObject => {
  const steps = json['steps'] as readonly JsonObject[]
  const normal = steps.map(normalStep)
  const named = new Set(normal.flatMap(({ event }) => stepsNamed((event as JsonObject)['where'])))
  return {
    ...(json['window'] === undefined ? {} : { window: normalWindow(json['window'] as JsonObject) }),
    ...(json['settle'] === 'after_deadline' ? { settle: 'after_deadline' } : {}),
    steps: normal.map(({ as: label, ...step }) =>
      label !== undefined && named.has(label as string) ? { ...step, as: label } : step,
    ),
  }
}

const normalStep = ({ event, then: happens, within, as: label }: JsonObject): JsonObject => ({
  event: normalEvents(event as JsonObject),
  ...(label === undefined ? {} : { as: label }),
  ...(happens === 'did_not' ? { then: 'did_not' } : {}),
  ...(within === undefined ? {} : { within: normalDuration(within) }),
})

const stepsNamed = (where: Json | undefined): readonly string[] => {
  if (!isObject(where)) return []
  const tests = Array.isArray(where['all']) ? (where['all'] as readonly Json[]) : [where]
  return tests.flatMap((test) => {
    const ref = isObject(test) ? test['ref'] : undefined
    if (isObject(ref)) return [String(ref['step'])]
    return typeof ref === 'string' ? [ref.split('.')[0] as string] : []
  })
}

const isObject = (value: Json | undefined): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
