// Conventions no linter here can hold: where instants come from in SQL, and how long a file may be.
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'

const root = new URL('..', import.meta.url)

const tracked = (...patterns: string[]) =>
  execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard', ...patterns], {
    cwd: root,
    encoding: 'utf8',
  })
    .split('\n')
    .filter((path) => path !== '')

const textOf = (path: string) => readFileSync(new URL(path, root), 'utf8')

test('SQL gets every instant as a parameter and never asks for the time itself', () => {
  const asking =
    /(?<![.\w])(now|statement_timestamp|transaction_timestamp)\(\)(?!:)|\bcurrent_timestamp\b/i
  const files = tracked('src/*.ts', 'migrations/*.sql')
  expect(files.length).toBeGreaterThan(100)
  expect(files.filter((path) => asking.test(textOf(path)))).toEqual([])
  expect(asking.test('where due <= now()')).toBe(true)
})

test.each([
  ['src/*.ts', 300],
  ['bench/*.ts', 300],
  ['test/*.ts', 500],
])('no file of %s is longer than %i lines', (pattern, linesMax) => {
  const long = tracked(pattern).filter((path) => textOf(path).split('\n').length - 1 > linesMax)
  expect(long).toEqual([])
})

test('tests ask for folders where they are removed again', () => {
  const asking = tracked('test/*.ts').filter((path) => /mkdtemp\(join\(tmpdir/.test(textOf(path)))
  // Set-ups of whole runs, and what they start, remove their own.
  const allowed = /^test\/support\/(folder|global-setup|s3-gateway)\.ts$|setup\.ts$/
  expect(asking).toContain('test/support/folder.ts')
  expect(asking.filter((path) => !allowed.test(path))).toEqual([])
})
