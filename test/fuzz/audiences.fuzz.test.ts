// Rounds of histories, each of a seed one higher: very many of one user without a database, then a few of
// everybody through projector and sync. The first difference ends it, shrunk by fast-check.
import fc from 'fast-check'
import { test } from 'vitest'
import { lineScene, playLine } from '../property/audience-line.ts'
import { oneScene, playOne } from '../property/audience-one.ts'
import { cloneDatabase } from '../support/database.ts'
import { seed } from '../support/seed.ts'

const rounds = Number(process.env['FUZZ_ROUNDS'] ?? Number.POSITIVE_INFINITY)
const { pool } = await cloneDatabase()

/** Few enough definitions that a difference of one of them shrinks to something that can be read. */
const [traits, audiences] = [4, 12]

test(`audiences are as the naive evaluator says, from seed ${seed} on`, async () => {
  for (let round = 0; round < rounds; round++) {
    const options = { seed: seed + round, verbose: 1 } as const
    fc.assert(
      fc.property(oneScene, (scene) => playOne(scene)),
      { ...options, numRuns: 2_000 },
    )
    await fc.assert(
      fc.asyncProperty(lineScene(traits, audiences), (scene) => playLine(pool, scene)),
      { ...options, numRuns: 10 },
    )
    process.stdout.write(
      `round ${round + 1}, seed ${seed + round}: 2010 histories, no difference\n`,
    )
  }
})
