import { expect, test } from 'vitest'
import { type Comparison, compare, passes } from '../../../src/domain/condition/value.ts'
import type { Json } from '../../../src/domain/message.ts'

const nothingSeen = { at: 0, ref: () => undefined }

const check = (op: string, found: unknown, value?: unknown) =>
  compare({ op, value, foldCase: false } as Comparison, found as Json | undefined, nothingSeen)

const checkFolded = (op: string, found: Json, value: string) =>
  compare({ op, value, foldCase: true } as Comparison, found, nothingSeen)

test.each([undefined, null])('of %s only absent is true', (missing) => {
  const scalar = [
    'eq',
    'neq',
    'gt',
    'gte',
    'lt',
    'lte',
    'contains',
    'omits',
    'starts_with',
    'ends_with',
  ]
  const lists = ['one_of', 'none_of', 'contains_any', 'contains_all', 'contains_none']
  for (const op of scalar) expect([op, check(op, missing, 'x')]).toEqual([op, false])
  for (const op of lists) expect([op, check(op, missing, ['x'])]).toEqual([op, false])
  expect(check('exists', missing)).toBe(false)
  expect(check('absent', missing)).toBe(true)
  expect(check('exists', '')).toBe(true)
  expect(check('absent', '')).toBe(false)
})

test.each([
  ['eq', '5', 5, true],
  ['eq', '5.0', 5, true],
  ['eq', '05', 5, false],
  ['eq', '5e0', 5, false],
  ['eq', ' 5', 5, false],
  ['eq', 5, '5', false],
  ['neq', 5, '5', true],
  ['neq', 'five', 5, true],
  ['neq', '5', 5, false],
  ['eq', true, 'true', true],
  ['eq', 'false', false, true],
  ['eq', 1, true, false],
  ['gt', '10', 9, true],
  ['gt', 10, '9', true],
  ['gt', '10', '9', false],
  ['gt', 'ten', 9, false],
  ['lte', 'ten', 9, false],
  ['lt', true, 2, false],
  ['lt', '', '\u{1F600}', true],
  ['eq', 'e\u0301', '\u00e9', true],
  ['gte', [], 0, false],
  ['neq', ['a'], 'a', true],
  ['contains', 'abc', 'b', true],
  ['contains', ['abc', 1], 'b', true],
  ['omits', ['abc', 1], 'b', false],
  ['omits', 5, 'b', true],
  ['starts_with', 'abc', 'ab', true],
  ['ends_with', 'abc', 'ab', false],
  ['one_of', '5', [4, 5], true],
  ['none_of', 'x', ['y'], true],
  ['contains_any', ['a', 'b'], ['b', 'c'], true],
  ['contains_all', ['a', 'b'], ['b', 'c'], false],
  ['contains_all', ['a', 2], ['a', 2], true],
  ['contains_none', ['a'], ['b'], true],
  ['contains_none', 'a', ['b'], false],
])('%s of %j and %j is %s', (...row) => {
  const [op, found, value, expected] = row
  expect(check(op, found, value)).toBe(expected)
})

test('case is told apart unless the comparison folds it', () => {
  expect(check('eq', 'Gold', 'gOLD')).toBe(false)
  expect(checkFolded('eq', 'Gold', 'gOLD')).toBe(true)
  expect(checkFolded('starts_with', 'Gold', 'gO')).toBe(true)
})

test('paths walk own keys of objects only', () => {
  const at = (path: readonly string[]) =>
    passes({ path, comparison: { op: 'exists' } }, { a: { 'b.c': [1] } }, nothingSeen)
  expect(at(['a', 'b.c'])).toBe(true)
  expect(at(['a', 'b.c', '0'])).toBe(false)
  expect(at(['a', 'toString'])).toBe(false)
  expect(at(['__proto__'])).toBe(false)
})
