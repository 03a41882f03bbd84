// The audiences of the project benches: 20 of mixed kinds and a computed trait, as often as wanted.
import type { Audience } from '../src/domain/configuration.ts'
import type { JsonObject } from '../src/domain/message.ts'
import { anAudience } from '../test/support/configuration.ts'

const names = ['Order Completed', 'Product Viewed', 'Product Added', 'Signed In', 'Plan Changed']

export type Wanted = {
  /** How many times 20, each with leaves of its own. */
  readonly copies: number
  /** Whether each copy has events of its own, too; otherwise every event feeds every copy. */
  readonly apart: boolean
}

export const one: Wanted = { copies: 1, apart: false }

const nameIn = (wanted: Wanted, copy: number, name: string): string =>
  wanted.apart && copy > 0 ? `${name} ${copy}` : name

/** Names of the events that feed anything. */
export const eventNames = (wanted: Wanted): readonly string[] =>
  Array.from({ length: wanted.apart ? wanted.copies : 1 }, (_, copy) =>
    names.map((name) => nameIn(wanted, copy, name)),
  ).flat()

export const audiencesOf = (wanted: Wanted): readonly Audience[] =>
  Array.from({ length: wanted.copies }, (_, copy) => copyOf(wanted, copy)).flat()

const days = (count: number) => ({ last: `${count}d` })
const hours = (count: number) => ({ last: `${count}h` })
const gte = (value: number, prop?: string): JsonObject =>
  prop === undefined ? { op: 'gte', value } : { prop, op: 'gte', value }

/** Windows differ from copy to copy, so no two share a leaf. */
const copyOf = (wanted: Wanted, copy: number): readonly Audience[] => {
  const [order, view, add, sign, change] = names.map((name) => nameIn(wanted, copy, name))
  const event = (name = '', window?: JsonObject, where?: JsonObject): JsonObject => ({
    event: { name, ...(window && { window }), ...(where && { where }) },
  })
  const [quarter, month] = [days(90 - copy), days(30 - copy)]
  const ordered = event(order, quarter)
  const spent = event(order, month)
  const viewedOn = event(view, month)
  const added = event(add, quarter)
  const signed = event(sign, hours(36 - copy))
  const changed = event(change, undefined, { prop: 'price', ...gte(copy) })
  const lastPlan = (op: string, value: string) => ({
    ...event(change, days(365 - copy)),
    last: { prop: 'plan', op, value },
  })
  const sequence = (window: JsonObject, then: string, settle: string): JsonObject => ({
    sequence: {
      ...{ window, settle },
      steps: [
        { event: { name: add as string }, as: 'a' },
        {
          event: { name: order as string, where: { prop: 'cart', op: 'eq', ref: 'a.prop.cart' } },
          ...{ then, within: '1d' },
        },
      ],
    },
  })
  const conditions: readonly JsonObject[] = [
    { ...ordered, count: gte(2) },
    { ...spent, sum: gte(200, 'price') },
    { not: { ...ordered, count: gte(1) } },
    {
      all: [
        { ...ordered, count: gte(4) },
        { ...spent, sum: gte(100, 'price') },
      ],
    },
    { ...viewedOn, distinct_days: gte(3) },
    { ...event(view, month, { prop: 'price', ...gte(50 + copy) }), count: gte(2) },
    {
      ...event(view, { calendar_days: 7 + copy, timezone: 'Europe/Dublin' }),
      count: gte(1),
    },
    {
      any: [
        { ...viewedOn, distinct_days: gte(5) },
        { ...event(view, quarter), avg: gte(110, 'price') },
      ],
    },
    sequence(hours(7 * 24 - copy), 'did_not', 'after_deadline'),
    sequence(month, 'did', 'immediate'),
    { ...added, count: gte(2) },
    {
      all: [
        { ...added, count: gte(1) },
        { ...event(add, { between_ago: ['1d', `${30 - copy}d`] }), sum: gte(2, 'quantity') },
      ],
    },
    { ...signed, count: gte(2) },
    { ...event(sign, quarter), distinct_days: gte(10) },
    {
      all: [
        { trait: 'plan', op: 'eq', value: 'gold' },
        { ...signed, count: gte(1) },
      ],
    },
    { all: [{ audience: `audience_${copy}_1`, in: true }, { not: { ...signed, count: gte(1) } }] },
    lastPlan('eq', 'gold'),
    { ...changed, count: gte(1) },
    { all: [{ computed: `best_order_${copy}`, ...gte(120) }, lastPlan('neq', 'free')] },
    {
      all: [
        {
          compare: [
            { ...event(view, quarter), count: {} },
            { ...ordered, count: {} },
          ],
          op: 'gt',
        },
        { ...changed, count: gte(1) },
      ],
    },
  ]
  const best: JsonObject = { ...ordered, max: { prop: 'price' } }
  return [
    ...conditions.map((condition, at) =>
      entry('audience', { copy, at: at + 1, key: `audience_${copy}_${at + 1}`, condition }),
    ),
    entry('trait', { copy, at: 0, key: `best_order_${copy}`, condition: best }),
  ]
}

const idsOfCopy = 100

type Entry = {
  readonly copy: number
  readonly at: number
  readonly key: string
  readonly condition: JsonObject
}

const entry = (kind: Audience['kind'], { copy, at, key, condition }: Entry): Audience =>
  anAudience({ id: copy * idsOfCopy + at + 1, kind, key, name: key, condition })
