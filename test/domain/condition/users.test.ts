import { expect, test } from 'vitest'
import { expandReferences } from '../../../src/domain/condition/expand.ts'
import { parseCondition } from '../../../src/domain/condition/parse.ts'
import { printCondition } from '../../../src/domain/condition/text/print.ts'
import { readConditionText } from '../../../src/domain/condition/text/read.ts'
import { parseUsers } from '../../../src/domain/condition/users.ts'
import { closedCondition, definitionText, parseDefinition } from '../../../src/domain/definition.ts'
import type { JsonObject } from '../../../src/domain/message.ts'
import { anAudience } from '../../support/configuration.ts'

const utc = { timezone: 'UTC' }
const gold = { trait: 'plan', op: 'eq', value: 'gold' } as const
const about = (quantifier: string, where: JsonObject = gold): JsonObject => ({
  users: { quantifier, where },
})

test.each(['any', 'all', 'none'])('%s of the users of an account, as JSON and as text', (word) => {
  const json = about(word, { any: [gold, { not: gold }] })
  expect(parseUsers(json, utc)).toMatchObject({ ok: true, users: { quantifier: word } })
  const text = printCondition(json)
  expect(text).toBe(
    `${word.toUpperCase()} USERS (trait('plan') = 'gold' OR NOT trait('plan') = 'gold')`,
  )
  expect(readConditionText(text)).toEqual({ ok: true, json })
})

test.each([
  [about('some'), 'users.quantifier', 'expected one of "any", "all", "none"'],
  [{ users: { quantifier: 'any' } }, 'users.where', 'expected an object, but it is missing'],
  [about('any', about('any')), 'users.where.users', 'expected "users" only as the whole'],
  [{ ...about('any'), all: [] }, '', '"all" is not known here'],
])('%j is refused at %s', (json, path, message) => {
  const parsed = parseUsers(json, utc)
  expect(parsed).toMatchObject({ ok: false })
  if (!parsed.ok)
    expect(parsed.problems).toContainEqual({ path, message: expect.stringContaining(message) })
})

test('within a condition on each user it is refused', () => {
  expect(parseCondition({ all: [gold, about('any')] })).toMatchObject({
    ok: false,
    problems: [{ path: 'all[1].users' }],
  })
})

test('text that is not closed, or goes on, is refused where it is', () => {
  expect(readConditionText("ANY USERS (trait('plan') = 'gold'")).toMatchObject({ ok: false })
  expect(readConditionText("ANY (trait('plan') = 'gold')")).toMatchObject({
    ok: false,
    problems: [{ column: 5, message: 'expected "USERS", found "("' }],
  })
  expect(readConditionText('ANY USERS (identified()) AND identified()')).toMatchObject({
    ok: false,
    problems: [{ column: 26 }],
  })
})

test('references in it are written out, and nothing refers to it', () => {
  const others = new Map(
    [
      anAudience({ id: 1, key: 'golden', condition: gold }),
      anAudience({ id: 2, key: 'accounts', condition: about('any') }),
    ].map((each) => [each.key, each]),
  )
  const whole = { ...anAudience({ key: 'third', condition: about('all', { audience: 'golden' }) }) }
  expect(closedCondition(whole, others)).toEqual({ ok: true, json: about('all', gold) })
  const nested = closedCondition({ ...whole, condition: { audience: 'accounts' } }, others)
  expect(nested).toMatchObject({
    ok: false,
    problems: [{ message: expect.stringContaining('"accounts" is one of accounts') }],
  })
})

test('without anonymous users, they are no users of an account', () => {
  const whole = anAudience({ condition: about('all'), includeAnonymous: false })
  const closed = closedCondition(whole, new Map())
  const users = {
    quantifier: 'all',
    identified: true,
    where: { all: [{ identified: true }, gold] },
  }
  expect(closed).toEqual({ ok: true, json: { users } })
  if (!closed.ok) return
  const texts = [closed.json, about('all'), about('any'), gold].map((condition) => {
    const parsed = parseDefinition({ kind: 'audience', timezone: 'UTC', condition })
    if (!parsed.ok) throw new Error(JSON.stringify(parsed.problems))
    return definitionText(parsed.definition)
  })
  expect(new Set(texts).size).toBe(texts.length)
  expect(expandReferences(closed.json, { audience: () => null, computed: () => null })).toEqual(
    closed,
  )
})
