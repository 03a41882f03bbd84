// Whatever dies between two steps of a replay, nothing is lost and nothing is sent twice.
import { afterEach, describe, expect, test } from 'vitest'
import { loadLedger, sumLedger } from '../../src/deliver/ledger.ts'
import { Fault } from '../../src/fault.ts'
import type { Appender } from '../../src/log/log.ts'
import type { Pool } from '../../src/postgres/sql.ts'
import { aDestination, aLive, to } from '../support/configuration.ts'
import { seed } from '../support/seed.ts'
import { seeded } from '../support/seeded.ts'
import { until } from '../support/until.ts'
import { numberOf, numbersOf, useReplays } from './rig.ts'

describe('a replay that dies', async () => {
  const { receiver, open, pool, drained, startReplays, ask, found, reached } = await useReplays()
  afterEach(async () => {
    expect(sumLedger(await loadLedger(pool)).gap).toBe(0n)
  })

  const setUp = async (count: number) => {
    const hook = await receiver()
    const live = aLive({ destinations: [aDestination({ webhooks: to(hook.url) })] })
    const line = open(live, { partitions: 2, limits: { recoverEveryMs: 20, positionEveryMs: 10 } })
    const calls = Array.from({ length: count }, (_, n) => line.aCall({ userId: `u${n % 9}` }))
    await line.append(calls)
    line.start()
    await drained(line)
    hook.requests.splice(0)
    return { hook, live, line, calls }
  }

  /** As if every call of the log had been given up. */
  const bury = async (line: Parameters<typeof startReplays>[0]) => {
    for (const [partition, { end }] of (await line.log.source().bounds('calls')).entries())
      await pool.query(
        `insert into dead (topic, partition, log_offset, destination_id, message_id, type, reason, attempts, dead_at)
         select 'calls', $1, o, 1, o::text, 'track', 'expired', 1, $2 from generate_series(0, $3::int - 1) as o`,
        [partition, new Date(line.now()), Number(end)],
      )
  }

  /** Dies at the nth step of those that reach the world: after it was made, or before. */
  const mortal = (line: Parameters<typeof startReplays>[0], at: number, before: boolean) => {
    const state = { steps: 0, dead: false }
    const step = async <R>(work: () => Promise<R>): Promise<R> => {
      if (state.dead) return new Promise<never>(() => undefined)
      state.steps += 1
      const dies = state.steps === at
      if (dies && before) {
        state.dead = true
        return new Promise<never>(() => undefined)
      }
      const result = await work()
      if (dies) state.dead = true
      return state.dead ? new Promise<never>(() => undefined) : result
    }
    const appender: Pick<Appender, 'append'> = line.log.appender()
    const dying: Pool = {
      ...pool,
      query: (text, values) => step(() => pool.query(text, values)),
      transaction: (work, options) => step(() => pool.transaction(work, options)),
      // Its lock goes with its session, as a killed process's would.
      connect: (use) =>
        pool.connect(
          (seat) =>
            Promise.race([
              use(seat),
              until(() => state.dead, 'it dies', 600_000).then(() => {
                throw new Error('connection terminated')
              }),
            ]) as ReturnType<typeof use>,
        ),
    }
    return {
      state,
      over: {
        pool: dying,
        appender: {
          append: (topic, entries) => step(() => appender.append(topic, entries)),
        } as Pick<Appender, 'append'>,
      },
    }
  }

  const random = seeded(seed)
  const places = Array.from({ length: 5 }, () => ({
    at: 1 + Math.floor(random() * 60),
    before: random() < 0.5,
    reasons: random() < 0.5 ? ['expired'] : null,
  }))
  const name = `at step $at, before: $before, of the dead: $reasons (seed ${seed})`
  test.each(places)(name, async ({ at, before, reasons }) => {
    const { hook, live, line, calls } = await setUp(120)
    if (reasons) await bury(line)
    const limits = { sliceMax: 10, pollMs: 10 } as never
    const doomed = mortal(line, at, before)
    startReplays(line, live, { ...doomed.over, limits })
    const id = await ask(line, { reasons })
    await until(async () => {
      line.setNow(line.now() + 1_000)
      return doomed.state.dead || (await found(id)).isSettled
    }, 'it dies or ends')
    startReplays(line, live, { limits })
    await reached(line, id, 'finished')
    expect(numbersOf(hook.requests).toSorted((a, b) => a - b)).toEqual(calls.map(numberOf))
    expect(await found(id)).toMatchObject({ selected: 120, sent: 120, delivered: 120 })
    const { rows } = await pool.query('select from dead where replayed_at is null')
    expect(rows).toEqual([])
  })

  test('an append that the log took and refused all the same is not sent twice', async () => {
    const { hook, live, line, calls } = await setUp(60)
    const appender = line.log.appender()
    let appends = 0
    startReplays(line, live, {
      appender: {
        append: async (topic, entries) => {
          const placed = await appender.append(topic, entries)
          appends += 1
          if (appends % 2 === 1)
            throw new Fault('log_unavailable', 'no answer came', { retriable: true })
          return placed
        },
      },
      limits: { sliceMax: 10 } as never,
    })
    const id = await ask(line)
    await reached(line, id, 'finished')
    expect(appends).toBeGreaterThan(10)
    expect(numbersOf(hook.requests).toSorted((a, b) => a - b)).toEqual(calls.map(numberOf))
    const { duplicate } = sumLedger(await loadLedger(pool))
    expect(duplicate).toBe(60n)
  })

  test('two that lead at once, as a lock that was lost allows, send each call once', async () => {
    const { hook, live, line, calls } = await setUp(100)
    const unlocked: Pool = {
      ...pool,
      connect: (use) =>
        use({ ...pool, query: async () => ({ rows: [{ held: true }], rowCount: 1 }) } as never),
    }
    const limits = { sliceMax: 7 } as never
    for (let leader = 0; leader < 3; leader += 1)
      startReplays(line, live, { pool: unlocked, limits })
    const id = await ask(line)
    await reached(line, id, 'finished')
    expect(numbersOf(hook.requests).toSorted((a, b) => a - b)).toEqual(calls.map(numberOf))
    expect(await found(id)).toMatchObject({ sent: 100, delivered: 100 })
  })
})
