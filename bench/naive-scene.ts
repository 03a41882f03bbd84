// Three months of a shop's events, and the day after, for both contenders of the naive bench.

import type { JsonObject, Message } from '../src/domain/message.ts'
import type { Codec, Entry } from '../src/log/log.ts'
import { eventNames, one } from './project-audiences.ts'
import { randomOf } from './project-people.ts'
import { trackOf } from './project-scene.ts'

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
  /** What a user did in the first days, in order. */
  byUser(days: number): (user: number) => readonly Event[]
  instant(days: number): number
}

export const openShop = (pastEvents: number): Shop => {
  const users = pastEvents / eventsOfUser
  const stepMs = (pastDays * dayMs) / pastEvents
  const firstOf = (days: number) => Math.ceil((days * dayMs) / stepMs)
  const eventOf = (number: number) => eventAt(number, users, stepMs)
  return {
    users,
    instant: (days) => start + days * dayMs,
    between: (from, until) => {
      const first = firstOf(from)
      return Array.from({ length: firstOf(until) - first }, (_, at) => eventOf(first + at))
    },
    byUser: (days) => {
      const numbers = chained(firstOf(days), users)
      return (user) => numbers(user).map(eventOf)
    },
  }
}

/** The numbers of each user's events: one chain through an array for each, from the last to the first. */
const chained = (events: number, users: number): ((user: number) => readonly number[]) => {
  const last = new Int32Array(users + 1).fill(-1)
  const before = new Int32Array(events)
  for (let number = 0; number < events; number += 1) {
    const user = userAt(number, users)
    before[number] = last[user] ?? -1
    last[user] = number
  }
  return (user) => {
    const numbers: number[] = []
    for (let number = last[user] ?? -1; number >= 0; number = before[number] ?? -1)
      numbers.push(number)
    return numbers.reverse()
  }
}

const userAt = (number: number, users: number): number =>
  1 + Math.floor(randomOf(number + 1)() * users)

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

export const traitsOf = (user: number): JsonObject => ({
  plan: traitOf(user),
  email: `user-${user}@shop.example`,
})

export const names = [...eventNames(one), 'Page Seen']

export const propertiesOf = ({ price, cart, plan }: Event): JsonObject => ({
  ...{ price, quantity: 1, cart: `cart-${cart}`, plan, currency: 'EUR' },
})

export const callsOf = (events: readonly Event[], codec: Codec<Message>): readonly Entry[] =>
  events.map((event) =>
    trackOf(event.number, {
      userId: `user-${event.user}`,
      event: names[event.name] as string,
      at: event.te,
      properties: propertiesOf(event),
      codec,
    }),
  )
