// The same eighteen months on Kafka with a schema registry, at a hundred sampled instants and through
// three kills.
import { expect, test } from 'vitest'
import { seed } from '../support/seed.ts'
import { everyInstant, threeAudiences } from './expectation.ts'
import { runOnKafka } from './kafka.ts'
import { loadSampled } from './purchases.ts'

test('a hundred sampled syncs on Kafka equal the naive evaluator, through three kills', async () => {
  const { name, purchases } = loadSampled(seed)
  process.stdout.write(`purchases: ${name}, SEED=${seed}\n`)
  const instants = everyInstant().filter((_, at) => at % 44 === 0)
  const scenario = threeAudiences(purchases)
  const { messages, kills, told, wrong } = await runOnKafka({ scenario, instants, kills: 3, seed })
  process.stdout.write(`${instants.length} syncs, ${messages} messages, ${kills} kills\n`)
  expect(instants.length).toBeGreaterThanOrEqual(100)
  expect(kills).toBe(3)
  expect(told).toBe(messages)
  expect(wrong).toBe(0)
}, 5_400_000)
