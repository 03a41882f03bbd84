// What is read for those who are well does not wait for what becomes of the messages of those who are not.
import { expect, test } from 'vitest'
import { openMeter } from '../../src/deliver/meter.ts'
import { aDestination, aLive, to } from '../support/configuration.ts'
import { until } from '../support/until.ts'
import { useRig } from './rig.ts'

const { receiver, open, rowsOf, drained, database, lines } = await useRig()

const scene = async () => {
  const [down, well] = [await receiver(), await receiver()]
  down.reply(() => 503)
  const destinations = [
    aDestination({ id: 1, name: 'Down', webhooks: to(down.url) }),
    aDestination({ id: 2, name: 'Well', webhooks: to(well.url) }),
  ]
  const rig = open(aLive({ destinations }), { partitions: 1, limits: { claimEveryMs: 20 } })
  const meter = openMeter()
  const life = rig.start({}, 5_000, { meter })
  const paused = () =>
    meter.standing?.().partitions.find(({ name }) => name === 'calls/0')?.paused ?? null
  const hasFailed = (what: string) => lines.some(({ msg }) => msg === what)
  return { well, rig, life, paused, hasFailed }
}

test('while no parked row can be written, batch after batch reaches the destination that is well', async () => {
  const { well, rig } = await scene()
  await rig.append([rig.aCall({ userId: 'u0' })])
  await drained(rig)
  expect(await rowsOf('parked')).toHaveLength(1)

  const batches = 5
  await database.pool.transaction(async (tx) => {
    await tx.query('lock table parked in share row exclusive mode')
    for (let at = 1; at <= batches; at += 1) {
      await rig.append([rig.aCall({ userId: `u${at}` })])
      await until(() => well.requests.length === 1 + at, `batch ${at} is delivered`)
    }
  })

  await drained(rig)
  expect(await rowsOf('parked')).toHaveLength(1 + batches)
  expect(well.requests).toHaveLength(1 + batches)
})

/** Until it is allowed again, Postgres refuses to write it: not for good, as far as anybody knows. */
const refuse = async (table: string) => {
  await database.pool.query(
    `create function refuse() returns trigger language plpgsql as $$
       begin raise exception 'not now'; end $$;
     create trigger refuse before insert on ${table} for each row execute function refuse()`,
  )
  return () => database.pool.query('drop function refuse cascade')
}

test('a partition is said to wait for Postgres for as long as nothing is parked, whatever is recorded', async () => {
  const { well, rig, paused, hasFailed } = await scene()
  const allow = await refuse('parked')
  const said = new Set<string | null>()
  try {
    await rig.append([rig.aCall({ userId: 'u0' })])
    await until(() => hasFailed('desk.failed'), 'nothing can be parked')
    for (let at = 1; at <= 3; at += 1) {
      await rig.append([rig.aCall({ userId: `u${at}` })])
      await until(async () => {
        said.add(paused())
        const { rows } = await database.pool.query('select from duplicate_chunk')
        return well.requests.length === 1 + at && rows.length > at
      }, `batch ${at} is recorded and delivered`)
      said.add(paused())
    }
  } finally {
    await allow()
  }
  expect([...said]).toEqual(['postgres'])
  await drained(rig)
  expect(await rowsOf('parked')).toHaveLength(4)
  await until(() => paused() === null, 'it waits no longer')
})

test('a partition is said to wait for Postgres while nothing can be recorded, whatever is parked', async () => {
  const { rig, life, paused, hasFailed } = await scene()
  await rig.append([rig.aCall({ userId: 'u0' })])
  await drained(rig)
  expect(await rowsOf('parked')).toHaveLength(1)
  const allow = await refuse('duplicate_chunk')
  const said = new Set<string | null>()
  try {
    await rig.append([rig.aCall({ userId: 'u1' })])
    await until(() => hasFailed('postgres.away'), 'nothing can be recorded')
    let transactions = 0
    life.afterTransaction = () => {
      transactions += 1
    }
    await until(() => {
      said.add(paused())
      return transactions >= 5
    }, 'the desk goes on')
  } finally {
    await allow()
  }
  expect([...said]).toEqual(['postgres'])
  await drained(rig)
  await until(() => paused() === null, 'it waits no longer')
})
