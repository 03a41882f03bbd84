import { afterEach, beforeEach, expect, test } from 'vitest'
import type { Entry, Topic } from '../../src/log/log.ts'
import { findSyncRun, requestSync } from '../../src/sync/request.ts'
import { aDestination, anAudience } from '../support/configuration.ts'
import { cloneDatabase } from '../support/database.ts'
import { bodyOf, goLive, openWorld, setMember, setMembers, until, type World } from './stage.ts'

const { pool } = await cloneDatabase()
let world: World

beforeEach(async () => {
  world = await openWorld(pool)
})

afterEach(() => world.stopAll())

const syncNow = async (over: { readonly allMembers?: boolean } = {}) => {
  const id = await requestSync(pool, { audienceIds: [1], at: world.clock(), ...over })
  await until(async () => expect((await findSyncRun(pool, id))?.state).toBe('finished'))
}

/** What one destination was told of each user, in the order of the log: ["1:true", "1:false"]. */
const heardBy = async (destinationId: number) =>
  (await world.outbound())
    .filter((it) => it.destinationId === destinationId && it.type === 'identify')
    .sort((left, right) => left.shard - right.shard || left.seq - right.seq)
    .map((it) => `${it.userId}:${JSON.stringify(Object.values(bodyOf(it).traits)[0])}`)

const two = [aDestination(), aDestination({ id: 2, name: 'Other' })]
const withTwo = (over = {}) => ({
  destinations: two,
  audiences: [anAudience({ destinationIds: [1, 2], ...over })],
})

test('a destination that joins a synced audience is told of all its members, and of changes after', async () => {
  await setMembers(pool, [1, 2, 65])
  await goLive(pool)
  world.start({ limits: { chunkUsersMax: 2, standbyMs: 20 } })
  await until(async () => expect(await world.outbound()).toHaveLength(3))
  world.live.replace(withTwo())
  await setMember(pool, { key: 2, member: false })
  await setMember(pool, { key: 66 })
  await syncNow()
  expect(await heardBy(2)).toEqual(['u1:true', 'u65:true', 'u2:true', 'u2:false', 'u66:true'])
  expect(await heardBy(1)).toEqual(['u1:true', 'u65:true', 'u2:true', 'u2:false', 'u66:true'])
  await syncNow()
  expect(await world.outbound()).toHaveLength(10)
})

test('asked for all members, tells every destination of each of them again, and of changes after', async () => {
  await setMembers(pool, [1, 2, 65])
  await goLive(pool)
  world.live.replace(withTwo())
  world.start({ limits: { chunkUsersMax: 2, standbyMs: 20 } })
  await until(async () => expect(await world.outbound()).toHaveLength(6))
  await setMember(pool, { key: 2, member: false })
  await syncNow({ allMembers: true })
  const first = ['u1:true', 'u65:true', 'u2:true']
  const again = ['u1:true', 'u65:true', 'u2:true', 'u2:false']
  for (const id of [1, 2])
    expect((await heardBy(id)).toSorted()).toEqual([...first, ...again].toSorted())
  expect((await heardBy(1)).at(-1)).toBe('u2:false')
  await syncNow()
  expect(await world.outbound()).toHaveLength(14)
})

test('asked for all members while a run tells them, tells those again that were told before', async () => {
  await setMembers(pool, [1, 2, 3, 4])
  await goLive(pool)
  let asked: Promise<number> | null = null
  let appends = 0
  const appender = world.log.appender()
  world.start({
    limits: { chunkUsersMax: 2, standbyMs: 20 },
    appender: {
      append: async (topic: Topic, entries: readonly Entry[]) => {
        // The second page: the first two members were told again by then.
        if (appends === 4)
          asked ??= requestSync(pool, { audienceIds: [1], at: world.clock(), allMembers: true })
        appends += 1
        await asked
        return appender.append(topic, entries)
      },
    } as never,
  })
  await until(async () => expect(await world.outbound()).toHaveLength(4))
  appends = 3
  await syncNow({ allMembers: true })
  await until(async () => expect(asked).not.toBeNull())
  const id = (await asked) as unknown as number
  await until(async () => expect((await findSyncRun(pool, id))?.state).toBe('finished'))
  for (const user of ['u1', 'u2', 'u3', 'u4'])
    expect((await heardBy(1)).filter((told) => told === `${user}:true`).length).toBe(3)
})

test('one that was off while others heard of changes is told of all members when it is on again', async () => {
  await setMembers(pool, [1, 2])
  await goLive(pool)
  world.live.replace(withTwo())
  world.start()
  await until(async () => expect(await world.outbound()).toHaveLength(4))
  world.live.replace({
    ...withTwo(),
    destinations: [aDestination(), aDestination({ id: 2, name: 'Other', enabled: false })],
  })
  await setMember(pool, { key: 3 })
  await syncNow()
  expect(await heardBy(2)).toEqual(['u1:true', 'u2:true'])
  world.live.replace(withTwo())
  await syncNow()
  expect(await heardBy(2)).toEqual(['u1:true', 'u1:true', 'u2:true', 'u2:true', 'u3:true'])
  expect(await heardBy(1)).toEqual(['u1:true', 'u2:true', 'u3:true'])
})

test('one that was off is told of those who left meanwhile, unless they came back', async () => {
  await setMembers(pool, [1, 2, 3, 4, 5, 6])
  await goLive(pool)
  world.live.replace(withTwo())
  world.start({ limits: { chunkUsersMax: 2, standbyMs: 20 } })
  await until(async () => expect(await world.outbound()).toHaveLength(12))
  const off = [aDestination(), aDestination({ id: 2, name: 'Other', enabled: false })]
  world.live.replace({ ...withTwo(), destinations: off })
  for (const key of [1, 2, 3, 4, 5]) await setMember(pool, { key, member: false })
  await setMember(pool, { key: 7 })
  await syncNow()
  await setMember(pool, { key: 2 })
  await setMember(pool, { key: 7, member: false })
  await syncNow()
  await setMember(pool, { key: 3 })
  world.live.replace(withTwo())
  await syncNow()
  const heard = (await heardBy(2)).toSorted()
  const before = [1, 2, 3, 4, 5, 6].map((key) => `u${key}:true`)
  const gone = [1, 3, 4, 5, 7].map((key) => `u${key}:false`)
  expect(heard).toEqual([...before, ...gone, 'u2:true', 'u3:true', 'u6:true'].toSorted())
  const ofThird = (await heardBy(2)).filter((said) => said.startsWith('u3:'))
  expect(ofThird).toEqual(['u3:true', 'u3:false', 'u3:true'])
  await syncNow()
  expect(await heardBy(2)).toHaveLength(heard.length)
})

test('one that was taken away and given back hears nothing of who left meanwhile', async () => {
  await setMembers(pool, [1, 2])
  await goLive(pool)
  world.live.replace(withTwo())
  world.start()
  await until(async () => expect(await world.outbound()).toHaveLength(4))
  const off = [aDestination(), aDestination({ id: 2, name: 'Other', enabled: false })]
  world.live.replace({ ...withTwo(), destinations: off })
  await setMember(pool, { key: 1, member: false })
  await syncNow()
  world.live.replace(withTwo({ destinationIds: [1] }))
  await syncNow()
  world.live.replace(withTwo())
  await syncNow()
  expect(await heardBy(2)).toEqual(['u1:true', 'u2:true', 'u2:true'])
  const { rows } = await pool.query('select * from sync_leaver')
  expect(rows).toEqual([])
})

test('a catch-up cut short by the end of its leader goes on where it was, telling nobody twice', async () => {
  const keys = Array.from({ length: 40 }, (_, at) => at + 1)
  await setMembers(pool, keys)
  await goLive(pool)
  const first = world.start({ limits: { chunkUsersMax: 5, standbyMs: 20 } })
  await until(async () => expect(await world.outbound()).toHaveLength(40))
  world.live.replace(withTwo())
  const id = await requestSync(pool, { audienceIds: [1], at: world.clock() })
  await until(async () => expect((await heardBy(2)).length).toBeGreaterThan(0))
  await first.stop()
  world.start({ limits: { chunkUsersMax: 5, standbyMs: 20 } })
  await until(async () => expect((await findSyncRun(pool, id))?.state).toBe('finished'))
  expect((await heardBy(2)).sort()).toEqual(keys.map((key) => `u${key}:true`).sort())
})

test('a computed trait is told of when its value changed, and as null when there is none any more', async () => {
  const trait = anAudience({ kind: 'trait', key: 'orders' })
  world.live.replace({ destinations: [aDestination()], audiences: [trait] })
  await setMembers(pool, [1])
  await pool.query(`update membership set value = '3'`)
  await goLive(pool)
  world.start()
  await until(async () => expect(await heardBy(1)).toEqual(['u1:3']))
  await pool.query(`update membership set value = '["a",1]'`)
  await syncNow()
  await syncNow()
  await pool.query('update membership set cur = false, value = null')
  await syncNow()
  expect(await heardBy(1)).toEqual(['u1:3', 'u1:["a",1]', 'u1:null'])
  expect((await pool.query('select 1 from membership')).rowCount).toBe(0)
})

test('with entry events a track message stands beside each change', async () => {
  world.live.replace({
    destinations: [aDestination()],
    audiences: [anAudience({ entryEvents: true })],
  })
  await setMembers(pool, [1])
  await goLive(pool)
  world.start()
  await until(async () => expect(await world.outbound()).toHaveLength(2))
  await setMember(pool, { key: 1, member: false })
  await syncNow()
  const events = (await world.outbound()).filter(({ type }) => type === 'track').map(bodyOf)
  expect(events.map(({ event, userId }) => `${userId} ${event}`)).toEqual([
    'u1 Audience Entered',
    'u1 Audience Exited',
  ])
  expect(events[0].properties).toEqual({
    audience_key: 'big_spenders',
    audience_name: 'Big Spenders',
  })
})

test('what a deleted audience had said is taken back from all its destinations, once', async () => {
  await setMembers(pool, [1, 2, 3])
  await goLive(pool)
  world.live.replace(withTwo())
  world.start({ limits: { chunkUsersMax: 2, standbyMs: 20 } })
  await until(async () => expect(await world.outbound()).toHaveLength(6))
  await setMember(pool, { key: 4 })
  await pool.query(
    `insert into retraction (audience_id, workspace_id, kind, key, destination_ids)
     values (1, 1, 'audience', 'big_spenders', '{1,2}')`,
  )
  world.live.replace({ destinations: two, audiences: [] })
  // As the projector does once nobody works it out any more.
  await pool.query('delete from audience_state')
  await until(async () => expect((await pool.query('select 1 from retraction')).rowCount).toBe(0))
  await until(async () => expect(await world.outbound()).toHaveLength(12))
  for (const destinationId of [1, 2])
    expect((await heardBy(destinationId)).slice().sort()).toEqual(
      ['u1', 'u2', 'u3'].flatMap((user) => [`${user}:false`, `${user}:true`]),
    )
  expect((await pool.query('select 1 from membership')).rowCount).toBe(0)
})
