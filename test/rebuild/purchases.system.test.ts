import { afterAll, expect, test } from 'vitest'
import type { Running } from '../../src/running.ts'
import { loadPurchases } from '../acceptance/purchases.ts'
import { aRig, audience, day, performed, type Sent } from '../project/rig.ts'
import { cloneDatabase } from '../support/database.ts'
import { rebuilt } from './rig.ts'

const { pool, url } = await cloneDatabase()
const running: Running[] = []

afterAll(async () => {
  await Promise.all(running.map((each) => each.stop()))
})

const audiences = [
  audience(1, performed('gte', 2, '90d')),
  audience(2, performed('eq', 0)),
  audience(3, {
    event: { name: 'Ordered', window: { last: '180d' } },
    sum: { prop: 'price', op: 'gte', value: 100 },
  }),
  audience(4, { event: { name: 'Ordered' }, sum: { prop: 'price' } }, { kind: 'trait' }),
]

test('eighteen months of purchases folded anew come to the same state', async () => {
  const { name, purchases } = loadPurchases(7)
  const rig = await aRig(pool, audiences)
  running.push(rig.start())
  await rig.built()
  const first = purchases[0]?.at as number
  rig.advance(first - rig.now())
  const customers = new Set<string>()
  for (let from = 0; from < 30_000; from += 1_000) {
    const calls = purchases.slice(from, from + 1_000).map(({ row, customer, at, price }): Sent => {
      customers.add(customer)
      // Every seventh customer is a visitor first, every fifth purchase comes in late.
      const late = row % 5 === 0 ? 2 * day : 0
      const who = Number(customer) % 7 === 0 ? { anonymousId: customer } : { userId: customer }
      return {
        ...who,
        messageId: `p${row}`,
        timestamp: at - late,
        receivedAt: at,
        properties: { price },
      }
    })
    const named = purchases.slice(from, from + 100).map(
      ({ customer, at, row }): Sent => ({
        type: 'identify',
        ...{ userId: customer, anonymousId: customer, messageId: `i${row}` },
        ...{ timestamp: at, receivedAt: at, traits: { last: at } },
      }),
    )
    await rig.send(...calls, ...named)
    rig.advance((purchases[Math.min(from + 1_000, purchases.length - 1)]?.at as number) - rig.now())
  }
  await rig.caughtUp()
  const found = await rebuilt(rig, url)
  expect([name, found.state, found.differences]).toEqual([name, 'swapped', []])
  expect(found.users).toBeGreaterThanOrEqual(customers.size)
}, 900_000)
