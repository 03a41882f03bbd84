// Obeys tracking plans: judges a track call by its source's plan, and cuts out what an omitting plan cuts.
import type { Logger } from 'pino'
import type { Source } from '../../domain/configuration.ts'
import { isObject, type Json, type JsonObject } from '../../domain/message.ts'
import {
  ownKinds,
  type Plan,
  type PlanVerdict,
  type TrackingPlan,
  type Violation,
  type Violations,
} from '../../domain/tracking-plan.ts'
import { type Broken, type Check, compileSchema } from '../../json-schema.ts'

export const planLimits = {
  /** Of one call, as they are counted. */
  violationsMax: 100,
  /** Cutting may break what holds the property: each round cuts that. */
  roundsMax: 16,
  /** Whose compiled schemas are kept. */
  sourcesMax: 1_000,
  /** Of event names and paths, in characters, as they are counted. */
  nameLengthMax: 200,
}

export type Plans = {
  /** Absent for a source without a plan: then nothing is asked of a call. */
  of(source: Source, receivedAt: number): Plan | undefined
}

type Deps = { readonly violations: Violations; readonly logger: Logger }

/** A schema's text tells whether it is still the one that was compiled. */
type Kept = { readonly text: string; readonly check: Check | null }

type Open = {
  plan: TrackingPlan
  /** By event, of this plan object. */
  checks: Map<string, Check | null>
  /** By event, of the plan objects before: a change of anything replaces them all. */
  kept: Map<string, Kept>
}

export const openPlans = ({ violations, logger }: Deps): Plans => {
  const open = new Map<number, Open>()
  const opened = (sourceId: number, plan: TrackingPlan): Open => {
    const found = open.get(sourceId)
    if (found?.plan === plan) return found
    const next: Open = { plan, checks: new Map(), kept: keptOf(found, plan) }
    // The one opened first goes.
    const [first] = open.size >= planLimits.sourcesMax && !found ? open.keys() : []
    if (first !== undefined) open.delete(first)
    open.set(sourceId, next)
    return next
  }
  const compiled = (sourceId: number, { plan, checks, kept }: Open, event: string) => {
    const known = checks.get(event)
    if (known !== undefined) return known
    const schema = plan.events[event] as JsonObject
    const text = JSON.stringify(schema)
    const before = kept.get(event)
    const check = before?.text === text ? before.check : compile(schema)
    if (check === null) logger.warn({ sourceId, event }, 'plan.not_compiled')
    checks.set(event, check)
    kept.set(event, { text, check })
    return check
  }
  return {
    of: (source, receivedAt) => {
      const { trackingPlan: plan } = source.settings
      if (plan === null) return undefined
      return (event, properties) => {
        const isPlanned = Object.hasOwn(plan.events, event)
        if (!isPlanned && plan.unplanned === 'allow') return null
        const broken = isPlanned
          ? check(compiled(source.id, opened(source.id, plan), event), properties)
          : unplanned
        if (broken.length === 0) return null
        violations.add(source, violationsOf(event, broken, properties), receivedAt)
        return verdictOf({ plan, event, properties, broken }, (value) =>
          check(compiled(source.id, opened(source.id, plan), event), value),
        )
      }
    },
  }
}

/** Refused when it was saved; a plan that an earlier release took is not a reason to lose calls. */
const compile = (schema: JsonObject): Check | null => {
  const result = compileSchema(schema)
  return 'check' in result ? result.check : null
}

const keptOf = (found: Open | undefined, plan: TrackingPlan): Map<string, Kept> =>
  new Map([...(found?.kept ?? [])].filter(([event]) => Object.hasOwn(plan.events, event)))

const root = { instancePath: '', schemaPath: '', params: {} }
const unplanned: readonly Broken[] = [{ ...root, keyword: ownKinds.unplanned }]
const complex: readonly Broken[] = [{ ...root, keyword: ownKinds.complex }]
const nothing: readonly Broken[] = []

const check = (schema: Check | null, properties: JsonObject): readonly Broken[] => {
  try {
    return schema?.(properties) ?? nothing
  } catch (error) {
    if (error instanceof RangeError) return complex
    throw error
  }
}

type Judged = {
  readonly plan: TrackingPlan
  readonly event: string
  readonly properties: JsonObject
  readonly broken: readonly Broken[]
}

const verdictOf = (
  { plan, properties, broken }: Judged,
  again: (properties: JsonObject) => readonly Broken[],
): PlanVerdict => {
  if (plan.mode === 'report') return null
  if (broken === unplanned) return { filtered: 'event_not_planned' }
  const left = plan.mode === 'omit' ? omit(properties, broken, again) : null
  return left === null ? { filtered: 'plan_violated' } : { properties: left }
}

/** `null` when cutting cannot mend it: what is broken are the properties as a whole. */
const omit = (
  properties: JsonObject,
  first: readonly Broken[],
  again: (properties: JsonObject) => readonly Broken[],
): JsonObject | null => {
  const left = structuredClone(properties)
  let broken = first
  for (let round = 0; round < planLimits.roundsMax; round += 1) {
    // By place, before anything is cut: two things that broke may stand in one property.
    const cuts = told(broken).map((one) => propertyOf(left, placeOf(one)))
    for (const cut of cuts) {
      if (cut === null) return null
      delete cut.holder[cut.key]
    }
    broken = again(left)
    if (broken.length === 0) return left
  }
  return null
}

type Place = readonly string[]

/** The steps from the properties to what is broken; for what is too much, to that. */
const placeOf = ({ instancePath, params, propertyName }: Broken): Place => {
  const place = instancePath.split('/').slice(1).map(unescaped)
  const surplus =
    params['additionalProperty'] ??
    params['unevaluatedProperty'] ??
    // What is there asks for what is not.
    (params['depsCount'] === undefined ? undefined : params['property']) ??
    params['propertyName'] ??
    propertyName
  return typeof surplus === 'string' ? [...place, surplus] : place
}

const unescaped = (step: string) => step.replaceAll('~1', '/').replaceAll('~0', '~')

type Property = { readonly holder: Record<string, Json>; readonly key: string }

/** The innermost property on the way; an item of a list is none, for the others would move. */
const propertyOf = (properties: JsonObject, place: Place): Property | null => {
  let found: Property | null = null
  let at: Json | undefined = properties
  for (const key of place) {
    if (isObject(at)) found = { holder: at as Record<string, Json>, key }
    at = at !== null && typeof at === 'object' ? (at as JsonObject)[key] : undefined
  }
  return found
}

const alternatives = new Set(['anyOf', 'oneOf', 'not', 'propertyNames'])

/** Without what only says that something in it is broken, and what was one alternative of several. */
const told = (broken: readonly Broken[]): readonly Broken[] => {
  const outer = broken.filter(({ keyword }) => alternatives.has(keyword))
  return broken.filter(
    (one) =>
      one.keyword !== 'if' &&
      !outer.some(
        ({ schemaPath, instancePath }) =>
          one.schemaPath.startsWith(`${schemaPath}/`) && one.instancePath.startsWith(instancePath),
      ),
  )
}

const violationsOf = (
  event: string,
  broken: readonly Broken[],
  properties: JsonObject,
): readonly Violation[] => {
  const name = shortened(event)
  if (broken === unplanned) return [{ event: name, path: 'event', kind: ownKinds.unplanned }]
  const found = new Map<string, Violation>()
  for (const one of told(broken)) {
    if (found.size >= planLimits.violationsMax) break
    const path = shortened(pathOf(properties, one))
    found.set(`${one.keyword} ${path}`, { event: name, path, kind: one.keyword })
  }
  return [...found.values()]
}

/** As a schema speaks of it: `properties.products[].price`, whichever product it was. */
const pathOf = (properties: JsonObject, one: Broken): string => {
  const missing = one.params['missingProperty']
  const place =
    typeof missing === 'string'
      ? [...one.instancePath.split('/').slice(1).map(unescaped), missing]
      : placeOf(one)
  let path = 'properties'
  let at: Json | undefined = properties
  for (const key of place) {
    path += Array.isArray(at) ? '[]' : `.${key}`
    at = at !== null && typeof at === 'object' ? (at as JsonObject)[key] : undefined
  }
  return path
}

const shortened = (text: string): string =>
  text.length <= planLimits.nameLengthMax
    ? text
    : `${text.slice(0, planLimits.nameLengthMax - 1).toWellFormed()}…`
