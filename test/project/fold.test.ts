import { expect, test } from 'vitest'
import { loadPlan } from '../../src/audience/plan.ts'
import { readCall } from '../../src/project/call.ts'
import { openFolding, type Placed } from '../../src/project/fold.ts'
import { cloneDatabase } from '../support/database.ts'
import { aMessage, start } from './rig.ts'

const { pool } = await cloneDatabase()

test('folding gives way to the event loop, also where all calls are of one user', async () => {
  const plan = await loadPlan(pool)
  const calls = Array.from({ length: 5_000 }, (_, at): Placed => {
    const message = aMessage({ userId: 'u1' }, start)
    const call = readCall(message, plan, { sighted: [] })
    return { call, message, topic: 'calls', partition: 0, offset: BigInt(at) }
  })
  const nobody = { known: new Map(), users: new Map() }
  const folding = openFolding({ plan, ...nobody, newKey: () => 1, yieldMs: 0 })
  await folding.add(calls)
  let turns = 0
  let isOver = false
  const count = () => {
    turns += 1
    if (!isOver) setImmediate(count)
  }
  setImmediate(count)
  await folding.finish(start)
  isOver = true
  expect(turns).toBeGreaterThan(100)
})
