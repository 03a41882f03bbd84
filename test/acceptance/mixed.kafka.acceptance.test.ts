// Twenty audiences of all kinds of conditions and three computed traits on Kafka, by two processes of which one
// after the other is killed with -9: every message of every sync equals the naive evaluator's. The short form
// syncs at every 88th instant for every 240th customer, through three kills; `MIXED=long` at all 4,369 for every
// fourth (`MIXED_EVERY` sets another), through twenty.
import { expect, test } from 'vitest'
import { cloneDatabase } from '../support/database.ts'
import { seed } from '../support/seed.ts'
import { everyInstant } from './expectation.ts'
import { runOnKafka } from './kafka.ts'
import { mixedScenario } from './mixed.ts'
import { loadPurchases } from './purchases.ts'

const isLong = process.env['MIXED'] === 'long'
const every = Number(process.env['MIXED_EVERY'] ?? (isLong ? 4 : 240))
const kills = isLong ? 20 : 3
const database = await cloneDatabase()

test(`syncs of mixed audiences by two processes on Kafka equal the naive evaluator, through ${kills} kills`, async () => {
  const { name, purchases } = loadPurchases(seed)
  const chosen = purchases.filter(({ customer }) => Number(customer) % every === 0)
  const scenario = mixedScenario(chosen)
  process.stdout.write(`purchases: ${name}, ${scenario.calls.length} calls, SEED=${seed}\n`)
  const instants = everyInstant().filter((_, at) => isLong || at % 88 === 0)
  const shared = { databaseUrl: database.url, processes: 2 }
  const reached = await runOnKafka({ scenario, instants, kills, seed, shared })
  process.stdout.write(`${instants.length} syncs, ${reached.messages} messages, ${kills} kills\n`)
  expect(reached.kills).toBe(kills)
  expect(reached.told).toBe(reached.messages)
  expect(reached.messages).toBeGreaterThan(instants.length)
  expect(reached.wrong).toBe(0)
}, 10_800_000)
