// Tracking plans in collect: what is blocked, cut out, counted and metered, and how it is answered.
import { expect, test } from 'vitest'
import type { Source } from '../../src/domain/configuration.ts'
import { defaultSourceSettings } from '../../src/domain/configuration.ts'
import type { JsonObject } from '../../src/domain/message.ts'
import type { TrackingPlan, Violation, Violations } from '../../src/domain/tracking-plan.ts'
import { startCollecting } from '../support/collecting.ts'
import { aLive, aSource } from '../support/configuration.ts'
import { noon } from '../support/receipt.ts'

const ordered = {
  type: 'object',
  properties: {
    price: { type: 'number' },
    sku: { type: 'string', pattern: '^[A-Z]+$' },
    products: {
      type: 'array',
      items: { type: 'object', properties: { price: { type: 'number' } }, required: ['id'] },
    },
  },
  required: ['price'],
  additionalProperties: false,
}

const aPlan = (over: Partial<TrackingPlan> = {}): TrackingPlan => ({
  mode: 'block',
  unplanned: 'forbid',
  events: { Ordered: ordered },
  ...over,
})

type Noted = Violation & { readonly sourceId: number; readonly at: number }

const openNotes = (): Violations & { readonly noted: Noted[] } => {
  const noted: Noted[] = []
  return {
    noted,
    add: ({ id }, broken, at) => {
      for (const one of broken) noted.push({ ...one, sourceId: id, at })
    },
  }
}

type Over = { readonly source?: Partial<Source>; readonly grandfathered?: boolean }

const start = async (plan: TrackingPlan | null, { source, grandfathered = false }: Over = {}) => {
  const notes = openNotes()
  const settings = { ...defaultSourceSettings, trackingPlan: plan }
  const live = aLive({ sources: [aSource({ settings, ...source })], grandfathered })
  const collecting = await startCollecting({ live, violations: notes })
  const track = (event: string, properties?: unknown) =>
    collecting.post('/v1/track', { userId: 'u', event, properties })
  const stored = () =>
    collecting.log.appended.map(({ message }) => {
      const { event, properties } = JSON.parse(Buffer.from(message.body).toString()) as JsonObject
      return [event, properties]
    })
  const broken = () => notes.noted.map(({ event, path, kind }) => `${event} ${path} ${kind}`)
  return { ...collecting, live, notes, track, stored, broken }
}

const accepted = { status: 200, json: { success: true } }

test('a call that keeps to the plan is stored as it came, and nothing is counted', async () => {
  for (const mode of ['block', 'omit', 'report'] as const) {
    const plan = await start(aPlan({ mode }))
    const properties = { price: 3, sku: 'A', products: [{ id: 1, price: 2 }] }
    expect(await plan.track('Ordered', properties)).toMatchObject(accepted)
    expect(plan.stored()).toEqual([['Ordered', properties]])
    expect(plan.broken()).toEqual([])
  }
})

test('block: what breaks the plan is answered as accepted, counted, and not stored', async () => {
  const plan = await start(aPlan())
  expect(await plan.track('Ordered', { price: 'dear' })).toMatchObject(accepted)
  expect(await plan.track('Ordered')).toMatchObject(accepted)
  expect(await plan.track('Shipped', {})).toMatchObject(accepted)
  expect(plan.log.appended).toEqual([])
  expect(plan.notes.noted).toEqual([
    { event: 'Ordered', path: 'properties.price', kind: 'type', sourceId: 1, at: noon },
    { event: 'Ordered', path: 'properties.price', kind: 'required', sourceId: 1, at: noon },
    { event: 'Shipped', path: 'event', kind: 'unplanned', sourceId: 1, at: noon },
  ])
})

test('omit: what breaks its schema or is not planned is cut out, and the call is kept', async () => {
  const plan = await start(aPlan({ mode: 'omit' }))
  const products = [
    { id: 1, price: 'x' },
    { id: 2, price: 2 },
  ]
  await plan.track('Ordered', { price: 3, sku: 'a1', extra: { deep: 1 }, products })
  expect(plan.stored()).toEqual([
    ['Ordered', { price: 3, products: [{ id: 1 }, { id: 2, price: 2 }] }],
  ])
  expect(plan.broken().sort()).toEqual([
    'Ordered properties.extra additionalProperties',
    'Ordered properties.products[].price type',
    'Ordered properties.sku pattern',
  ])
})

test('omit: a list whose items break goes as a whole, for the others would move', async () => {
  const plan = await start(aPlan({ mode: 'omit' }))
  await plan.track('Ordered', { price: 3, products: [{ id: 1 }, {}, 5] })
  expect(plan.stored()).toEqual([['Ordered', { price: 3 }]])
  expect(plan.broken()).toEqual([
    'Ordered properties.products[].id required',
    'Ordered properties.products[] type',
  ])
})

test('omit: an unplanned event, and a call that cutting cannot mend, are filtered', async () => {
  const plan = await start(aPlan({ mode: 'omit' }))
  expect(await plan.track('Shipped', {})).toMatchObject(accepted)
  // Cutting the price leaves one that is required and missing.
  expect(await plan.track('Ordered', { price: 'dear', sku: 'A' })).toMatchObject(accepted)
  expect(plan.log.appended).toEqual([])
})

test('report: everything is kept as it came, and counted', async () => {
  const plan = await start(aPlan({ mode: 'report' }))
  await plan.track('Ordered', { price: 'dear', extra: 1 })
  await plan.track('Shipped', { a: 1 })
  expect(plan.stored()).toEqual([
    ['Ordered', { price: 'dear', extra: 1 }],
    ['Shipped', { a: 1 }],
  ])
  expect(plan.broken().sort()).toEqual([
    'Ordered properties.extra additionalProperties',
    'Ordered properties.price type',
    'Shipped event unplanned',
  ])
})

test('where unplanned events are allowed they are not looked at', async () => {
  const plan = await start(aPlan({ unplanned: 'allow' }))
  await plan.track('Shipped', { any: 'thing' })
  expect(plan.stored()).toEqual([['Shipped', { any: 'thing' }]])
  expect(plan.broken()).toEqual([])
})

test('calls of other types are not asked', async () => {
  const plan = await start(aPlan())
  const call = { userId: 'u', traits: { price: 'dear' }, name: 'Shipped', properties: { x: 1 } }
  for (const type of ['identify', 'page', 'screen'])
    expect(await plan.post(`/v1/${type}`, call)).toMatchObject(accepted)
  expect(plan.log.appended).toHaveLength(3)
})

test('in a batch filtered calls count as accepted beside those rejected', async () => {
  const plan = await start(aPlan())
  const reply = await plan.post('/v1/batch', {
    batch: [
      { type: 'track', userId: 'u', event: 'Ordered', properties: { price: 1 } },
      { type: 'track', userId: 'u', event: 'Shipped' },
      { type: 'track', userId: 'u', messageId: 'bad' },
    ],
  })
  expect(reply).toMatchObject({ status: 200, json: { accepted: 2, rejectedCount: 1 } })
  expect(plan.stored()).toEqual([['Ordered', { price: 1 }]])
})

test('a call that is too large is rejected, whatever the plan says of it', async () => {
  const plan = await start(aPlan({ mode: 'omit' }))
  const reply = await plan.track('Ordered', { price: 1, extra: 'x'.repeat(33_000) })
  expect(reply).toMatchObject({ status: 400, json: { code: 'call_too_large' } })
  expect(plan.broken()).toEqual([])
})

test('a disabled source’s calls are neither judged nor counted', async () => {
  const plan = await start(aPlan(), { source: { enabled: false }, grandfathered: true })
  expect(await plan.track('Shipped')).toMatchObject(accepted)
  expect(plan.broken()).toEqual([])
  expect(plan.log.appended).toEqual([])
})

test('on a grandfathered plan a server source’s filtered call is appended, empty, for usage', async () => {
  const plan = await start(aPlan(), { grandfathered: true })
  await plan.track('Shipped', { secret: 1 })
  await plan.track('Ordered', { price: 'dear' })
  await plan.track('Ordered', { price: 1 })
  const [shipped, ordered, kept] = plan.log.appended.map(({ message }) => message)
  expect(shipped).toMatchObject({ event: 'Shipped', userId: 'u', filtered: 'event_not_planned' })
  expect(ordered).toMatchObject({ event: 'Ordered', filtered: 'plan_violated' })
  expect(kept).toMatchObject({ event: 'Ordered', filtered: null })
  for (const message of [shipped, ordered])
    expect(Buffer.from(message?.body ?? []).toString()).toBe('{}')
})

test('a filtered call that is metered is answered 503 when the log does not take it', async () => {
  const plan = await start(aPlan(), { grandfathered: true })
  plan.log.behave('fail')
  expect(await plan.track('Shipped')).toMatchObject({ status: 503 })
})

test.each(['web', 'mobile'] as const)(
  'on a grandfathered plan a %s source’s filtered call is not appended',
  async (sourceClass) => {
    const plan = await start(aPlan(), { source: { class: sourceClass }, grandfathered: true })
    await plan.track('Shipped')
    expect(plan.log.appended).toEqual([])
  },
)

test('a plan that changes is obeyed from the next request on', async () => {
  const plan = await start(aPlan())
  await plan.track('Ordered', { price: 'dear' })
  const put = (trackingPlan: TrackingPlan | null) =>
    plan.live.replace({
      sources: [aSource({ settings: { ...defaultSourceSettings, trackingPlan } })],
    })
  put(aPlan({ events: { Ordered: { properties: { price: { type: 'string' } } } } }))
  await plan.track('Ordered', { price: 'dear' })
  await plan.track('Ordered', { price: 1 })
  put(null)
  await plan.track('Ordered', { price: 1 })
  expect(plan.stored()).toEqual([
    ['Ordered', { price: 'dear' }],
    ['Ordered', { price: 1 }],
  ])
})

test('events and properties named like what every object has are only names', async () => {
  const events = JSON.parse(
    '{"__proto__":{"properties":{"constructor":{"type":"number"}}},"constructor":{"maxProperties":0}}',
  )
  const plan = await start(aPlan({ mode: 'omit', events }))
  expect(await plan.track('toString', { a: 1 })).toMatchObject(accepted)
  await plan.track('__proto__', { constructor: 'x', toString: 1 })
  await plan.track('constructor', { a: 1 })
  expect(plan.stored()).toEqual([['__proto__', { toString: 1 }]])
  expect(plan.broken()).toEqual([
    'toString event unplanned',
    '__proto__ properties.constructor type',
    'constructor properties maxProperties',
  ])
})

test('a schema whose references double with every level gives up instead of hanging', async () => {
  const tree = {
    anyOf: [
      { properties: { in: { $ref: '#' } }, required: ['left'] },
      { properties: { in: { $ref: '#' } }, required: ['right'] },
    ],
  }
  const plan = await start(aPlan({ events: { Tree: tree } }))
  let nested: JsonObject = {}
  for (let depth = 0; depth < 50; depth += 1) nested = { in: nested }
  expect(await plan.track('Tree', nested)).toMatchObject(accepted)
  expect(plan.broken()).toEqual(['Tree properties too_complex'])
  expect(plan.log.appended).toEqual([])
})

test('a schema that no longer compiles lets its event pass, and says so once', async () => {
  const plan = await start(aPlan({ events: { Ordered: { type: 'nonsense' } } }))
  await plan.track('Ordered', { price: 1 })
  await plan.track('Ordered', { price: 2 })
  expect(plan.stored()).toHaveLength(2)
  const told = plan.lines.filter((line) => line.includes('plan.not_compiled'))
  expect(told).toHaveLength(1)
})
