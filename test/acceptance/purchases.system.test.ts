// The acceptance in a minute, on a generated set: a few customers, every third day, through two kills.
import { expect, test } from 'vitest'
import { ownFolder } from '../support/folder.ts'
import { seed } from '../support/seed.ts'
import { runEmbedded } from './embedded.ts'
import { everyInstant, threeAudiences } from './expectation.ts'
import { generatePurchases } from './purchases.ts'

test('sampled syncs of generated purchases equal the naive evaluator, through two kills', async () => {
  process.stdout.write(`generated purchases, SEED=${seed}\n`)
  const dataDir = await ownFolder('acceptance')
  const { kills, messages, told, wrong } = await runEmbedded({
    dataDir,
    scenario: threeAudiences(generatePurchases(seed, 200)),
    instants: everyInstant().filter((_, at) => at % 24 === 0),
    kills: 2,
    seed,
  })
  expect(kills).toBe(2)
  expect(messages).toBeGreaterThan(100)
  expect(told).toBe(messages)
  expect(wrong).toBe(0)
}, 900_000)
