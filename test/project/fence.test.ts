import { afterEach, expect, test } from 'vitest'
import type { Source } from '../../src/log/log.ts'
import type { Pool } from '../../src/postgres/sql.ts'
import type { Running } from '../../src/running.ts'
import { cloneDatabase } from '../support/database.ts'
import { mortal } from '../sync/mortal.ts'
import { aRig, audience, performed, until } from './rig.ts'

const { pool } = await cloneDatabase()
const running: Running[] = []

afterEach(async () => {
  await Promise.all(running.splice(0).map((each) => each.stop().catch(() => undefined)))
})

const users = ['u1', 'u2', 'u3', 'u4', 'u5']

const locksPositions = (text: string) =>
  text.includes('from position') || text.includes('join position')

/** Holds every `position` lock query back until released, as a long pause of the process would. */
const pausable = (real: Pool) => {
  let gate: Promise<void> = Promise.resolve()
  let waiting = 0
  const idleMs: number[] = []
  return {
    waiting: () => waiting,
    /** What the transactions that came to it allow themselves. */
    idleMsMost: () => Math.max(...idleMs),
    hold: () => {
      const held = Promise.withResolvers<void>()
      gate = held.promise
      return held.resolve
    },
    pool: {
      ...real,
      transaction: (work, options) =>
        real.transaction(async (tx) => {
          const query = async (text: string, values?: readonly unknown[]) => {
            if (locksPositions(text)) {
              waiting += 1
              // A minute, as without it, is too long for those who wait for the partitions.
              idleMs.push(options?.idleMs ?? 60_000)
              await gate
            }
            return tx.query(text, values)
          }
          return work({ ...tx, query: query as typeof tx.query })
        }, options),
    } satisfies Pool as Pool,
  }
}

test('P10: of two projectors that both hold a partition the older one writes nothing, and goes on', async () => {
  const rig = await aRig(pool, [audience(1, performed('eq', 2))])
  const slow = pausable(pool)
  // Two memberships that know nothing of each other, as before a rebalance has reached everybody.
  const stale = rig.start({ pool: slow.pool, source: rig.otherGroup('stale') })
  running.push(stale)
  await rig.built()
  await rig.send(...users.map((userId) => ({ userId })))
  await rig.caughtUp()
  const release = slow.hold()
  await rig.send(...users.map((userId) => ({ userId })))
  await until('the stale one is in its transaction', async () => slow.waiting() > 1)
  running.push(rig.start())
  await rig.caughtUp()
  expect(await rig.members(1)).toEqual(users)
  release()
  await rig.send({ userId: 'u6' }, { userId: 'u6' })
  await rig.caughtUp()
  expect(await rig.members(1)).toEqual([...users, 'u6'])
  await stale.stop()
})

test('processes that share the work, come and go, fold every call once', async () => {
  const rig = await aRig(pool, [audience(1, performed('eq', 12))])
  running.push(
    rig.start({ limits: { batchCallsMax: 5 } }),
    rig.start({ limits: { batchCallsMax: 9 } }),
  )
  await rig.built()
  for (let round = 0; round < 12; round++) {
    await rig.send(...users.map((userId) => ({ userId, anonymousId: `a${round % 4}` })))
    if (round === 4) running.push(rig.start())
    if (round === 8) await running.shift()?.stop()
  }
  await rig.caughtUp()
  expect(await rig.members(1)).toEqual(users)
})

test('an owner of before who gains late takes the epoch, and the calls are folded all the same', async () => {
  const rig = await aRig(pool, [audience(1, performed('eq', 2))])
  running.push(rig.start())
  await rig.built()
  await rig.send(...users.map((userId) => ({ userId })))
  await rig.caughtUp()
  // Its lease is long lost, its statement comes through only now: the log will never say so.
  await pool.query("update position set epoch = epoch + 1 where reader = 'project'")
  await rig.send(...users.map((userId) => ({ userId })))
  await rig.caughtUp()
  expect(await rig.members(1)).toEqual(users)
})

test('P9: killed at any await, nothing is lost and nothing counted twice', async () => {
  for (const at of [1, 7, 11, 14, 16, 18, 20, 22, 25, 28, 32, 40, 50])
    for (const when of ['before', 'after'] as const) {
      const rig = await aRig(pool, [
        audience(1, performed('eq', 2)),
        audience(2, performed('eq', 0)),
        // Its leaf keeps events by what they are compared with.
        audience(3, {
          event: { name: 'Ordered', where: { prop: 'n', op: 'eq', ref: 'trait:k' } },
          count: { op: 'eq', value: 2 },
        }),
      ])
      const orders = users.map((userId) => ({ userId, properties: { n: 1 } }))
      await rig.send(...orders)
      const source = rig.log.source()
      const dying = mortal({ pool, source, appender: rig.log.appender() }, { at, when })
      const doomed = rig.start({ pool: dying.pool, source: dying.source })
      await rig.send(
        ...orders,
        { type: 'identify', userId: 'u5', anonymousId: 'a5', traits: { k: 1 } },
        { userId: 'u7', event: 'Seen' },
      )
      await Promise.race([doomed.done.catch(() => undefined), rig.caughtUp()])
      source.vanish()
      const next = rig.start()
      await rig.caughtUp()
      await rig.built()
      expect([at, when, await rig.members(1)]).toEqual([at, when, users])
      expect([at, when, await rig.members(2)]).toEqual([at, when, ['u7']])
      expect([at, when, await rig.members(3)]).toEqual([at, when, ['u5']])
      await next.stop()
      await doomed.stop().catch(() => undefined)
    }
}, 300_000)

test('a process that stood still in a transaction until Postgres ended its session lives on', async () => {
  const rig = await aRig(pool, [audience(1, performed('eq', 1))])
  const slow = pausable(pool)
  running.push(rig.start({ pool: slow.pool }))
  await rig.built()
  const release = slow.hold()
  await rig.send(...users.map((userId) => ({ userId })))
  await until('it is in its transaction', async () => slow.waiting() > 0)
  await pool.query(
    `select pg_terminate_backend(pid) from pg_stat_activity
      where datname = current_database() and state = 'idle in transaction'`,
  )
  release()
  await rig.caughtUp()
  expect(await rig.members(1)).toEqual(users)
  expect(slow.idleMsMost()).toBeLessThanOrEqual(10_000)
})

/** Whoever is to lock positions stands still until Postgres has ended the session. */
const slowly = (real: Pool): Pool => ({
  ...real,
  transaction: (work, options) =>
    real.transaction(
      async (tx) => {
        const stand = async () => {
          const { rows } = await tx.query<{ pid: number }>('select pg_backend_pid() as pid')
          await until('Postgres has ended the session', async () => {
            const query = 'select from pg_stat_activity where pid = $1'
            return (await real.query(query, [rows[0]?.pid])).rowCount === 0
          })
        }
        const query = async (text: string, values?: readonly unknown[]) => {
          if (locksPositions(text)) await stand()
          return tx.query(text, values)
        }
        return work({ ...tx, query: query as typeof tx.query })
      },
      { ...options, idleMs: 50 },
    ),
})

test('a batch that stands still every time it is tried is given up', async () => {
  const rig = await aRig(pool, [])
  await rig.send({ userId: 'u1' })
  const doomed = rig.start({ pool: slowly(pool), limits: { replaysMax: 2 } })
  running.push(doomed)
  await expect(doomed.done).rejects.toThrow('replayed too often')
})

/** A way to Postgres that can be closed. */
const closable = (real: Pool) => {
  const state = { isClosed: false, refused: 0 }
  const pass = () => {
    if (!state.isClosed) return
    state.refused += 1
    throw Object.assign(new Error('connect refused'), { code: 'ECONNREFUSED' })
  }
  const transaction: Pool['transaction'] = async (work, options) => {
    pass()
    return real.transaction(work, options)
  }
  const query: Pool['query'] = async (text, values) => {
    pass()
    return real.query(text, values)
  }
  return { state, pool: { ...real, query, transaction } satisfies Pool as Pool }
}

test('however long Postgres is away, the batch waits for it', async () => {
  const rig = await aRig(pool, [audience(1, performed('eq', 1))])
  const way = closable(pool)
  running.push(rig.start({ pool: way.pool, limits: { replaysMax: 3 } }))
  await rig.built()
  way.state.isClosed = true
  await rig.send(...users.map((userId) => ({ userId })))
  await until('it was refused many times', async () => way.state.refused > 30)
  way.state.isClosed = false
  await rig.caughtUp()
  expect(await rig.members(1)).toEqual(users)
})

/** A stage whose way to Postgres is closed from the moment on at which it is given partitions. */
const startToGain = async (rig: Awaited<ReturnType<typeof aRig>>) => {
  const way = closable(pool)
  const real = rig.log.source()
  const source: Source = {
    ...real,
    join: (group, gained) =>
      real.join(group, (lease) => {
        way.state.isClosed = true
        return gained(lease)
      }),
  }
  const stage = rig.start({ pool: way.pool, source })
  await until('it was refused many times', async () => way.state.refused > 30)
  return { stage, way }
}

test('however long Postgres is away, a partition that is gained waits for it', async () => {
  const rig = await aRig(pool)
  await rig.send(...users.map((userId) => ({ userId })))
  const { stage, way } = await startToGain(rig)
  running.push(stage)
  way.state.isClosed = false
  await rig.caughtUp()
})

test('a stage that gains partitions while Postgres is away can be stopped', async () => {
  const rig = await aRig(pool)
  await rig.send(...users.map((userId) => ({ userId })))
  const { stage } = await startToGain(rig)
  await stage.stop()
  running.push(rig.start())
  await rig.caughtUp()
})

test('a stage that is stopped while Postgres is away leaves its batch to the next', async () => {
  const rig = await aRig(pool, [audience(1, performed('eq', 1))])
  const way = closable(pool)
  const first = rig.start({ pool: way.pool })
  await rig.built()
  way.state.isClosed = true
  await rig.send(...users.map((userId) => ({ userId })))
  await until('it was refused', async () => way.state.refused > 0)
  await first.stop()
  running.push(rig.start())
  await rig.caughtUp()
  expect(await rig.members(1)).toEqual(users)
})

test('P5: a commit whose answer is lost is not folded again', async () => {
  const rig = await aRig(pool, [audience(1, performed('eq', 1))])
  let cut = 0
  const flaky: Pool = {
    ...pool,
    transaction: async (work, options) => {
      const result = await pool.transaction(work, options)
      if (cut > 0 && cut-- === 1) throw Object.assign(new Error('reset'), { code: 'ECONNRESET' })
      return result
    },
  }
  running.push(rig.start({ pool: flaky }))
  await rig.built()
  await rig.send({ userId: 'u0', event: 'Seen' })
  await rig.caughtUp()
  await new Promise((resolve) => setTimeout(resolve, 20))
  cut = 1
  await rig.send({ userId: 'u1' })
  await until('the answer was lost', async () => cut === 0)
  await rig.send({ userId: 'u2' })
  await rig.caughtUp()
  expect(await rig.members(1)).toEqual(['u1', 'u2'])
})
