// What explain says of a user is what the projector and the sweep have recorded.
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { factsOf, findLeaves, readFolded, readUser, readWorked } from '../../src/audience/look.ts'
import { explain } from '../../src/domain/condition/explain.ts'
import { parseCondition } from '../../src/domain/condition/parse.ts'
import { aRig, audience, day, type Rig } from '../project/rig.ts'
import { cloneDatabase } from '../support/database.ts'
import { condition } from './explain-scene.ts'

const { pool } = await cloneDatabase()
const userIds = ['u1', 'u2', 'u3']

const call = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({
      type: fc.constant('track' as const),
      event: fc.constantFrom('Ordered', 'Seen'),
      userId: fc.constantFrom(...userIds),
      ago: fc.nat(4 * day),
      properties: fc.record({ p: fc.constantFrom(1, 2, 5, '3', null) }),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      type: fc.constant('identify' as const),
      userId: fc.constantFrom(...userIds),
      ago: fc.constant(0),
      traits: fc.record({
        plan: fc.constantFrom('pro', 'free', null),
        limit: fc.constantFrom(1, 2, '3'),
        ends: fc.constantFrom('2026-01-12', 'never'),
      }),
    }),
  },
)

/** [audience, user, what is said, what is recorded] where the two differ. */
const differing = async (rig: Rig, audienceIds: readonly number[]) => {
  const at = Math.max(rig.now(), await readFolded(pool))
  const find = await findLeaves(pool, 1)
  const found: unknown[] = []
  for (const value of userIds) {
    const user = await readUser(pool, { workspaceId: 1, kind: 'user', value })
    if (user === null) continue
    for (const id of audienceIds) {
      const worked = await readWorked(pool, id)
      const parsed = worked && parseCondition(worked.condition, worked)
      if (!worked || !parsed?.ok) throw new Error(`audience ${id} is not worked out`)
      const asked = { json: worked.condition, condition: parsed.condition, find, at }
      const said = explain({ ...asked, facts: factsOf(user) })?.holds
      if (said !== user.members.includes(id)) found.push([id, value, said, !said])
    }
  }
  return found
}

test('P14: whatever happened and however long ago, both say the same', async () => {
  const conditions = fc.array(condition, { minLength: 12, maxLength: 12 })
  const calls = fc.array(call, { minLength: 5, maxLength: 15 })
  await fc.assert(
    fc.asyncProperty(conditions, calls, fc.nat(3 * day), async (wanted, sent, later) => {
      const all = wanted.map((json, at) => audience(at + 1, json))
      const rig = await aRig(pool, all)
      const running = rig.start()
      try {
        for (const { ago, ...each } of sent) await rig.send({ ...each, timestamp: rig.now() - ago })
        await rig.caughtUp()
        await rig.built()
        rig.advance(later)
        await rig.sweep()
        const ids = all.map(({ id }) => id)
        expect(await differing(rig, ids)).toEqual([])
      } finally {
        await running.stop()
      }
    }),
    { numRuns: 3 },
  )
}, 120_000)
