// Conditions of all kinds over two events, and the traits of one user.
import fc from 'fast-check'
import type { JsonObject } from '../../src/domain/message.ts'

const window = fc.constantFrom<object>(
  {},
  { window: { last: '1h' } },
  { window: { last: '48h' } },
  { window: { between_ago: ['24h', '72h'] } },
  { window: { after: '2026-03-27' } },
  { window: { calendar_days: 2, timezone: 'Europe/Dublin' } },
)
const event = fc
  .tuple(fc.constantFrom('Ordered', 'Seen'), window)
  .map(([name, inner]) => ({ name, ...inner }))
const order = fc.constantFrom('gt', 'gte', 'lt', 'lte', 'eq')
const leaf: fc.Arbitrary<JsonObject> = fc.oneof(
  fc
    .tuple(event, order, fc.nat(3))
    .map(([of, op, value]) => ({ event: of, count: { op, value } }) as JsonObject),
  fc
    .tuple(event, fc.constantFrom('sum', 'avg', 'min', 'max', 'last', 'distinct'), order, fc.nat(6))
    .map(
      ([of, reducer, op, value]) => ({ event: of, [reducer]: { prop: 'p', op, value } }) as never,
    ),
  fc
    .tuple(event, order)
    .map(([of, op]) => ({ event: of, count: { op, ref: 'trait:limit' } }) as JsonObject),
  fc.tuple(event, order, order, fc.nat(2)).map(
    ([of, op, within, value]) =>
      ({
        event: { ...of, where: { prop: 'p', op: within, ref: 'trait:limit' } },
        count: { op, value },
      }) as JsonObject,
  ),
  fc.tuple(event, event, order).map(([a, b, op]) => ({
    compare: [
      { event: a, sum: { prop: 'p' } },
      { event: b, count: {} },
    ],
    op,
  })),
  fc.constantFrom<JsonObject>(
    { identified: true },
    { trait: 'plan', op: 'eq', value: 'pro' },
    { trait: 'ends', op: 'within_next', value: '3d' },
    { trait: 'items[*].sku', op: 'eq', value: 'a' },
    {
      sequence: {
        window: { last: '48h' },
        settle: 'after_deadline',
        steps: [
          { event: { name: 'Seen' } },
          { event: { name: 'Ordered' }, then: 'did_not', within: '2h' },
        ],
      },
    },
  ),
)
export const condition: fc.Arbitrary<JsonObject> = fc.letrec<{ tree: JsonObject }>((tie) => ({
  tree: fc.oneof(
    { maxDepth: 3, withCrossShrink: true },
    leaf,
    fc.array(tie('tree'), { minLength: 1, maxLength: 3 }).map((all) => ({ all })),
    fc.array(tie('tree'), { minLength: 1, maxLength: 3 }).map((any) => ({ any })),
    tie('tree').map((not) => ({ not })),
  ),
})).tree
