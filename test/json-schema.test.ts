// JSON Schemas of operators: what is obeyed, what is refused, and what must not take for ever.
import { expect, test } from 'vitest'
import type { Json, JsonObject } from '../src/domain/message.ts'
import { compileSchema, schemaLimits } from '../src/json-schema.ts'

const compiled = (schema: JsonObject) => {
  const result = compileSchema(schema)
  if ('problem' in result) throw new Error(result.problem)
  return result.check
}

const brokenBy = (schema: JsonObject, value: Json) =>
  compiled(schema)(value)?.map(({ instancePath, keyword }) => `${instancePath} ${keyword}`) ?? []

test('everything a value breaks is told, in the draft that the schema names', () => {
  const schema = { properties: { a: { type: 'number' }, b: { prefixItems: [{ const: 1 }] } } }
  expect(brokenBy(schema, { a: 'x', b: [2] })).toEqual(['/a type', '/b/0 const'])
  const seven = { ...schema, $schema: 'http://json-schema.org/draft-07/schema#' }
  expect(brokenBy(seven, { a: 'x', b: [2] })).toEqual(['/a type'])
  expect(brokenBy({ unevaluatedProperties: false }, { a: 1 })).toEqual([' unevaluatedProperties'])
})

test.each<[string, JsonObject]>([
  ['a reference to elsewhere', { $ref: 'https://example.com/schema.json' }],
  [
    'a reference to elsewhere, of a property called default',
    { properties: { default: { $ref: 'http://x/y' } } },
  ],
  ['a reference to nothing', { $ref: '#/$defs/none' }],
  ['a reference to itself', { $ref: '#' }],
  ['an id inside', { properties: { a: { $id: 'b' } } }],
  ['an asynchronous schema', { $async: true }],
  ['an unknown type', { type: 'text' }],
  ['a pattern that is none', { pattern: '(' }],
  ['a pattern that is none with the flag u', { pattern: '\\-' }],
  ['an unknown draft', { $schema: 'http://json-schema.org/draft-04/schema#' }],
])('%s is refused with a sentence', (_, schema) => {
  expect(compileSchema(schema)).toEqual({ problem: expect.stringMatching(/\w+ \w+/) })
})

test('two schemas with the same id do not know each other', () => {
  const one = compiled({ $id: 'same', type: 'string' })
  const other = compiled({ $id: 'same', type: 'number' })
  expect([one('x'), other(1)]).toEqual([null, null])
})

test('references are followed within the schema, recursion included', () => {
  const tree = {
    $defs: { node: { properties: { in: { $ref: '#/$defs/node' }, value: { type: 'number' } } } },
    $ref: '#/$defs/node',
  }
  expect(brokenBy(tree, { in: { in: { value: 'x' } } })).toEqual(['/in/in/value type'])
})

test.each(['$ref', '$dynamicRef'])('recursion by %s that doubles gives up', (reference) => {
  const half = { properties: { in: { [reference]: '#' } } }
  const check = compiled({ allOf: [half, half] })
  const nested = (depth: number): JsonObject => (depth === 0 ? {} : { in: nested(depth - 1) })
  expect(check(nested(5))).toBeNull()
  expect(() => check(nested(60))).toThrow(RangeError)
  // The next check begins anew.
  expect(check(nested(5))).toBeNull()
})

test('definitions that double without recursion are refused', () => {
  const $defs = Object.fromEntries(
    Array.from({ length: 40 }, (_, at) => {
      const next = { $ref: `#/$defs/d${at + 1}` }
      return [`d${at}`, at === 39 ? {} : { allOf: [next, next] }]
    }),
  )
  expect(compileSchema({ $defs, $ref: '#/$defs/d0' })).toEqual({
    problem: expect.stringContaining('steps'),
  })
})

test('a text that is too long matches no pattern, and two patterns are not mistaken for one', () => {
  const schema = { properties: { a: { pattern: '^x*$' }, b: { pattern: '^y*$' } } }
  const length = schemaLimits.patternLengthMax
  expect(brokenBy(schema, { a: 'x'.repeat(length), b: 'y' })).toEqual([])
  expect(brokenBy(schema, { a: 'x'.repeat(length + 1), b: 'x' })).toEqual([
    '/a pattern',
    '/b pattern',
  ])
})

test('items are unique when none equals another, whatever the order of their keys', () => {
  const unique = { uniqueItems: true }
  for (const items of [[1, '1', true, null], [[1], [[1]]], [{ a: 1 }, [['a', 1]]], []])
    expect(brokenBy(unique, items), JSON.stringify(items)).toEqual([])
  for (const items of [
    [1, 1],
    [0, -0],
    [
      { a: 1, b: { c: 2, d: 3 } },
      { b: { d: 3, c: 2 }, a: 1 },
    ],
  ])
    expect(brokenBy(unique, items), JSON.stringify(items)).toEqual([' uniqueItems'])
  expect(brokenBy({ uniqueItems: false }, [1, 1])).toEqual([])
})

test('a hundred thousand different items are compared in a moment', { timeout: 10_000 }, () => {
  const items = Array.from({ length: 100_000 }, (_, at) => ({ at }))
  expect(brokenBy({ uniqueItems: true }, items)).toEqual([])
})

test.each<[string, readonly string[], readonly string[]]>([
  ['date', ['2024-02-29', '0001-01-01'], ['2023-02-29', '2024-13-01', '2024-1-1', 'today']],
  [
    'date-time',
    ['2024-02-29T23:59:59Z', '2024-01-01t00:00:00.123+02:00'],
    ['2023-02-29T00:00:00Z', '2024-01-01T24:00:00Z', '2024-01-01 00:00:00Z', '2024-01-01T00:00:00'],
  ],
  [
    'email',
    ['a@b', 'a.b+c@d.example'],
    ['a', '@b', 'a@', 'a b@c', 'a@b@c', `${'a'.repeat(320)}@b`],
  ],
  ['uri', ['https://example.com/a?b#c', 'urn:isbn:1'], ['example.com', '/a', 'https://a b', '']],
  ['uuid', ['123e4567-E89B-12d3-a456-426614174000'], ['123e4567e89b12d3a456426614174000', 'x']],
  ['of our own', ['anything', ''], []],
])('the format %s', (format, good, bad) => {
  for (const text of good) expect(brokenBy({ format }, text), text).toEqual([])
  for (const text of bad) expect(brokenBy({ format }, text), text).toEqual([' format'])
})

test('what every object inherits is no property', () => {
  const schema = {
    properties: { toString: { type: 'number' }, constructor: { type: 'number' } },
    required: ['valueOf'],
  }
  expect(brokenBy(schema, {})).toEqual([' required'])
  expect(brokenBy(schema, { valueOf: 1, constructor: 'x' })).toEqual(['/constructor type'])
})
