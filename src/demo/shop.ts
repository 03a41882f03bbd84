// The demo's shop: customers who look around, fill carts, order or leave, as calls of a published SDK.

/** The part of @segment/analytics-node the shop uses. */
export type Sdk = {
  identify(call: { userId: string; traits: Traits }): void
  group(call: { userId: string; groupId: string; traits: Traits }): void
  page(call: { userId: string; name: string; properties: Traits }): void
  screen(call: { userId: string; name: string; properties: Traits }): void
  track(call: { userId: string; event: string; properties: Traits }): void
  alias(call: { previousId: string; userId: string }): void
}

type Traits = Readonly<Record<string, string | number>>

type Customer = {
  readonly userId: string
  readonly name: string
  cart: number
  stage: 'away' | 'looking' | 'filling'
}

export type Shop = {
  /** One customer does one thing; returns the kinds of calls it took. */
  act(): readonly CallKind[]
}

export type CallKind = 'identify' | 'group' | 'page' | 'screen' | 'track' | 'alias'

const names = [
  'Ada',
  'Ben',
  'Cleo',
  'Dov',
  'Edda',
  'Finn',
  'Gus',
  'Hana',
  'Ivo',
  'June',
  'Kit',
  'Lou',
]
const products = ['Kettle', 'Teapot', 'Lamp', 'Blanket', 'Clock', 'Chair'] as const

type Options = {
  readonly sdk: Sdk
  /** In every user id, so that a run knows its own customers from an earlier one's. */
  readonly run: string
  /** Uniform in [0, 1). */
  readonly random: () => number
}

export const openShop = ({ sdk, run, random }: Options): Shop => {
  const customers: Customer[] = names.map((name) => ({
    userId: `${name.toLowerCase()}-${run}`,
    name,
    cart: 0,
    stage: 'away',
  }))
  const pick = <T>(of: readonly T[]): T => of[Math.floor(random() * of.length)] as T
  let serial = 0
  const next = () => ({ n: ++serial })
  const arrive = (customer: Customer): readonly CallKind[] => {
    const { userId, name } = customer
    customer.stage = 'looking'
    sdk.identify({ userId, traits: { name, plan: pick(['free', 'plus']), ...next() } })
    sdk.page({ userId, name: 'Home', properties: { path: '/', ...next() } })
    if (random() > 0.3) return ['identify', 'page']
    if (random() > 0.5) {
      sdk.group({ userId, groupId: `club-${run}`, traits: { name: 'Tea Club', ...next() } })
      return ['identify', 'page', 'group']
    }
    sdk.alias({ previousId: `guest-${userId}`, userId })
    return ['identify', 'page', 'alias']
  }
  const look = (customer: Customer): readonly CallKind[] => {
    const { userId } = customer
    const product = pick(products)
    if (random() < 0.2) {
      sdk.screen({ userId, name: 'Product', properties: { product, ...next() } })
      return ['screen']
    }
    if (random() < 0.4) {
      sdk.track({ userId, event: 'Product Viewed', properties: { product, ...next() } })
      return ['track']
    }
    customer.stage = 'filling'
    customer.cart += 5 + Math.round(random() * 6_000) / 100
    sdk.track({ userId, event: 'Product Added', properties: { product, ...next() } })
    return ['track']
  }
  const decide = (customer: Customer): readonly CallKind[] => {
    if (random() < 0.35) return look(customer)
    const { userId } = customer
    const price = Math.round(customer.cart * 100) / 100
    const orders = random() < 0.7
    customer.stage = 'away'
    customer.cart = 0
    if (orders) {
      sdk.track({ userId, event: 'Order Completed', properties: { price, ...next() } })
      return ['track']
    }
    sdk.page({ userId, name: 'Goodbye', properties: { path: '/bye', ...next() } })
    return ['page']
  }
  const acts = { away: arrive, looking: look, filling: decide }
  return {
    act: () => {
      const customer = pick(customers)
      return acts[customer.stage](customer)
    },
  }
}

/** The same story every time: a linear congruential generator is random enough for a shop. */
export const seeded = (seed: number) => {
  let state = seed >>> 0
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return state / 2 ** 32
  }
}
