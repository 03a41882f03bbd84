// Eighteen months of purchases through the embedded line, synced every three hours of data time: every
// message equals the naive evaluator's, while the process is killed with -9: twenty times, or eight where it syncs less often.
// `ACCEPTANCE_EVERY=4` syncs at every fourth of these instants only, `ACCEPTANCE_CUSTOMERS=4` takes every fourth customer.
import { expect, test } from 'vitest'
import { ownFolder } from '../support/folder.ts'
import { seed } from '../support/seed.ts'
import { runEmbedded } from './embedded.ts'
import { everyInstant, threeAudiences } from './expectation.ts'
import { loadSampled } from './purchases.ts'

const every = Number(process.env['ACCEPTANCE_EVERY'] ?? 1)

const wantedKills = every === 1 ? 20 : 8

test(`every sync of eighteen months equals the naive evaluator, through ${wantedKills} kills`, async () => {
  const { name, purchases } = loadSampled(seed)
  process.stdout.write(`purchases: ${name}, SEED=${seed}\n`)
  const dataDir = await ownFolder('acceptance')
  const instants = everyInstant().filter((_, at) => at % every === 0)
  const scenario = threeAudiences(purchases)
  const run = { dataDir, scenario, instants, kills: wantedKills, seed }
  const { messages, kills, told, wrong } = await runEmbedded(run)
  process.stdout.write(`${instants.length} syncs, ${messages} messages, ${kills} kills\n`)
  expect(kills).toBe(wantedKills)
  expect(told).toBe(messages)
  expect(wrong).toBe(0)
}, 5_400_000)
