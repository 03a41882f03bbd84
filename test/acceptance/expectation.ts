// What the acceptance asks for: audiences over purchases, and what the naive evaluator says of them.

import { answerOf, isSeen } from '../oracle/oracle.ts'
import { peopleOf } from '../oracle/people.ts'
import type { Audience, Call, Json } from '../support/language.ts'
import { type Answers, changesBetween, type Told } from '../support/told.ts'
import { firstDay, type Purchase } from './purchases.ts'

export const stepMs = 3 * 3_600_000

/** Every third hour of the data's eighteen months. */
export const everyInstant = (): readonly number[] =>
  Array.from({ length: 546 * 8 + 1 }, (_, at) => firstDay + at * stepMs)

const order = { name: 'Order Completed' }

const audiences = [
  {
    name: 'Repeat Buyers',
    key: 'repeat_buyers',
    condition: { event: { ...order, window: { last: '90d' } }, count: { op: 'gte', value: 2 } },
  },
  {
    name: 'One And Gone',
    key: 'one_and_gone',
    condition: {
      all: [
        { event: order, count: { op: 'eq', value: 1 } },
        { event: { ...order, window: { last: '180d' } }, count: { op: 'eq', value: 0 } },
      ],
    },
  },
  {
    name: 'Big Order Ever',
    key: 'big_order_ever',
    condition: {
      event: { ...order, where: { prop: 'price', op: 'gte', value: 100 } },
      count: { op: 'gte', value: 1 },
    },
  },
] as const satisfies Scenario['definitions']

export const messageIdOf = ({ row }: Purchase): string => `purchase-${row}`

/** Definitions by the names they are configured under, and the calls they look at, in order of receipt. */
export type Scenario = {
  readonly definitions: readonly (Audience & { readonly name: string })[]
  readonly calls: readonly Call[]
}

/** Three audiences, and a call for each purchase. */
export const threeAudiences = (purchases: readonly Purchase[]): Scenario => ({
  definitions: audiences,
  calls: purchases.map((purchase) => ({
    type: 'track',
    messageId: messageIdOf(purchase),
    userId: purchase.customer,
    anonymousId: null,
    previousId: null,
    event: 'Order Completed',
    properties: { price: purchase.price, quantity: purchase.quantity },
    traits: {},
    timestamp: purchase.at,
    receivedAt: purchase.at,
  })),
})

/** By instant, what its sync must say; calls are received at the first instant not before them. */
export const expectedMessages = (
  scenario: Scenario,
  instants: readonly number[],
): readonly (readonly string[])[] =>
  history(scenario, instants).map((told) => told.map(line).sort())

/**
 * What the sync at each instant must say, for calls in which nobody changes identity (each has a user id,
 * none is an alias): then each person can be followed alone. No instant is skipped because nothing could
 * have changed.
 */
export const history = (
  { calls, definitions }: Scenario,
  instants: readonly number[],
): readonly (readonly Told[])[] => {
  if (calls.some(({ type, userId, anonymousId }) => type === 'alias' || !userId || anonymousId))
    throw new Error('history follows people who never change identity: use answers')
  const told: Told[][] = instants.map(() => [])
  for (const person of peopleOf(calls))
    for (const definition of definitions) {
      let before: Json | undefined
      for (const [index, at] of instants.entries()) {
        const asked = { person, at, others: definitions, zone: 'UTC' }
        const value = isSeen(person, at) ? answerOf(definition, asked, [person]) : undefined
        if (value === before) continue
        const [had, has] = [before, value].map((it) => having(person.userId as string, it))
        told[index]?.push(...changesBetween(definition, had as Answers, has as Answers))
        before = value
      }
    }
  return told
}

const having = (userId: string, value: Json | undefined): Answers =>
  new Map(value === undefined ? [] : [[userId, value]])

/** One message as a line to compare by. */
export const line = ({ userId, audience, value }: Told): string =>
  `${audience} ${userId} ${JSON.stringify(value)}`
