// What a start prints: everything needed to begin, and no secret that the operator gave.
import { expect, test } from 'vitest'
import { bannerOf } from '../../src/cli/banner.ts'
import { parseConfig } from '../../src/config.ts'
import type { FirstStart } from '../../src/control/first-start.ts'

const textOf = (
  over: { collectUrl?: string | null; adminUrl?: string | null; firstStart?: Partial<FirstStart> },
  env: Record<string, string> = {},
) =>
  bannerOf(
    {
      collectUrl: 'http://127.0.0.1:8080',
      adminUrl: 'http://127.0.0.1:8081',
      stop: async () => undefined,
      done: Promise.resolve(),
      ...over,
      firstStart: { created: null, writeKey: 'wk_1', token: null, ...over.firstStart },
    },
    parseConfig(env),
  ).join('\n')

test('a token made at this start is shown, also by a process without the admin role', () => {
  const firstStart = { token: 'at_made' }
  expect(textOf({ firstStart })).toContain('at_made')
  expect(textOf({ firstStart, adminUrl: null })).toContain('at_made')
})

test('a later start says where the token was printed', () => {
  expect(textOf({})).toContain('Admin token  as printed at the first start')
})

test('a token given by the operator is not shown', () => {
  const token = 'given-by-the-operator'
  const text = textOf({ firstStart: { token } }, { MILLRACE_ADMIN_TOKEN: token })
  expect(text).not.toContain(token)
  expect(text).toContain('that of MILLRACE_ADMIN_TOKEN')
})

test('the curl line has the address and the key of this start', () => {
  expect(textOf({})).toMatch(/ {2}curl .* wk_1: .*http:\/\/127\.0\.0\.1:8080\/v1\/track/)
})

test('without collection there is no line to send a call', () => {
  expect(textOf({ collectUrl: null })).not.toContain('curl')
})
