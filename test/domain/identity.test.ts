import { expect, test } from 'vitest'
import { isBlocked, whoOf } from '../../src/domain/identity.ts'
import { combineTraits, traitValues, writeTraits } from '../../src/domain/traits.ts'

const call = (over: object) => ({
  type: 'track' as const,
  workspaceId: 1,
  userId: null,
  anonymousId: null,
  previousId: null,
  ...over,
})

test.each(['', '0', '000-000', '-', '-1', 'null', 'anonymous'])('%j names nobody', (value) => {
  expect(isBlocked(value)).toBe(true)
  expect(whoOf(call({ userId: value }))).toEqual({ type: 'nobody' })
})

test.each(['1', 'a0', '-2', 'Null', '0a'])('%j names somebody', (value) => {
  expect(isBlocked(value)).toBe(false)
})

test('a call is its user’s, else its anonymous visitor’s', () => {
  const both = call({ userId: 'u', anonymousId: 'a' })
  expect(whoOf(both)).toMatchObject({ type: 'one', subject: { kind: 'user', value: 'u' } })
  expect(whoOf({ ...both, userId: 'null' })).toMatchObject({ subject: { kind: 'anonymous' } })
  expect(whoOf({ ...both, type: 'identify' })).toMatchObject({
    type: 'identified',
    subject: { value: 'u' },
    anonymous: { value: 'a' },
  })
})

test('an alias to itself links nothing', () => {
  const alias = call({ type: 'alias', userId: 'u', previousId: 'p' })
  expect(whoOf(alias)).toMatchObject({ type: 'aliased', subject: { value: 'u' } })
  expect(whoOf({ ...alias, previousId: 'u' })).toMatchObject({ type: 'one' })
  expect(whoOf({ ...alias, previousId: '0' })).toMatchObject({ type: 'one' })
})

test('traits go to the newest write by effective time, receipt and message id', () => {
  const stamp = (te: number, r: number, id: string) => ({ te, r, id })
  const writes = [
    [{ a: 1, b: 1 }, stamp(1, 1, 'x')],
    [{ a: null }, stamp(2, 2, 'x')],
    [{ a: 3, b: '' }, stamp(1, 2, 'x')],
    [{ b: 4 }, stamp(1, 2, 'w')],
  ] as const
  const fold = (order: readonly number[]) =>
    order.reduce(
      (traits, at) => {
        const [written, when] = writes[at] as (typeof writes)[number]
        return writeTraits(traits, written, when)
      },
      new Map() as ReturnType<typeof writeTraits>,
    )
  for (const order of [
    [0, 1, 2, 3],
    [3, 2, 1, 0],
    [1, 3, 0, 2],
  ])
    expect(traitValues(fold(order))).toEqual({ b: '' })
  expect(traitValues(combineTraits(fold([0, 2]), fold([1, 3])))).toEqual({ b: '' })
})
