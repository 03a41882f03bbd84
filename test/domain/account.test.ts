import { expect, test } from 'vitest'
import {
  type AccountRule,
  accountOf,
  accountPasses,
  accountTurns,
} from '../../src/domain/account.ts'

const rule = (quantifier: AccountRule['quantifier'], identified = false): AccountRule => ({
  ...{ audienceId: 7, workspaceId: 1, quantifier, identified },
})

/** Users tied, those of them with a user id, and those who meet the condition. */
const counted = (tied: number, identified: number, meeting: number) => (mark: number) =>
  mark === 0 ? tied : mark === -1 ? identified : mark === 7 ? meeting : 99

test.each([
  ['any', false, [3, 2, 1], true],
  ['any', false, [3, 2, 0], false],
  ['any', false, [0, 0, 0], false],
  ['all', false, [3, 2, 3], true],
  ['all', false, [3, 2, 2], false],
  ['all', true, [3, 2, 2], true],
  ['all', false, [0, 0, 0], false],
  ['none', false, [3, 2, 0], true],
  ['none', false, [3, 2, 1], false],
  ['none', false, [0, 0, 0], false],
  ['none', true, [3, 0, 0], false],
] as const)('%s, only identified %s, of %j: %s', (...row) => {
  const [quantifier, identified, [tied, named, meeting], passes] = row
  expect(accountPasses(rule(quantifier, identified), counted(tied, named, meeting))).toBe(passes)
})

test('an account turns when any audience answers otherwise', () => {
  const rules = [rule('any'), rule('all')]
  expect(accountTurns(rules, counted(3, 0, 1), counted(4, 0, 2))).toBe(false)
  expect(accountTurns(rules, counted(3, 0, 2), counted(3, 0, 3))).toBe(true)
  expect(accountTurns(rules, counted(3, 0, 3), counted(4, 0, 3))).toBe(true)
})

test('a group call names an account, unless its id is one that names nobody', () => {
  const call = { type: 'group', groupId: 'acme', filtered: null } as const
  expect(accountOf(call)).toBe('acme')
  expect(accountOf({ ...call, groupId: 'null' })).toBeNull()
  expect(accountOf({ ...call, type: 'track' })).toBeNull()
  expect(accountOf({ ...call, filtered: 'plan' })).toBeNull()
})
