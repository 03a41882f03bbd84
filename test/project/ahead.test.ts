// Batches that are decided while the one before is written, when writing fails: what they come to is what one
// large batch comes to.
import { Writable } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import pino from 'pino'
import { expect, test } from 'vitest'
import type { Pool } from '../../src/postgres/sql.ts'
import { cloneDatabase } from '../support/database.ts'
import { seed } from '../support/seed.ts'
import { seeded } from '../support/seeded.ts'
import { aRig, audience, performed, type Rig, type Sent } from './rig.ts'

const { pool } = await cloneDatabase()
const onePartition = { calls: 1, 'calls.import': 1, outbound: 1, 'outbound.replay': 1 } as const
const audiences = [
  audience(1, performed('gte', 3)),
  audience(2, performed('eq', 2)),
  audience(3, { trait: 'plan', op: 'eq', value: 'gold' }),
]

/** Few users, so that each batch goes on with users of the one before, some of whom that one made. */
const callsOf = (random: () => number, count: number): readonly Sent[] => {
  const pick = (most: number) => Math.floor(random() * most)
  return Array.from({ length: count }, (_, at): Sent => {
    const messageId = `ahead-${at}`
    // Ever new ones come; now and then a call comes twice.
    const userId = `u${Math.max(0, Math.floor(at / 6) - pick(8))}`
    const kind = random()
    if (kind < 0.7) return { messageId: kind < 0.05 ? `ahead-${at - 3}` : messageId, userId }
    if (kind < 0.8) return { messageId, anonymousId: `a${pick(20)}` }
    if (kind < 0.9) {
      const traits = { plan: random() < 0.5 ? 'gold' : 'free' }
      return { messageId, type: 'identify', userId, traits }
    }
    if (kind < 0.96) return { messageId, type: 'identify', userId, anonymousId: `a${pick(20)}` }
    return { messageId, type: 'group', userId, groupId: `g${pick(3)}` }
  })
}

const stored = async () => {
  const { rows } = await pool.query<{ said: string }>(
    `select 'user ' || coalesce(user_id, '') || ' ' || encode(st, 'hex') as said
       from ustate where merged_into is null
     union all
     select 'member ' || audience_id || ' ' || coalesce(user_id, '') from membership where cur
     union all
     select 'known ' || kind || ' ' || value from identity
     union all
     select 'usage ' || type || ' ' || sum(calls) from usage_call group by type
     order by 1`,
  )
  return rows.map(({ said }) => said)
}

type Told = { readonly msg: string; readonly reason?: string; readonly ahead?: boolean }

type Project = Partial<Parameters<Rig['start']>[0]>

const projected = async (calls: readonly Sent[], over: Project) => {
  const rig = await aRig(pool, audiences, onePartition)
  // States name their leaves by id.
  await pool.query('alter table leaf alter column id restart')
  const before = rig.start()
  await rig.built()
  await before.stop()
  await rig.send(...calls)
  const project = rig.start(over)
  await Promise.race([rig.caughtUp(), project.done])
  await project.stop()
  return stored()
}

const refused = () => Object.assign(new Error('could not serialize'), { code: '40001' })
const cut = () => Object.assign(new Error('connection reset'), { code: 'ECONNRESET' })

const wellAtFirst = 5

/** Of transactions that move positions some are refused, and of some that are written the answer is lost. */
const troubled = (random: () => number, writes = { begun: 0 }): Pool => ({
  ...pool,
  transaction: async (work, options) => {
    if (options?.idleMs === undefined) return pool.transaction(work, options)
    writes.begun += 1
    const fate = writes.begun <= wellAtFirst ? 1 : random()
    await sleep(random() * 4)
    const done = await pool.transaction(async (tx) => {
      const made = await work(tx)
      if (fate < 0.2) throw refused()
      return made
    }, options)
    if (fate < 0.35) throw cut()
    return done
  },
})

test('batches decided ahead come to the same however often writing one fails', async () => {
  const random = seeded(seed)
  const calls = callsOf(random, 400)
  const expected = await projected(calls, {})
  const lines: string[] = []
  const out = new Writable({
    write: (chunk, _, next) => {
      lines.push(String(chunk))
      next()
    },
  })
  const found = await projected(calls, {
    pool: troubled(random),
    logger: pino({ level: 'debug' }, out),
    limits: { batchCallsMax: 12, queueCallsMax: 48 },
  })
  expect(found).toEqual(expected)
  const told = lines.map((line) => JSON.parse(line) as Told)
  const reasons = new Set(told.flatMap(({ reason }) => reason ?? []))
  expect(reasons).toContain('conflict')
  expect(reasons).toContain('outage')
  const batches = told.filter(({ msg }) => msg === 'batch.projected')
  expect(batches.filter(({ ahead }) => ahead).length).toBeGreaterThanOrEqual(wellAtFirst - 1)
})
