// One person's history told twice: under three ids that turn out to be one, and under the one from the start.
import fc from 'fast-check'
import { expect } from 'vitest'
import type { Pool } from '../../src/postgres/sql.ts'
import { someDefinitions } from './audience-definitions.ts'
import { type Said, type Step, saidByOne, someSteps, starts } from './audience-history.ts'
import { openLine } from './audience-line.ts'

const ids = [{ userId: 'u' }, { userId: 'before' }, { anonymousId: 'visitor' }] as const

const said: fc.Arbitrary<Said> = fc
  .tuple(
    fc.oneof(
      { weight: 6, arbitrary: saidByOne },
      fc.constantFrom('g1', 'g2').map((groupId): Said => ({ type: 'group', groupId, ago: 0 })),
    ),
    fc.constantFrom(...ids),
  )
  .map(([call, who]) => ({ ...call, ...who }))

/** Said before the step of that number, or after the last. */
const merges = fc.record({ visitor: fc.nat({ max: 8 }), before: fc.nat({ max: 8 }) })

export const relabelledScene = fc.record({
  start: fc.constantFrom(...starts),
  definitions: someDefinitions(8, 32),
  steps: someSteps(said, { min: 3, max: 7, calls: 5 }),
  merges,
})
export type RelabelledScene = typeof relabelledScene extends fc.Arbitrary<infer S> ? S : never

const joining = {
  visitor: { type: 'identify', userId: 'u', anonymousId: 'visitor', traits: {}, ago: 0 },
  before: { type: 'alias', userId: 'u', previousId: 'before', ago: 0 },
} as const satisfies Record<string, Said>

/** With what joins the ids among the calls, and ids that make equal instants come in the same order. */
const whole = ({ steps, merges: at }: RelabelledScene): readonly Step[] => {
  const joins = (step: number) =>
    (['visitor', 'before'] as const).flatMap((kind) =>
      Math.min(at[kind], steps.length) === step ? [joining[kind]] : [],
    )
  const last: Step = { advance: { by: 0 }, said: joins(steps.length) }
  const all = [
    ...steps.map((step, index) => ({ ...step, said: [...joins(index), ...step.said] })),
    last,
  ]
  let row = 0
  const named = (it: Said): Said => ({ ...it, messageId: `m${String(row++).padStart(4, '0')}` })
  return all.map((step) => ({ ...step, said: step.said.map(named) }))
}

/** As if the survivor had said it. */
const relabelled = ({ previousId: _, anonymousId: __, ...call }: Said): Said =>
  call.type === 'alias'
    ? { ...call, type: 'identify', userId: 'u', traits: {} }
    : { ...call, userId: 'u' }

const toldOf = async (
  pool: Pool,
  { start, definitions }: RelabelledScene,
  steps: readonly Step[],
): Promise<readonly string[]> => {
  const line = await openLine(pool, { start, definitions })
  try {
    await line.change(0)
    for (const step of steps) await line.send({ ...step, turn: 'none', forgotten: null })
    return await line.sync()
  } finally {
    await line.stop()
  }
}

/** Returns how much was told, the same of both. */
export const playRelabelled = async (pool: Pool, scene: RelabelledScene): Promise<number> => {
  const steps = whole(scene)
  const merged = await toldOf(pool, scene, steps)
  const one = await toldOf(
    pool,
    scene,
    steps.map((step) => ({ ...step, said: step.said.map(relabelled) })),
  )
  expect(merged).toEqual(one)
  return merged.length
}
