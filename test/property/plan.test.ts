// Laws of tracking plans: what omit leaves keeps to the schema, cuts no more than it must, and is left alone.
import fc from 'fast-check'
import pino from 'pino'
import { expect, test } from 'vitest'
import { openPlans } from '../../src/collect/judge/plan.ts'
import { defaultSourceSettings } from '../../src/domain/configuration.ts'
import { isObject, type Json, type JsonObject } from '../../src/domain/message.ts'
import type { PlanVerdict, TrackingPlan, Violation } from '../../src/domain/tracking-plan.ts'
import { compileSchema } from '../../src/json-schema.ts'
import { aSource } from '../support/configuration.ts'

const names = ['a', 'b', 'c/d', 'e~f', 'g h', 'constructor', '0', '']
const anyName = fc.constantFrom(...names)

const anyValue = fc.letrec<{ value: Json; map: JsonObject }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 3 },
    fc.constantFrom<Json>('', 'x', 'xx', 'y', 0, 1, -5, 2.5, true, null),
    fc.array(tie('value'), { maxLength: 3 }),
    tie('map'),
  ),
  map: fc.dictionary(anyName, tie('value'), { maxKeys: 4 }),
}))

const anySchema = fc.letrec<{ any: JsonObject; object: JsonObject }>((tie) => ({
  any: fc.oneof(
    { maxDepth: 3 },
    fc.constantFrom<JsonObject>(
      {},
      { type: 'string' },
      { type: 'number', minimum: 0 },
      { type: ['boolean', 'null'] },
      { enum: ['x', 1] },
      { type: 'string', pattern: '^x+$' },
      { const: 'x' },
      { type: 'array', uniqueItems: true, maxItems: 2 },
      { not: { type: 'string' } },
    ),
    fc.record({ type: fc.constant('array'), items: tie('any') }) as fc.Arbitrary<JsonObject>,
    fc.record({ anyOf: fc.array(tie('any'), { minLength: 1, maxLength: 2 }) }),
    fc.record({ oneOf: fc.array(tie('any'), { minLength: 1, maxLength: 2 }) }),
    tie('object'),
  ),
  object: fc.record(
    {
      type: fc.constant('object'),
      properties: fc.dictionary(anyName, tie('any'), { maxKeys: 4 }),
      required: fc.uniqueArray(anyName, { maxLength: 1 }),
      additionalProperties: fc.oneof(fc.boolean(), tie('any')),
      patternProperties: fc.constant({ '^x': { type: 'number' } }),
      propertyNames: fc.constant({ maxLength: 3 }),
      dependentRequired: fc.constant({ a: ['b'] }),
      maxProperties: fc.constantFrom(2, 3),
      allOf: fc.array(tie('any'), { minLength: 1, maxLength: 1 }),
      if: fc.constant({ required: ['a'] }),
      then: fc.constant({ properties: { b: { type: 'string' } } }),
    },
    { requiredKeys: ['type'] },
  ) as fc.Arbitrary<JsonObject>,
}))

type Opened = {
  judge(properties: JsonObject): PlanVerdict
  readonly broken: Violation[]
}

const open = (schema: JsonObject, mode: TrackingPlan['mode']): Opened => {
  const broken: Violation[] = []
  const plans = openPlans({
    violations: { add: (_, more) => void broken.push(...more) },
    logger: pino({ level: 'silent' }),
  })
  const trackingPlan = { mode, unplanned: 'forbid', events: { E: schema } } as const
  const plan = plans.of(aSource({ settings: { ...defaultSourceSettings, trackingPlan } }), 0)
  if (!plan) throw new Error('a source with a plan has one')
  return { broken, judge: (properties) => plan('E', properties) }
}

const keeps = (schema: JsonObject, value: Json): boolean => {
  const compiled = compileSchema(schema)
  if ('problem' in compiled) throw new Error(compiled.problem)
  return compiled.check(value) === null
}

/** Whether `part` is `whole` with properties left out, and nothing else. */
const isPartOf = (part: Json, whole: Json): boolean => {
  if (isObject(part) && isObject(whole))
    return Object.entries(part).every(
      ([key, inner]) => Object.hasOwn(whole, key) && isPartOf(inner, whole[key] as Json),
    )
  if (Array.isArray(part) && Array.isArray(whole))
    return (
      part.length === whole.length && part.every((inner, at) => isPartOf(inner, whole[at] as Json))
    )
  return Object.is(part, whole)
}

test('what omit leaves keeps to the schema, is part of what came, and is left as it is', () => {
  const seen = { kept: 0, cut: 0, filtered: 0 }
  fc.assert(
    fc.property(anySchema.object, anyValue.map, (schema, properties) => {
      const before = structuredClone(properties)
      const { judge } = open(schema, 'omit')
      const verdict = judge(properties)
      expect(properties).toEqual(before)
      if (verdict === null) {
        expect(keeps(schema, properties)).toBe(true)
        seen.kept += 1
      } else if ('properties' in verdict) {
        expect(keeps(schema, verdict.properties)).toBe(true)
        expect(isPartOf(verdict.properties, properties)).toBe(true)
        expect(judge(verdict.properties)).toBeNull()
        seen.cut += 1
      } else {
        expect(keeps(schema, properties)).toBe(false)
        seen.filtered += 1
      }
    }),
    { numRuns: 250 },
  )
  for (const [outcome, amount] of Object.entries(seen)) expect(amount, outcome).toBeGreaterThan(0)
}, 240_000)

test('block filters exactly what breaks the schema, report nothing; all modes count the same', () => {
  fc.assert(
    fc.property(anySchema.object, anyValue.map, (schema, properties) => {
      const isKept = keeps(schema, properties)
      const [block, omit, report] = (['block', 'omit', 'report'] as const).map((mode) =>
        open(schema, mode),
      ) as [Opened, Opened, Opened]
      expect(block.judge(properties)).toEqual(isKept ? null : { filtered: 'plan_violated' })
      expect(report.judge(properties)).toBeNull()
      omit.judge(properties)
      expect(block.broken.length > 0).toBe(!isKept)
      expect(omit.broken).toEqual(block.broken)
      expect(report.broken).toEqual(block.broken)
    }),
    { numRuns: 120 },
  )
}, 240_000)

test('what is counted tells names and keywords, never a value', () => {
  const secret = 'whoever reads this knows too much'
  const anySecret = fc.letrec<{ value: Json }>((tie) => ({
    value: fc.oneof(
      { maxDepth: 3 },
      fc.constant(secret),
      fc.array(tie('value'), { maxLength: 3 }),
      fc.dictionary(anyName, tie('value'), { maxKeys: 4 }),
    ),
  })).value
  let told = 0
  fc.assert(
    fc.property(
      anySchema.object,
      fc.dictionary(anyName, anySecret, { maxKeys: 4 }),
      (schema, properties) => {
        const { judge, broken } = open(schema, 'report')
        judge(properties)
        told += broken.length
        expect(JSON.stringify(broken)).not.toContain(secret)
      },
    ),
    { numRuns: 150 },
  )
  expect(told).toBeGreaterThan(50)
}, 240_000)
