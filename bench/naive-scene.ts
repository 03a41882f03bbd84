// Three months of a shop's events, and the day after, for both contenders of the naive bench.

import type { Message } from '../src/domain/message.ts'
import type { Codec, Entry } from '../src/log/log.ts'
import { eventNames, one } from './project-audiences.ts'
import { randomOf } from './project-people.ts'
import { identifyOf, trackOf } from './project-scene.ts'

export const dayMs = 86_400_000
export const pastDays = 90
const start = Date.UTC(2026, 0, 5, 1)

/** The last is one that no audience looks at. */
const shares = [0.08, 0.25, 0.12, 0.12, 0.03, 0.4]
const eventsOfUser = 10

export type Event = {
  readonly number: number
  readonly user: number
  /** By its place in `shares`. */
  readonly name: number
  /** Of no two events the same. */
  readonly te: number
  readonly price: number
  readonly cart: number
  readonly plan: 'free' | 'gold'
}

export type Shop = {
  readonly users: number
  /** Of events of so many days, counted from the first. */
  between(from: number, until: number): readonly Event[]
  instant(days: number): number
}

export const openShop = (pastEvents: number): Shop => {
  const users = pastEvents / eventsOfUser
  const stepMs = (pastDays * dayMs) / pastEvents
  return {
    users,
    instant: (days) => start + days * dayMs,
    between: (from, until) => {
      const first = Math.ceil((from * dayMs) / stepMs)
      const end = Math.ceil((until * dayMs) / stepMs)
      return Array.from({ length: end - first }, (_, at) => eventAt(first + at, users, stepMs))
    },
  }
}

const eventAt = (number: number, users: number, stepMs: number): Event => {
  const random = randomOf(number + 1)
  const user = 1 + Math.floor(random() * users)
  let left = random()
  const name = shares.findIndex((share) => {
    left -= share
    return left < 0
  })
  return {
    ...{ number, user, name: name < 0 ? shares.length - 1 : name },
    te: start + Math.floor(number * stepMs),
    price: 50 + Math.floor(random() * 100),
    cart: Math.floor(random() * 3),
    plan: random() < 0.25 ? 'free' : 'gold',
  }
}

export const traitOf = (user: number): 'free' | 'gold' => (user % 3 === 0 ? 'free' : 'gold')

const names = [...eventNames(one), 'Page Seen']

export const callsOf = (events: readonly Event[], codec: Codec<Message>): readonly Entry[] =>
  events.map(({ number, user, name, te, price, cart, plan }) =>
    trackOf(number, {
      userId: `user-${user}`,
      event: names[name] as string,
      at: te,
      properties: { price, quantity: 1, cart: `cart-${cart}`, plan, currency: 'EUR' },
      codec,
    }),
  )

/** One for each user, before anything else. */
export const traitsOf = (shop: Shop, codec: Codec<Message>): readonly Entry[] =>
  Array.from({ length: shop.users }, (_, at) => {
    const traits = { plan: traitOf(at + 1), email: `user-${at + 1}@shop.example` }
    // Numbers that no event has.
    const number = 100_000_000_000 + at
    return identifyOf(number, { userId: `user-${at + 1}`, at: start - 1, traits, codec })
  })
