import { expect, test } from 'vitest'
import {
  expandReferences,
  type References,
  referencesOf,
} from '../../../src/domain/condition/expand.ts'
import { parseCondition } from '../../../src/domain/condition/parse.ts'
import type { JsonObject } from '../../../src/domain/message.ts'

const vip = { trait: 'tier', op: 'eq', value: 'vip' }
const spent = { event: { name: 'Order' }, sum: { prop: 'total' } }

const references: References = {
  audience: (key) => {
    const where: Record<string, JsonObject> = {
      vip,
      known_vip: { audience: 'vip', in: true },
      local: {
        all: [
          {
            event: { name: 'A', window: { calendar_days: 2 } },
            distinct_days: { op: 'gt', value: 1 },
          },
          { trait: 'on', op: 'before_date', value: '2026-01-01' },
          { event: { name: 'B', window: { after: '2026-01-01' } }, count: { op: 'gt', value: 1 } },
        ],
      },
      // Each refers twice to the next: written out they would be 2^20.
      ...Object.fromEntries(
        Array.from({ length: 20 }, (_, at) => [
          `twice${at}`,
          { any: [{ audience: `twice${at + 1}` }, { audience: `twice${at + 1}` }] },
        ]),
      ),
      twice20: vip,
    }
    const found = where[key]
    return found === undefined
      ? null
      : { where: found, timezone: 'Asia/Tokyo', includeAnonymous: key !== 'known_vip' }
  },
  computed: (key) => (key === 'spent' ? { definition: spent, timezone: 'UTC' } : null),
}

test.each<[JsonObject, JsonObject]>([
  [{ audience: 'vip' }, vip],
  [{ audience: 'vip', in: false }, { not: vip }],
  [
    { any: [{ not: { audience: 'known_vip', in: true } }] },
    { any: [{ not: { all: [{ identified: true }, vip] } }] },
  ],
  [
    { computed: 'spent', op: 'gte', value: 100 },
    { event: spent.event, sum: { prop: 'total', op: 'gte', value: 100 } },
  ],
  [
    { computed: 'spent', op: 'gt', ref: 'computed:spent' },
    { event: spent.event, sum: { prop: 'total', op: 'gt', ref: spent } },
  ],
  [
    { trait: 'limit', op: 'lt', ref: 'computed:spent' },
    { trait: 'limit', op: 'lt', ref: spent },
  ],
  [
    { event: { name: 'A' }, count: { op: 'lt', ref: 'computed:spent' } },
    { event: { name: 'A' }, count: { op: 'lt', ref: spent } },
  ],
])('%j is written out', (json, closed) => {
  const expanded = expandReferences(json, references)
  expect(expanded).toEqual({ ok: true, json: closed })
  if (expanded.ok) expect(parseCondition(expanded.json).ok).toBe(true)
})

test('what is referred to keeps its time zone', () => {
  const expanded = expandReferences({ audience: 'local' }, references)
  if (!expanded.ok) throw new Error(JSON.stringify(expanded.problems))
  const own = references.audience('local')?.where
  expect(parseCondition(expanded.json, { timezone: 'Europe/Dublin' })).toEqual(
    parseCondition(own, { timezone: 'Asia/Tokyo' }),
  )
})

test.each<[JsonObject, string, string]>([
  [{ all: [vip, { audience: 'nobody' }] }, 'all[1].audience', 'there is none "nobody"'],
  [{ not: { audience: 'vip', in: 1 } }, 'not.audience', '"in" to be true or false'],
  [{ audience: 'vip', op: 'eq' }, 'audience', '"op" is not known here'],
  [{ audience: 7 }, 'audience', 'the key of an audience'],
  [{ computed: 'nothing', op: 'gt', value: 1 }, 'computed', 'there is none "nothing"'],
  [{ trait: 'a', op: 'gt', ref: 'computed:nothing' }, 'ref', 'there is none "nothing"'],
  [
    { event: { name: 'A' }, sum: { prop: 'a', op: 'gt', ref: 'computed:nothing' } },
    'sum.ref',
    'there is none "nothing"',
  ],
  [{ audience: 'me' }, 'audience', 'me → me'],
])('%j is refused at %s', (json, path, message) => {
  const expanded = expandReferences(json, references, 'me')
  if (expanded.ok) throw new Error('was accepted')
  expect(expanded.problems).toContainEqual({ path, message: expect.stringContaining(message) })
})

test('references that multiply are refused before they are written out', () => {
  const expanded = expandReferences({ audience: 'twice0' }, references)
  expect(expanded.ok ? [] : expanded.problems.map(({ message }) => message)).toEqual([
    'expected at most 400 references, written out',
  ])
})

test('what a condition refers to is known, once each', () => {
  expect(
    referencesOf({
      any: [
        { audience: 'vip', in: false },
        { not: { audience: 'vip' } },
        { computed: 'spent', op: 'gt', ref: 'computed:other' },
        { event: { name: 'A' }, sum: { prop: 'a', op: 'gt', ref: 'computed:third' } },
        { trait: 'computed:no', op: 'eq', value: 'computed:no' },
      ],
    }),
  ).toEqual([
    { type: 'audience', key: 'vip' },
    { type: 'computed', key: 'spent' },
    { type: 'computed', key: 'other' },
    { type: 'computed', key: 'third' },
  ])
})
