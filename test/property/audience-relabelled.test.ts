// What the definition of a merge is: the survivor did what everyone did who turned out to be them.
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { cloneDatabase } from '../support/database.ts'
import { playRelabelled, relabelledScene } from './audience-relabelled.ts'

const { pool } = await cloneDatabase()

/** audience.system.test.ts plays many more. */
const numRuns = 5

test(`P7: in ${numRuns} histories a merge at any time is as if the survivor had said it all`, async () => {
  let told = 0
  await fc.assert(
    fc.asyncProperty(relabelledScene, async (scene) => {
      told += await playRelabelled(pool, scene)
    }),
    { numRuns, endOnFailure: true },
  )
  expect(told).toBeGreaterThan(0)
}, 300_000)
