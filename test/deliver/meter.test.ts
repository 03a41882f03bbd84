// What delivery tells of itself: every metric by its name, and figures that agree with what really happened.
import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import { openMetrics } from '../../src/metrics.ts'
import type { Pool } from '../../src/postgres/sql.ts'
import { aDestination, aLive, to } from '../support/configuration.ts'
import { until } from '../support/until.ts'
import { useRig } from './rig.ts'

describe('the metrics of delivery', async () => {
  const { open, receiver, drained, database } = await useRig()

  const valuesOf = async (metrics: ReturnType<typeof openMetrics>) => {
    const values = new Map<string, number>()
    for (const line of (await metrics.text()).split('\n')) {
      const [, name, value] = /^(webhook_\S+(?: \S+)*) (\S+)$/.exec(line) ?? []
      if (name !== undefined) values.set(name, Number(value))
    }
    return values
  }

  test('rounds, attempts, times, deaths and connections are counted as they happened', async () => {
    const target = await receiver()
    const line = open(aLive({ destinations: [aDestination({ webhooks: to(target.url) })] }))
    const metrics = openMetrics()
    line.start({}, 5_000, { meter: metrics.meter })
    target.reply((_, index) => (index === 3 ? 400 : 200))
    for (let n = 0; n < 6; n += 1) {
      await line.append([line.aCall({ userId: `u${n}` })])
      await drained(line)
    }
    const values = await valuesOf(metrics)
    expect(values.get('webhook_rounds_total{result="delivered"}')).toBe(5)
    expect(values.get('webhook_rounds_total{result="final"}')).toBe(1)
    expect(values.get('webhook_attempts_total{class="delivered",reason="none"}')).toBe(5)
    expect(values.get('webhook_attempts_total{class="final",reason="status_400"}')).toBe(1)
    expect(values.get('webhook_dead_total{reason="status_400"}')).toBe(1)
    expect(values.get('webhook_attempt_seconds_count{phase="total"}')).toBe(6)
    expect(values.get('webhook_attempt_seconds_bucket{phase="ttfb",le="+Inf"}')).toBe(6)
    expect(values.get('webhook_attempt_seconds_count{phase="connect"}')).toBe(
      values.get('webhook_connections_total{reused="false"}'),
    )
    const connections = ['true', 'false'].map((reused) =>
      values.get(`webhook_connections_total{reused="${reused}"}`),
    )
    expect(Number(connections[0]) + Number(connections[1])).toBe(6)
    expect(values.get('webhook_first_attempt_lag_seconds_count')).toBe(6)
    expect(values.get('webhook_end_to_end_seconds_count')).toBe(5)
    expect(values.get('webhook_breaker_state{state="closed"}')).toBe(1)
    expect(values.get('webhook_uncommitted_offsets{partition="calls/0"}')).toBe(0)
    expect(values.get('webhook_commit_metadata_bytes')).toBeGreaterThan(0)
  })

  test('lags are those of the clock, and a bucket holds what is at most its bound', async () => {
    const target = await receiver()
    const line = open(aLive({ destinations: [aDestination({ webhooks: to(target.url) })] }))
    const metrics = openMetrics()
    line.start({}, 5_000, { meter: metrics.meter })
    await line.append([line.aCall({ receivedAt: line.now() - 20_000, timestamp: line.now() })])
    await drained(line)
    const values = await valuesOf(metrics)
    expect(values.get('webhook_first_attempt_lag_seconds_bucket{le="10"}')).toBe(0)
    expect(values.get('webhook_first_attempt_lag_seconds_bucket{le="30"}')).toBe(1)
    expect(values.get('webhook_first_attempt_lag_seconds_sum')).toBeCloseTo(20)
    expect(values.get('webhook_end_to_end_seconds_bucket{le="30"}')).toBe(1)
  })

  test('one process tells the figures of all: the ledger balances, and a hole in it shows', async () => {
    const target = await receiver()
    const line = open(aLive({ destinations: [aDestination({ webhooks: to(target.url) })] }))
    const metrics = [openMetrics(), openMetrics()]
    target.reply(() => 503)
    const [first] = metrics.map(({ meter }) => line.start({ figuresEveryMs: 20 }, 5_000, { meter }))
    await line.append([line.aCall(), line.aCall()])
    await drained(line)
    line.setNow(line.now() + 60_000)
    const read = async () => {
      const all = await Promise.all(metrics.map(valuesOf))
      return all.filter((values) => values.has('webhook_ledger_gap'))
    }
    await until(async () => {
      const [values, another] = await read()
      const rows = ['temporary', 'behind_parked'].map((reason) =>
        Number(values?.get(`webhook_parked_rows{reason="${reason}"}`) ?? 0),
      )
      const oldest = Number(values?.get('webhook_parked_oldest_seconds'))
      return !another && rows.join() === '1,1' && oldest >= 60
    }, 'one process tells of two parked rows')
    const [values] = await read()
    expect(values?.get('webhook_ledger_gap')).toBe(0)
    expect(values?.get('webhook_parked_oldest_seconds')).toBe(60)
    expect(values?.get('webhook_deadline_headroom_seconds')).toBeLessThanOrEqual(14_400 - 60)
    expect(values?.has('webhook_xmin_age_seconds')).toBe(true)
    await database.pool.query("delete from parked where reason = 'behind_parked'")
    await until(async () => (await read())[0]?.get('webhook_ledger_gap') === 1)
    await first?.running.stop()
  })

  test('what is parked is counted in a fiftieth of the time, however long that takes', async () => {
    const countMs = 50
    const seen = { counts: 0, looks: 0 }
    const pool: Pool = {
      ...database.pool,
      query: (text, values) => {
        if (text.includes('pg_stat_activity')) seen.looks += 1
        return database.pool.query(text, values)
      },
      transaction: async (work, options) => {
        if (options?.isolation === 'repeatable read') {
          seen.counts += 1
          await sleep(countMs)
        }
        return database.pool.transaction(work, options)
      },
    }
    const line = open(aLive(), { pool })
    const { meter } = openMetrics()
    const began = performance.now()
    line.start({ figuresEveryMs: 5 }, 5_000, { meter })
    await until(() => seen.looks > 50, 'many looks at the figures')
    // Timers may be a little early.
    const most = 1 + Math.floor((performance.now() - began) / (48 * countMs))
    expect(seen.counts).toBeGreaterThan(0)
    expect(seen.counts).toBeLessThanOrEqual(most)
    expect(meter.figures).toMatchObject({ ledgerGap: 0, parked: [], parkedOldestSeconds: 0 })
  })
})
