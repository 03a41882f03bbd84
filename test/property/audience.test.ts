// The engine as a whole against the naive evaluator: one history at a time for many audiences and computed
// traits, some there from the start and some filled in later, with restarts, repeats and edits. At every
// sync what all have and what was told is what the definitions say.
import fc from 'fast-check'
import { test } from 'vitest'
import { cloneDatabase } from '../support/database.ts'
import { lineScene, playLine } from './audience-line.ts'

const { pool } = await cloneDatabase()

/** audience.system.test.ts plays many more. */
const [traits, audiences] = [8, 32]
const numRuns = 4

test(`P1 P2 P5 P6 P8: ${numRuns} histories of ${traits + audiences} audiences and traits are told as the naive evaluator says`, async () => {
  await fc.assert(
    fc.asyncProperty(lineScene(traits, audiences), (scene) => playLine(pool, scene)),
    { numRuns, endOnFailure: true },
  )
}, 300_000)

test('P4: a history in three partitions, read by two projectors, is told the same', async () => {
  await fc.assert(
    fc.asyncProperty(lineScene(traits, audiences, 3), (scene) => playLine(pool, scene)),
    { numRuns: 2, endOnFailure: true },
  )
}, 300_000)
