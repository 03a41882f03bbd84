// Examples of other products at work, in steps, through the whole line: whom destinations are told of at each was worked
// out by hand, and everything held and told is what the naive evaluator says.
import { expect, test } from 'vitest'
import { readConditionText, readMeasureText } from '../../src/domain/condition/text/read.ts'
import { cloneDatabase } from '../support/database.ts'
import type { Definition } from './audience-definitions.ts'
import type { Said } from './audience-history.ts'
import { openLine } from './audience-line.ts'
import { ofEvents } from './documented-events.ts'
import { type Saying, type Scenario, started, type Turn, timeline } from './documented-steps.ts'
import { ofTraits } from './documented-traits.ts'

const { pool } = await cloneDatabase()

const scenarios = [...ofTraits, ...ofEvents]
const places = Object.entries(timeline) as readonly [keyof typeof timeline, number][]

/** A measure alone is a computed trait. */
const definitionOf = ({ is }: Scenario, index: number): Definition => {
  const whole = { timezone: 'UTC', includeAnonymous: true }
  const [condition, measure] = [readConditionText(is), readMeasureText(is)]
  const [kind, read] = condition.ok ? ['audience' as const, condition] : ['trait' as const, measure]
  if (!read.ok) throw new Error(`${is}: ${JSON.stringify([condition, measure])}`)
  const key = `${kind === 'trait' ? 't' : 'a'}${index}`
  return { ...whole, kind, key, condition: read.json as unknown as Definition['condition'] }
}

/** Everybody is of one scenario alone. */
const personOf = (index: number, name: string) => `${index}-${name}`
const saidIn = (index: number, { userId, anonymousId, ...said }: Saying): Said => ({
  ...said,
  ...(userId === undefined ? {} : { userId: personOf(index, userId) }),
  ...(anonymousId === undefined ? {} : { anonymousId: personOf(index, anonymousId) }),
})

test(`${scenarios.length} documented audiences say at each step whom they gained and lost`, async () => {
  let definitions = scenarios.map(definitionOf)
  const line = await openLine(pool, { start: started, definitions })
  const quiet = { turn: 'none', forgotten: null } as const
  try {
    await line.change(0)
    for (const [at, [place, seconds]] of places.entries()) {
      const turns = scenarios.map(({ turns }): Turn => turns[place] ?? {})
      const said = turns.flatMap(({ says = [] }, index) => says.map((it) => saidIn(index, it)))
      line.advanceTo(started + seconds * 1_000)
      await line.send({ advance: { by: 0 }, said, ...quiet })
      const edited = definitions.map((it, index) => {
        const is = turns[index]?.becomes
        return is === undefined ? it : definitionOf({ about: '', is, turns: {} }, index)
      })
      if (edited.some((it, index) => it !== definitions[index])) line.define(edited)
      definitions = edited
      const told = await line.synced(at)
      for (const [index, { about }] of scenarios.entries()) {
        const { key } = definitions[index] as Definition
        const ours = told.filter((it) => it.startsWith(`${key} ${personOf(index, '')}`))
        const expected = Object.entries(turns[index]?.told ?? {}).map(
          ([name, value]) => `${key} ${personOf(index, name)} ${JSON.stringify(value)}`,
        )
        expect(ours.sort(), `${about}: ${place}`).toEqual(expected.sort())
      }
    }
  } finally {
    await line.stop()
  }
})
