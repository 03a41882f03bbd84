// JSON Schemas that operators write, compiled: checked by control when a plan is saved, obeyed by collect.
import { Ajv, type ErrorObject, type FuncKeywordDefinition, type Options } from 'ajv'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { isObject, type Json, type JsonObject } from './domain/message.ts'
import { schemaFormats } from './json-schema-formats.ts'

export type Broken = Pick<
  ErrorObject,
  'keyword' | 'instancePath' | 'schemaPath' | 'params' | 'propertyName'
>

/**
 * What the value breaks, `null` when nothing. Throws a RangeError when the schema's references would
 * take too many steps over it.
 */
export type Check = (value: Json) => readonly Broken[] | null

/** A sentence saying why it is no schema that can be obeyed. */
export type Compiled = { readonly check: Check } | { readonly problem: string }

export const schemaLimits = {
  /** A compiler remembers something of everything it compiled: after so many schemas comes a new one. */
  compilationsMax: 2_000,
  /** References followed in one check: recursion in several branches doubles with every level. */
  stepsMax: 10_000,
  /** Longer texts match no pattern: some patterns take time with the square of the length. */
  patternLengthMax: 4_096,
}

type RegExpEngine = NonNullable<NonNullable<Options['code']>['regExp']>

/** The compiler tells patterns apart by their text. */
const boundedPattern: RegExpEngine = Object.assign(
  (pattern: string, flags: string) => {
    const regExp = new RegExp(pattern, flags)
    return {
      test: (text: string) => text.length <= schemaLimits.patternLengthMax && regExp.test(text),
      toString: () => String(regExp),
    }
  },
  { code: 'new RegExp' },
)

const options: Options = {
  strict: false,
  allErrors: true,
  logger: false,
  // What every object inherits is no property of a call.
  ownProperties: true,
  formats: schemaFormats,
  code: { regExp: boundedPattern },
}

type Compiler = { readonly ajv: Ajv | Ajv2020; compilations: number }

/** Made when first needed: each brings its meta-schema. */
const compilers: { [draft in 'seven' | 'newest']?: Compiler } = {}

const compilerFor = ({ $schema }: JsonObject): Ajv | Ajv2020 => {
  const draft = typeof $schema === 'string' && $schema.includes('draft-07') ? 'seven' : 'newest'
  let compiler = compilers[draft]
  if (!compiler || compiler.compilations >= schemaLimits.compilationsMax) {
    const ajv = draft === 'seven' ? new Ajv(options) : new Ajv2020(options)
    ajv.addKeyword(stepKeyword)
    ajv.removeKeyword('uniqueItems').addKeyword(uniqueItems)
    compiler = { ajv, compilations: 0 }
    compilers[draft] = compiler
  }
  compiler.compilations += 1
  return compiler.ajv
}

/** Draft 7 where `$schema` says so, else 2020-12. Whoever compiles keeps the result: nothing is cached here. */
export const compileSchema = ({ $id: _, ...given }: JsonObject): Compiled => {
  const ajv = compilerFor(given)
  const schema = stepping(given) as JsonObject
  try {
    const problem = reachProblem(schema)
    if (problem !== null) return { problem }
    const validate = ajv.compile(schema)
    // An asynchronous one would answer a promise, which is true for everything.
    if ('$async' in validate) return { problem: '"$async" is not supported' }
    const check: Check = (value) => {
      steps = 0
      return validate(value) ? null : (validate.errors ?? [])
    }
    // The plainest of circles shows here.
    check({})
    return { check }
  } catch (error) {
    return { problem: (error as Error).message }
  } finally {
    ajv.removeSchema(schema)
  }
}

const stepName = 'x-millrace-step'

/** Of the check that runs: checks do not nest. */
let steps = 0

const stepKeyword: FuncKeywordDefinition = {
  keyword: stepName,
  before: '$ref',
  schema: false,
  errors: false,
  validate: () => {
    steps += 1
    if (steps > schemaLimits.stepsMax)
      throw new RangeError(`its references take over ${schemaLimits.stepsMax} steps`)
    return true
  },
}

/** The compiler's own compares every two items. */
const uniqueItems: FuncKeywordDefinition = {
  keyword: 'uniqueItems',
  type: 'array',
  schemaType: 'boolean',
  errors: false,
  validate: (isOn: boolean, items: readonly Json[]) =>
    !isOn || new Set(items.map(canonical)).size === items.length,
}

/** Equal values have equal texts, in whatever order their keys came. */
const canonical = (value: Json): string =>
  JSON.stringify(value, (_, inner: Json) =>
    isObject(inner)
      ? Object.fromEntries(Object.entries(inner).sort(([a], [b]) => (a < b ? -1 : 1)))
      : inner,
  )

/** Keywords whose values are data, not schemas. */
const literal = new Set(['const', 'default', 'enum', 'examples'])
/** Keywords whose values are schemas by name. */
const named = new Set([
  '$defs',
  'definitions',
  'dependencies',
  'dependentSchemas',
  'patternProperties',
  'properties',
])
const references = new Set(['$ref', '$dynamicRef', '$recursiveRef'])

/** The schema with a step beside each of its references. */
const stepping = (schema: Json): Json => {
  if (Array.isArray(schema)) return schema.map(stepping)
  if (!isObject(schema)) return schema
  let refers = false
  const entries = Object.entries(schema).map(([key, inner]): [string, Json] => {
    if (references.has(key)) refers = true
    if (literal.has(key)) return [key, inner]
    return [key, named.has(key) && isObject(inner) ? mapped(inner, stepping) : stepping(inner)]
  })
  if (refers) entries.push([stepName, true])
  return Object.fromEntries(entries)
}

const mapped = (schemas: JsonObject, map: (schema: Json) => Json): JsonObject =>
  Object.fromEntries(Object.entries(schemas).map(([name, schema]) => [name, map(schema)]))

/** Nothing is fetched, and no schema is known to another, though they share a compiler. */
const reachProblem = (value: Json): string | null => {
  if (typeof value !== 'object' || value === null) return null
  for (const [key, inner] of Object.entries(value)) {
    if (literal.has(key)) continue
    if (typeof inner === 'string' && !inner.startsWith('#')) {
      if (key === '$ref' || key === '$dynamicRef')
        return `"${key}" to "${inner}" leads out of the schema: only "#…" is followed`
      if (key === '$id') return '"$id" may stand at the top only: "$ref" is followed by "#…"'
    }
    const problem = reachProblem(inner)
    if (problem !== null) return problem
  }
  return null
}
