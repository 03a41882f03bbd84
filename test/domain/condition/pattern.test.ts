import { expect, test } from 'vitest'
import { matches, type Pattern, parsePattern } from '../../../src/domain/condition/pattern.ts'

const compiled = (text: string): Pattern => {
  const pattern = parsePattern(text)
  if (typeof pattern === 'string') throw new Error(pattern)
  return pattern
}

test.each([
  ['abc', 'xabcx', true],
  ['^abc$', 'xabc', false],
  ['^abc$', 'abc', true],
  ['a.c', 'a\nc', false],
  ['a.c', 'a\u{1F600}c', true],
  ['^(cat|dog)s?$', 'dogs', true],
  ['^(?:ab)+$', 'ababab', true],
  ['^(?:ab){2,3}$', 'abab', true],
  ['^(?:ab){2,3}$', 'abababab', false],
  ['^a{2,}$', 'aaaa', true],
  ['^a{2}$', 'aaa', false],
  ['^[a-c_]+$', 'ab_c', true],
  ['[^a-c]', 'abc', false],
  ['^\\d+\\.\\d+$', '12.5', true],
  ['^\\w+@\\w+\\.\\w+$', 'a@b.org', true],
  ['\\S', ' \t\n', false],
  ['^[\\]\\-]+$', ']-', true],
  ['^[a-]+$', '-a', true],
  ['^(a*)*$', 'aaab', false],
  ['', '', true],
  ['^$', 'a', false],
  ['x|', 'y', true],
  ['^a+?$', 'aaa', true],
])('%s in %j is %s', (pattern, text, expected) => {
  expect(matches(compiled(pattern), text, false)).toBe(expected)
})

test('case is folded on request, classes included, but not where a letter becomes several', () => {
  expect(matches(compiled('^[A-Z]+é$'), 'gOLDÉ', true)).toBe(true)
  expect(matches(compiled('^[A-Z]+$'), 'gold', false)).toBe(false)
  expect(matches(compiled('^s$'), 'ß', true)).toBe(false)
})

test('time is linear in the text for patterns that make others backtrack for ever', () => {
  const pattern = compiled('^(([a-z])+.)+[A-Z]([a-z])+$')
  const time = (length: number) => {
    const text = 'a'.repeat(length)
    const start = performance.now()
    expect(matches(pattern, text, false)).toBe(false)
    return performance.now() - start
  }
  time(1_000)
  // Twice the text takes twice the time; by backtracking even 40 letters would not end.
  expect(time(20_000)).toBeLessThan(10_000)
})

test.each([
  '(a',
  'a)',
  '[a',
  '[]',
  '[b-a]',
  '*a',
  'a**',
  'a{2',
  'a{3,2}',
  '(?<n>a)',
  '\\b',
  '\\1',
  'a\\',
])('%s is refused with what was expected', (text) => {
  expect(parsePattern(text)).toMatch(/^expected /)
})
