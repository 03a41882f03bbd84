import { describe, expect, test } from 'vitest'
import { checkAlerts } from '../../src/cli/doctor-alerts.ts'
import { cloneDatabase } from '../support/database.ts'

describe('the doctor, of alerts', async () => {
  const { pool } = await cloneDatabase()

  test('those that wait for long are a warning, those on their way are none', async () => {
    const now = new Date()
    const wait = (key: string, minutes: number) =>
      pool.query(
        `insert into alert_outbox (key, id, type, about, at, next_at)
         values ($1, gen_random_uuid(), 'ledger.gap', '{}', $2, $2)`,
        [key, new Date(now.getTime() - minutes * 60_000)],
      )
    expect(await checkAlerts(pool, now)).toEqual({ state: 'ok', message: 'none waits to be sent' })
    await wait('new', 1)
    expect(await checkAlerts(pool, now)).toMatchObject({ state: 'ok' })
    await wait('old', 30)
    expect(await checkAlerts(pool, now)).toMatchObject({
      state: 'warn',
      message: expect.stringMatching(
        /^2 wait to be sent, the oldest \(ledger.gap\) for 30 minutes: /,
      ),
    })
  })
})
