// As many audiences as a workspace may well have, through the whole line, and as many different values as one user may
// have, both beside the naive evaluator.
import { expect, test } from 'vitest'
import { readConditionText } from '../../src/domain/condition/text/read.ts'
import { cloneDatabase } from '../support/database.ts'
import type { Definition } from './audience-definitions.ts'
import { openLine } from './audience-line.ts'
import { playDefinition } from './audience-one.ts'
import { did, has, started } from './documented-steps.ts'

const { pool } = await cloneDatabase()

const many = 1_000
const names = ['Ordered', 'Viewed', 'Signed In']

/** Of four kinds, no two the same. */
const textOf = (at: number): string => {
  const [event, number] = [names[at % 3], Math.floor(at / 4)]
  switch (at % 4) {
    case 0:
      return `event('${event}').within(${1 + number} hours).count() >= ${1 + (number % 3)}`
    case 1:
      return `trait('age') >= ${number} OR NOT trait('plan') = 'pro'`
    case 2:
      return `event('${event}').where(property('price') > ${number}).count() = 0`
    default:
      return `sequence(event('Viewed').within(${1 + number} hours), did event('Ordered') within ${1 + number} minutes)`
  }
}

const definitionOf = (text: string, at: number): Definition => {
  const read = readConditionText(text)
  if (!read.ok) throw new Error(`${text}: ${JSON.stringify(read.problems)}`)
  const whole = { kind: 'audience' as const, timezone: 'UTC', includeAnonymous: true }
  return { ...whole, key: `a${at}`, condition: read.json as unknown as Definition['condition'] }
}

test(`P1 P2: ${many} audiences of one workspace are as the naive evaluator says`, async () => {
  const definitions = Array.from({ length: many }, (_, at) => definitionOf(textOf(at), at))
  const line = await openLine(pool, { start: started, definitions })
  const quiet = { turn: 'none', forgotten: null } as const
  try {
    await line.change(0)
    const steps = ['ann', 'ben', 'cat'].map((who, at) => [
      has(who, { age: 80 * at, plan: at === 1 ? 'pro' : 'free' }),
      ...names.map((name, place) => did(who, name, { price: 60 * (at + place) })),
      did('ann', 'Viewed', { price: 200 }),
    ])
    const hours = [0, 5, 30]
    let told = 0
    for (const [at, said] of steps.entries()) {
      line.advanceTo(started + (hours[at] as number) * 3_600_000)
      await line.send({ advance: { by: 0 }, said, ...quiet })
      told += (await line.synced(at)).length
    }
    // Most of them have somebody.
    expect(told).toBeGreaterThan(many)
  } finally {
    await line.stop()
  }
}, 900_000)

test('P1 P8: 10,000 different values are told apart', () => {
  const steps = Array.from({ length: 10 }, (_, call) => {
    const list = Array.from({ length: 1_000 }, (_, place) => call * 1_000 + place)
    return { advance: { by: 3_600_000 }, said: [{ ...did('u', 'Ordered', { list }), ago: 0 }] }
  })
  const then = { advance: { by: 2 * 86_400_000 }, said: [] }
  const definition = definitionOf(
    "event('Ordered').within(2 days).distinct(property('list')) >= 10000",
    0,
  )
  const definitions = [definition]
  const scene = { start: started, isNamed: true, definitions, steps: [...steps, then] }
  playDefinition(definition, scene)
}, 900_000)
