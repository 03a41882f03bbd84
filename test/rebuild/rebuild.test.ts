import { afterEach, expect, test } from 'vitest'
import { acceptRebuild, findRebuild } from '../../src/admin/rebuild-store.ts'
import { startRebuild } from '../../src/rebuild/rebuild.ts'
import type { Running } from '../../src/running.ts'
import { aRig, type Rig, until } from '../project/rig.ts'
import { cloneDatabase } from '../support/database.ts'
import { rebuildDeps, rebuilt, request, settled } from './rig.ts'
import { audiences, lives } from './scene.ts'

const { pool, url } = await cloneDatabase()
const running: Running[] = []

afterEach(async () => {
  await Promise.all(running.splice(0).map((each) => each.stop()))
  await pool.query(
    `update rebuild set state = 'cancelled', ended_at = 'epoch' where ended_at is null`,
  )
})

const hour = 3_600_000

/** Two processes, so that partitions are read at different paces. */
const aLine = async (): Promise<Rig> => {
  const rig = await aRig(pool, audiences)
  running.push(
    rig.start({ limits: { batchCallsMax: 25 } }),
    rig.start({ limits: { batchCallsMax: 80 } }),
  )
  await rig.built()
  return rig
}

const live = async (rig: Rig, seed: number, rounds: number) => {
  for (let round = 0; round < rounds; round++) {
    await rig.send(...lives(rig, seed + round, 40))
    rig.advance(3 * hour)
  }
  await rig.caughtUp()
}

/** What receivers were told, and what they would be told next. */
const marks = async () =>
  (
    await pool.query(
      `select audience_id as a, user_id as u, cur, synced, value, synced_value from membership
        where user_id is not null and audience_id <> 7 order by 1, 2, 3`,
    )
  ).rows

/** Of the live schema: tables with their options, indexes, constraints and generated columns, by name. */
const catalogue = async () =>
  (
    await pool.query(
      `select c.relname as name, c.relkind as kind, c.reloptions as options,
              case when c.relkind = 'i' then pg_get_indexdef(c.oid) end as index,
              (select array_agg(conname || ' ' || pg_get_constraintdef(o.oid) order by conname)
                 from pg_constraint o where o.conrelid = c.oid) as constraints,
              (select array_agg(concat_ws(' ', attname, atttypid::regtype, attnotnull, attidentity,
                                          attstorage, attcollation) order by attnum)
                 from pg_attribute a where a.attrelid = c.oid and attnum > 0 and c.relkind = 'r') as columns
         from pg_class c where c.relnamespace = 'public'::regnamespace order by c.relname`,
    )
  ).rows

/** Of each audience and trait: as its size is kept, and as its members are. */
const sizes = async () => {
  const { rows } = await pool.query<{ kept: readonly number[]; held: readonly number[] }>(
    `select array[coalesce(k.members, 0), coalesce(k.anonymous, 0)] as kept,
            array[coalesce(h.members, 0), coalesce(h.anonymous, 0)] as held
       from (select audience_id, sum(members)::int as members, sum(anonymous)::int as anonymous
               from (select * from membership_count union all select * from membership_change) c
              group by 1) k
       full join (select audience_id, count(*)::int as members,
                         (count(*) filter (where user_id is null))::int as anonymous
                    from membership where cur group by 1) h using (audience_id)
      order by audience_id`,
  )
  return { kept: rows.map(({ kept }) => kept), held: rows.map(({ held }) => held) }
}

test('folding the log anew comes to the state that live folding came to, and touches nothing', async () => {
  const rig = await aLine()
  await live(rig, 100, 4)
  const before = [await marks(), await rig.answers()]
  const found = await rebuilt(rig, url, { verifyOnly: true })
  expect(found.differences).toEqual([])
  expect([found.state, found.reason, found.differing]).toEqual(['verified', null, 0])
  expect(found.users).toBeGreaterThan(30)
  expect([await marks(), await rig.answers()]).toEqual(before)
})

test('what was rebuilt takes the place of the live state, and the line goes on', async () => {
  const rig = await aLine()
  await live(rig, 200, 3)
  await rig.sweep()
  await rig.sync()
  await live(rig, 300, 2)
  await rig.sweep()
  const [before, tables] = [await marks(), await catalogue()]
  const { rows: keys } = await pool.query('select max(user_key) as most from ustate')
  expect(await rebuilt(rig, url)).toMatchObject({ state: 'swapped', differing: 0, reason: null })
  const { rows: fresh } = await pool.query('select min(user_key) as least from ustate')
  expect(fresh[0]?.['least']).toBeGreaterThan(keys[0]?.['most'] as bigint)
  expect(await marks()).toEqual(before)
  expect(await catalogue()).toEqual(tables)
  const swapped = await sizes()
  expect(swapped.kept).toEqual(swapped.held)
  // Projectors that knew the users of before fold on.
  await live(rig, 400, 2)
  const later = await sizes()
  expect(later.kept).toEqual(later.held)
  expect(later.held).not.toEqual(swapped.held)
  expect(await rebuilt(rig, url, { verifyOnly: true })).toMatchObject({
    differences: [],
    differing: 0,
  })
})

test('a state that was damaged is told of, user by user, and replaced once that is accepted', async () => {
  const rig = await aRig(pool, audiences.slice(0, 1))
  running.push(rig.start())
  await rig.built()
  await rig.send(
    { userId: 'u1' },
    { userId: 'u1' },
    { type: 'identify', userId: 'u2', anonymousId: 'a2' },
    { userId: 'u3' },
    { userId: 'u3' },
  )
  await rig.caughtUp()
  await rig.sync()
  await pool.query(
    `update ustate u set st = o.st from ustate o where u.user_id = 'u1' and o.user_id = 'u2'`,
  )
  await pool.query(`delete from identity where value = 'u3'`)
  const id = await request(rig)
  const worker = startRebuild(rebuildDeps(rig, url))
  running.push(worker)
  const found = await settled(pool, id)
  expect(found).toMatchObject({ state: 'differs', differing: 2, users: 3 })
  expect(found.differences).toMatchObject([
    { identity: '0:u1', parts: ['summaries', 'answers'] },
    { identity: '0:u3', parts: ['unknown'], live: null, rebuilt: { answers: ['1:true'] } },
  ])
  expect(await acceptRebuild(pool, id)).toBe(true)
  await until('it is swapped in', async () => (await findRebuild(pool, id))?.state === 'swapped')
  expect(await rig.members(1)).toEqual(['u1', 'u3'])
  const { rows } = await pool.query('select 1 from membership where cur is distinct from synced')
  expect(rows).toEqual([])
})

test('a log without its beginning is refused, unless what it keeps is to do', async () => {
  const rig = await aRig(pool, [], { calls: 1, 'calls.import': 1, outbound: 1 } as never)
  running.push(rig.start())
  await rig.send({ userId: 'u1' }, { userId: 'u2' })
  await rig.caughtUp()
  rig.log.truncate('calls', 0, 1n)
  const refused = await rebuilt(rig, url)
  expect(refused).toMatchObject({ state: 'failed' })
  expect(refused.reason).toMatch(/begins at offset 1 of calls\/0.*--from-kept/)
  expect(await rebuilt(rig, url, { fromKept: true, acceptsDifferences: true })).toMatchObject({
    state: 'swapped',
    differing: 1,
  })
  const { rows } = await pool.query('select value from identity')
  expect(rows).toEqual([{ value: 'u2' }])
})

test('the swap waits for a sync that runs, and says so', async () => {
  const rig = await aRig(pool, audiences.slice(0, 1))
  running.push(rig.start())
  await rig.built()
  await rig.send({ userId: 'u1' }, { userId: 'u1' })
  await rig.caughtUp()
  await pool.query(`insert into sync_run (state, audience_ids) values ('running', '{1}')`)
  const id = await request(rig)
  running.push(startRebuild(rebuildDeps(rig, url)))
  await until('it waits', async () => (await findRebuild(pool, id))?.reason === 'a sync is running')
  expect((await findRebuild(pool, id))?.state).toBe('swapping')
  await rig.send({ userId: 'u2' }, { userId: 'u2' })
  await rig.caughtUp()
  await pool.query(`update sync_run set state = 'finished'`)
  expect(await settled(pool, id)).toMatchObject({ state: 'swapped', reason: null })
  expect(await rig.members(1)).toEqual(['u1', 'u2'])
})

test('a new audience waits for the end of a rebuild', async () => {
  const rig = await aRig(pool, audiences.slice(0, 1))
  running.push(rig.start())
  await rig.built()
  await rig.send({ userId: 'u1' }, { userId: 'u1' })
  await rig.caughtUp()
  const id = await request(rig)
  rig.live.replace({ audiences: audiences.slice(0, 2) })
  await new Promise((resolve) => setTimeout(resolve, 100))
  const { rows } = await pool.query('select audience_id as id from audience_state')
  expect(rows).toEqual([{ id: 1 }])
  running.push(startRebuild(rebuildDeps(rig, url)))
  expect(await settled(pool, id)).toMatchObject({ state: 'swapped' })
  await rig.built()
  expect(await rig.members(1)).toEqual(['u1'])
})
