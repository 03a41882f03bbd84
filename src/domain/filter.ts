// What a destination takes of a call: rules that sample, drop, or choose properties.
import { hash } from 'node:crypto'
import type { Filter as PropertyFilter } from './condition/condition.ts'
import { admits } from './condition/evaluate.ts'
import { parsePropertyFilter } from './condition/parse.ts'
import { type CallType, isObject, type Json, type JsonObject, type Message } from './message.ts'
import { pageProperties } from './payload.ts'

/** The order in which rules are applied. */
export const filterKinds = ['sample', 'drop', 'allow', 'block'] as const

/** Which calls a rule is about: each part that is given must hold. */
export type Matching = {
  readonly types?: readonly CallType[]
  /** Names of track calls. */
  readonly events?: readonly string[]
  /** A property filter as in an audience's condition. */
  readonly where?: JsonObject
}

export type Filter =
  /** Takes this share of the users (or else of the visitors), always the same ones. */
  | { readonly kind: 'sample'; readonly rate: number; readonly if?: Matching }
  | { readonly kind: 'drop'; readonly if: Matching }
  /** Only these paths, or all but these, of `properties`, `traits` and `context`: `properties.price`. */
  | { readonly kind: 'allow' | 'block'; readonly paths: readonly string[]; readonly if?: Matching }

/** The parts of a call that rules choose from. */
export const filterSections = ['properties', 'traits', 'context'] as const

/** Rules made ready to be applied: the same for every call of a destination. */
export type Filtering = {
  readonly destinationId: number
  readonly rules: readonly Rule[]
}

type Rule = {
  readonly matches: (seen: Seen) => boolean
} & (
  | { readonly kind: 'sample'; readonly rate: number }
  | { readonly kind: 'drop' }
  | { readonly kind: 'allow' | 'block'; readonly paths: readonly string[] }
)

type Subject = Pick<Message, 'type' | 'event' | 'userId' | 'anonymousId'>

type Seen = { readonly message: Subject; readonly properties: () => Json | undefined }

/** Throws when a rule is none that this version can apply: what it holds back must not slip through. */
export const filteringOf = (destinationId: number, filters: readonly Filter[]): Filtering => {
  const rules = filterKinds.flatMap((kind) =>
    filters.filter((filter) => filter.kind === kind).map(ruleOf),
  )
  if (rules.length < filters.length)
    throw new Error('a filter of a destination is of no known kind')
  return { destinationId, rules }
}

const ruleOf = (filter: Filter): Rule => {
  const matches = matcherOf(filter.if ?? {})
  switch (filter.kind) {
    case 'sample':
      return { kind: filter.kind, matches, rate: filter.rate }
    case 'drop':
      return { kind: filter.kind, matches }
    case 'allow':
    case 'block':
      return { kind: filter.kind, matches, paths: filter.paths }
  }
}

const matcherOf = ({ types, events, where }: Matching): Rule['matches'] => {
  const condition = where === undefined ? null : conditionOf(where)
  return ({ message, properties }) =>
    (types === undefined || types.includes(message.type)) &&
    (events === undefined || (message.event !== null && events.includes(message.event))) &&
    (condition === null || admits(condition, properties()))
}

const conditionOf = (where: JsonObject): PropertyFilter => {
  const parsed = parsePropertyFilter(where)
  if (!parsed.ok) throw new Error('a filter of a destination cannot be evaluated')
  return parsed.filter
}

/** The call as the destination takes it, the very same one where nothing was chosen; or why not. */
export type Filtered = { readonly call: JsonObject } | { readonly withheld: 'sampled' | 'dropped' }

/**
 * From the record alone, never a random number, so that a replay decides as the first time. Each rule looks
 * at the call as it came, so that rules of one kind may stand in any order.
 */
export const filterCall = (
  { destinationId, rules }: Filtering,
  message: Subject,
  call: JsonObject,
): Filtered => {
  const seen: Seen = { message, properties: () => propertiesOf(message.type, call) }
  let chosen = call
  for (const rule of rules) {
    if (!rule.matches(seen)) continue
    if (rule.kind === 'sample') {
      if (!isSampled(destinationId, message, rule.rate)) return { withheld: 'sampled' }
    } else if (rule.kind === 'drop') return { withheld: 'dropped' }
    else {
      if (chosen === call) chosen = settled(message.type, call)
      chosen = { ...chosen, ...choose(rule.kind, rule.paths, chosen) }
    }
  }
  return { call: chosen }
}

/** The property rules alone, for a call that is known to be taken. */
export const chooseProperties = (
  filtering: Filtering,
  message: Subject,
  call: JsonObject,
): JsonObject => {
  const rules = filtering.rules.filter(({ kind }) => kind === 'allow' || kind === 'block')
  const filtered = filterCall({ ...filtering, rules }, message, call)
  return 'call' in filtered ? filtered.call : call
}

/** What `where` compares: traits where the call has these, else properties, as its receiver would see them. */
const propertiesOf = (type: CallType, call: JsonObject): Json | undefined => {
  if (type === 'identify' || type === 'group') return call['traits']
  return type === 'page' ? pageProperties(call) : call['properties']
}

/** A page's name and category are sent among its properties: there a rule finds them, or else they got past it. */
const settled = (type: CallType, call: JsonObject): JsonObject => {
  if (type !== 'page') return call
  const { name: _, category: __, ...rest } = call
  return { ...rest, properties: pageProperties(call) }
}

const sampleBytes = 6

/** Salted by destination: two that take a tenth each do not take the same tenth. */
const isSampled = (
  destinationId: number,
  { userId, anonymousId }: Subject,
  rate: number,
): boolean => {
  const digest = hash('sha256', `${destinationId}:${userId ?? anonymousId ?? ''}`, 'buffer')
  return digest.readUIntBE(0, sampleBytes) / 2 ** (8 * sampleBytes) < rate
}

const choose = (
  kind: 'allow' | 'block',
  paths: readonly string[],
  call: JsonObject,
): JsonObject => {
  const sections = Object.fromEntries(
    filterSections.flatMap((name) =>
      Object.hasOwn(call, name) ? [[name, call[name] as Json]] : [],
    ),
  )
  const chosen = kind === 'allow' ? only(sections, paths) : without(sections, paths)
  const kept = isObject(chosen) ? chosen : {}
  return Object.fromEntries(Object.keys(sections).map((name) => [name, kept[name] ?? {}]))
}

/** What lies at the paths or below; `undefined` for nothing. Lists are walked through. */
const only = (value: Json, paths: readonly string[]): Json | undefined => {
  if (paths.includes(here)) return value
  if (isList(value)) {
    const elements = value.map((element) => only(element, paths))
    const kept = elements.filter((element) => element !== undefined)
    return kept.length === 0 ? undefined : kept
  }
  if (!isObject(value)) return undefined
  const entries = Object.entries(value).flatMap(([key, inner]) => {
    const below = restsAfter(paths, key)
    const kept = below.length === 0 ? undefined : only(inner, below)
    return kept === undefined ? [] : [[key, kept] as const]
  })
  return entries.length === 0 ? undefined : Object.fromEntries(entries)
}

/** All but what lies at the paths. */
const without = (value: Json, paths: readonly string[]): Json => {
  if (isList(value)) return value.map((element) => without(element, paths))
  if (!isObject(value)) return value
  return Object.fromEntries(
    Object.entries(value).flatMap(([key, inner]) => {
      const below = restsAfter(paths, key)
      if (below.length === 0) return [[key, inner] as const]
      return below.includes(here) ? [] : [[key, without(inner, below)] as const]
    }),
  )
}

/** A path that has been walked to its end. */
const here = ''

/** What is left of those paths that enter the key. A key may hold dots itself, so a path is walked as text. */
const restsAfter = (paths: readonly string[], key: string): readonly string[] =>
  paths.flatMap((path) => {
    if (path === key) return [here]
    return path.startsWith(`${key}.`) ? [path.slice(key.length + 1)] : []
  })

const isList = (value: Json): value is readonly Json[] => Array.isArray(value)
