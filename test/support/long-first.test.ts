import { globSync } from 'node:fs'
import { expect, test } from 'vitest'
import { inOrder, longest } from './long-first.ts'

test('every file that is started first is there, and named once', () => {
  const there = new Set(globSync('test/**/*.test.ts'))
  expect(longest.filter((path) => !there.has(path))).toEqual([])
  expect(new Set(longest).size).toBe(longest.length)
})

test('the longest come first, in their order, and the others stay in theirs', () => {
  const [first = '', second = ''] = longest
  const files = ['test/z.test.ts', second, 'test/a.test.ts', first]
  expect(inOrder(files, (path) => path)).toEqual([
    first,
    second,
    'test/z.test.ts',
    'test/a.test.ts',
  ])
})
