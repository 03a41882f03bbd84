import { afterEach, expect, test } from 'vitest'
import { findTraces } from '../../src/erase/traces.ts'
import type { Appender } from '../../src/log/log.ts'
import type { Pool } from '../../src/postgres/sql.ts'
import { cloneDatabase } from '../support/database.ts'
import { codec, type Erasing, openErasing, until } from './rig.ts'

const { pool } = await cloneDatabase()
let rig: Erasing | null = null

afterEach(() => rig?.stop())

/**
 * What a life does to the world, counted. At the step named it dies, before or after that is done: what is
 * open is rolled back, and nothing is done any more.
 */
const dying = (at: number, isDone: boolean, appender: Appender) => {
  let steps = 0
  let isDead = false
  const step = async <T>(work: () => Promise<T>): Promise<T> => {
    if (isDead) return new Promise<T>(() => undefined)
    steps += 1
    if (steps !== at) return work()
    // With the steps it is made of.
    if (isDone) await work()
    isDead = true
    throw new Error('killed')
  }
  const watched: Pool = {
    ...pool,
    // Looking changes nothing: dying before or after it is dying before the next step.
    query: (text, values) => {
      const look = () => pool.query(text, values) as never
      return !isDead && /^\s*select/.test(text) ? look() : step(look)
    },
    transaction: (work, options) => step(() => pool.transaction(work, options)),
  }
  const log: Appender = {
    ...appender,
    append: (topic, entries) => step(() => appender.append(topic, entries)),
  }
  const kill = () => {
    isDead = true
  }
  return { watched, log, isDead: () => isDead, kill }
}

test('killed at any step, a request ends with one notice for each it owes, and with no trace', async () => {
  for (const isDone of [false, true])
    for (let at = 1; ; at += 1) {
      rig = await openErasing(pool)
      const world = rig
      world.project()
      await world.send({ type: 'identify', userId: 'secret-u1', anonymousId: 'secret-a1' })
      await world.caughtUp()
      const id = await world.ask({ ids: [{ kind: 'anonymous', value: 'secret-a1' }] })
      const life = dying(at, isDone, world.log.appender())
      world.erase({ pool: life.watched, appender: life.log }, 100)
      const ended = async () => (await world.step(id)) === 'done'
      const advance = async () => {
        if ((await world.step(id)) === 'waiting') world.advance(10_000)
      }
      await until('the first life is over', async () => {
        await advance()
        return life.isDead() || (await ended())
      })
      const survived = !life.isDead()
      world.erase()
      world.relay()
      await until('the request is over', async () => {
        await advance()
        return ended()
      })
      await until('its notices are in the log', async () => {
        const { rows } = await pool.query('select from outbox')
        return rows.length === 0
      })
      const told = (await world.outbound()).map(({ destinationId, origin, userId }) =>
        [destinationId, origin, userId].join(' '),
      )
      expect([at, isDone, told.toSorted()]).toEqual([
        at,
        isDone,
        ['1 notice secret-u1', '2 notice secret-u1'],
      ])
      for (const trace of ['secret-u1', 'secret-a1'])
        expect(await findTraces(pool, trace)).toEqual([])
      await world.stop()
      // One that lived through it all must not take the next test's request to a log of its own.
      life.kill()
      if (survived) break
      expect(at).toBeLessThan(100)
    }
}, 900_000)

test('an order that stands in the log twice erases once', async () => {
  rig = await openErasing(pool)
  rig.project()
  await rig.send({ userId: 'u1' })
  await rig.caughtUp()
  const id = await rig.ask({ ids: [{ kind: 'user', value: 'u1' }] })
  rig.erase()
  await rig.reaches(id, 'waiting')
  await rig.send({ userId: 'u1', messageId: 'return', timestamp: rig.now() })
  await rig.caughtUp()
  const source = rig.log.source()
  const order = []
  for (const [partition, { start, end }] of (await source.bounds('calls')).entries())
    for await (const { entries } of source.read({
      topic: 'calls',
      partition,
      from: start,
      until: end,
    }))
      order.push(...entries.filter(({ value }) => isOfNoSource(value)))
  const [only] = order
  expect(order).toHaveLength(1)
  // Past the day in which it would be known for a duplicate.
  await pool.query('delete from duplicate_chunk')
  if (only) await rig.log.appender().append('calls', [{ key: only.key, value: only.value }])
  await rig.caughtUp()
  expect((await pool.query('select value from identity')).rows).toEqual([{ value: 'u1' }])
})

const isOfNoSource = (value: Uint8Array): boolean => {
  const [message] = codec.decode([value]) as readonly { readonly sourceId: number }[]
  return message?.sourceId === 0
}
