// Eighteen months of purchases through projector and sync for twenty audiences of all kinds of conditions and
// three computed traits: every message of every sync equals the naive evaluator's. The short form syncs at
// every twentieth instant for every 240th customer (`MIXED_EVERY` sets another), `MIXED=long` at all 4,369 for all.
import { expect, test } from 'vitest'
import { history } from '../oracle/oracle.ts'
import { openLine } from '../property/audience-line.ts'
import { cloneDatabase } from '../support/database.ts'
import { seed } from '../support/seed.ts'
import { everyInstant } from './expectation.ts'
import { callsOf, mixed } from './mixed.ts'
import { firstDay, loadPurchases } from './purchases.ts'

const isLong = process.env['MIXED'] === 'long'
/** Of the customers, in the short form. */
const every = Number(process.env['MIXED_EVERY'] ?? 240)
const { pool } = await cloneDatabase()

test('syncs of mixed audiences over eighteen months equal the naive evaluator', async () => {
  const { name, purchases } = loadPurchases(seed)
  const chosen = purchases.filter(({ customer }) => isLong || Number(customer) % every === 0)
  const calls = callsOf(chosen)
  const instants = everyInstant().filter((_, at) => isLong || at % 20 === 0)
  process.stdout.write(`purchases: ${name}, ${calls.length} calls, SEED=${seed}\n`)
  const began = performance.now()
  const expected = history(calls, mixed, instants)
  const naiveMs = Math.round(performance.now() - began)
  const line = await openLine(pool, { start: firstDay, definitions: mixed.map(whole) })
  let [messages, sent] = [0, 0]
  try {
    await line.change(0)
    for (const [index, at] of instants.entries()) {
      const until = calls.findIndex(({ receivedAt }, place) => place >= sent && receivedAt > at)
      const due = calls.slice(sent, until < 0 ? calls.length : until)
      sent += due.length
      line.advanceTo(at)
      await line.say(due)
      const told = await line.sync()
      const wanted = (expected[index] ?? []).map(
        ({ userId, audience, value }) => `${audience} ${userId} ${JSON.stringify(value)}`,
      )
      expect(told, `the sync at ${new Date(at).toISOString()}`).toEqual(wanted.sort())
      messages += told.length
    }
  } finally {
    await line.stop()
  }
  const tookMs = Math.round(performance.now() - began)
  process.stdout.write(
    `${instants.length} syncs, ${messages} messages, ${naiveMs} ms of naive evaluation, ${tookMs} ms in all\n`,
  )
  expect(new Set(expected.flat().map(({ audience }) => audience)).size).toBe(mixed.length)
}, 10_800_000)

const whole = ({
  kind = 'audience',
  timezone = 'UTC',
  includeAnonymous = true,
  ...it
}: (typeof mixed)[number]) => ({
  ...it,
  kind,
  timezone,
  includeAnonymous,
})
