// Patterns of schemas before they are saved: those that backtrack for ever are found, ordinary ones pass.
import { expect, test } from 'vitest'
import { slowPattern } from '../../src/control/pattern.ts'
import { trackingPlanProblems } from '../../src/control/tracking-plan.ts'

test.each([
  '^(a+)+$',
  '^(\\w+\\s?)*$',
  '^(a|a)*$',
  '(x|xy?)+z',
  '^https://([a-z.]+)+/$',
  '^([0-9]+,?)*;$',
  '^(([a-z])+.)+[A-Z]([a-z])+$',
  '^\\s*(\\S+\\s*)*!$',
])('a pattern that takes for ever over some text is found: %s', (pattern) => {
  expect(slowPattern({ properties: { a: { pattern } } })).toBe(pattern)
})

test.each([
  '^[a-z0-9]+(-[a-z0-9]+)*$',
  '^\\d{4}-\\d{2}-\\d{2}$',
  '^[^@\\s]+@[^@\\s]+\\.[a-z]{2,}$',
  '^(foo|bar|baz)+$',
  '^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$',
  '^v?(0|[1-9]\\d*)\\.(0|[1-9]\\d*)\\.(0|[1-9]\\d*)(?:-[0-9A-Za-z.-]+)?$',
  '^\\p{L}+$',
  '[',
])('an ordinary pattern passes: %s', (pattern) => {
  expect(slowPattern({ items: [{ not: { pattern } }] })).toBeNull()
})

test('patterns of property names are tried as well', () => {
  expect(slowPattern({ patternProperties: { '^(a+)+$': {} } })).toBe('^(a+)+$')
})

test('a plan with such a pattern is refused, naming event and pattern', async () => {
  const events = { Ordered: { properties: { sku: { pattern: '^(a+)+$' } } } }
  const problems = await trackingPlanProblems({ mode: 'block', unplanned: 'allow', events }, '')
  expect(problems).toEqual([
    {
      code: 'tracking_plan_invalid',
      path: '/events/Ordered',
      message: expect.stringMatching(/"Ordered".*"\^\(a\+\)\+\$".*too long/),
    },
  ])
})
