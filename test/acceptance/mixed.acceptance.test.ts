// Eighteen months of purchases through projector and sync for twenty audiences of all kinds of conditions and
// three computed traits: every message of every sync equals the naive evaluator's. The short form syncs at
// every twentieth instant for every 240th customer, `MIXED=long` at all 4,369 for all; `MIXED_EVERY=n` takes every
// nth customer in either.
import { expect, test } from 'vitest'
import { openLine } from '../property/audience-line.ts'
import { cloneDatabase } from '../support/database.ts'
import type { Audience } from '../support/language.ts'
import { seed } from '../support/seed.ts'
import { everyInstant, expectedMessages } from './expectation.ts'
import { mixedScenario } from './mixed.ts'
import { expectedInParts } from './naive-in-parts.ts'
import { firstDay, loadPurchases } from './purchases.ts'

const isLong = process.env['MIXED'] === 'long'
/** Of the customers. */
const every = Number(process.env['MIXED_EVERY'] ?? (isLong ? 1 : 240))
const { pool } = await cloneDatabase()

test(
  'syncs of mixed audiences over eighteen months equal the naive evaluator',
  async () => {
    const { name, purchases } = loadPurchases(seed)
    const chosen = purchases.filter(({ customer }) => Number(customer) % every === 0)
    const scenario = mixedScenario(chosen)
    const { calls, definitions } = scenario
    const instants = everyInstant().filter((_, at) => isLong || at % 20 === 0)
    process.stdout.write(`purchases: ${name}, ${calls.length} calls, SEED=${seed}\n`)
    const began = performance.now()
    const expected = isLong
      ? await expectedInParts(scenario, instants, followed('parts of the naive evaluation'))
      : expectedMessages(scenario, instants)
    const naiveMs = Math.round(performance.now() - began)
    const line = await openLine(pool, { start: firstDay, definitions: definitions.map(whole) })
    const synced = followed('syncs')
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
        expect(told, `the sync at ${new Date(at).toISOString()}`).toEqual(expected[index])
        messages += told.length
        if (isLong) synced(index + 1, instants.length)
      }
    } finally {
      await line.stop()
    }
    const tookMs = Math.round(performance.now() - began)
    process.stdout.write(
      `${instants.length} syncs, ${messages} messages, ${naiveMs} ms of naive evaluation, ${tookMs} ms in all\n`,
    )
    const spokenOf = new Set(expected.flat().map((told) => told.split(' ', 1)[0]))
    expect(spokenOf.size).toBe(definitions.length)
  },
  isLong ? 172_800_000 : 1_800_000,
)

/** Prints how far it is, every hundredth of the way. */
const followed = (what: string) => (done: number, of: number) => {
  if (done % Math.ceil(of / 100) === 0) process.stdout.write(`${done} of ${of} ${what}\n`)
}

const whole = ({
  kind = 'audience',
  timezone = 'UTC',
  includeAnonymous = true,
  ...it
}: Audience) => ({
  ...it,
  kind,
  timezone,
  includeAnonymous,
})
