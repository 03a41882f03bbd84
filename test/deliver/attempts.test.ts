// The attempt log says what was done, whatever the texts of clients and receivers hold.
import { describe, expect, test } from 'vitest'
import { searchAttempts } from '../../src/deliver/attempt-store.ts'
import { chainOfKey } from '../../src/domain/chain.ts'
import { logKey } from '../../src/domain/message.ts'
import { aDestination, aLive, to } from '../support/configuration.ts'
import { until } from '../support/until.ts'
import { useRig } from './rig.ts'

describe('the attempt log', async () => {
  const { open, receiver, drained, database } = await useRig()

  const rowsOf = async () => {
    const filter = {
      destinationId: 1,
      url: null,
      outcome: null,
      reason: null,
      status: null,
      messageId: null,
      chains: null,
      recoveryId: null,
      isOrderSuspended: null,
      since: new Date(0),
      until: new Date('2100-01-01'),
    }
    return searchAttempts(database.pool, filter, { after: null, limit: 100 })
  }

  test('holds every column of what was done, in any text', async () => {
    const target = await receiver()
    const line = open(aLive({ destinations: [aDestination({ webhooks: to(target.url) })] }))
    const life = line.start()
    target.reply((_, index) => (index === 1 ? 400 : 200))
    const ids = ['tab\tline\n\\N', 'é😀', 'nul\0', 'x'.repeat(70_000)]
    const calls = ids.map((messageId, at) => line.aCall({ messageId, userId: `u${at}` }))
    for (const call of calls) {
      await line.append([call])
      await drained(line)
    }
    await life.running.stop()
    const rows = await rowsOf()
    const found = rows.map(({ messageId }) => messageId).sort()
    expect(found).toEqual(ids.map((id) => id.replace('\0', '\ufffd')).sort())
    const refused = rows.find(({ messageId }) => messageId === 'é😀')
    expect(refused).toMatchObject({
      topic: 'calls',
      destinationId: 1,
      attempt: 1,
      url: target.url,
      outcome: 'final',
      reason: 'status_400',
      status: 400,
      reused: true,
      isOrderSuspended: false,
      recoveryId: null,
      dnsMs: null,
    })
    const first = rows.find(({ messageId }) => messageId === ids[0])
    expect(first).toMatchObject({ outcome: 'delivered', reason: null, status: 200, reused: false })
    expect(first?.startedAt.getTime()).toBe(line.now())
    expect(first?.connectMs).toBeGreaterThanOrEqual(0)
    expect(first?.firstByteMs).toBeGreaterThan(0)
    const byVisitor = await database.pool.query(
      'select message_id from attempt where chain = any($1::bigint[])',
      [calls.map((call) => chainOfKey(logKey(call)))],
    )
    expect(byVisitor.rows).toHaveLength(ids.length)
  })

  const written = async () => {
    const { rows } = await database.pool.query<{ count: bigint }>('select count(*) from attempt')
    return Number(rows[0]?.count)
  }

  test('is written as it fills, however long until its time; the rest at the stop', async () => {
    const before = await written()
    const target = await receiver()
    const limits = { attemptEveryMs: 3_600_000 }
    const live = aLive({ destinations: [aDestination({ webhooks: to(target.url) })] })
    const line = open(live, { limits })
    const life = line.start()
    const calls = Array.from({ length: 1_000 }, (_, at) => line.aCall({ userId: `u${at}` }))
    await line.append(calls)
    await until(async () => (await written()) > before, 'a chunk that is full is written')
    await drained(line)
    await life.running.stop()
    expect(await written()).toBe(before + calls.length)
  })
})
