import { afterAll, describe, expect, test } from 'vitest'
import { preview, previewLimits } from '../../src/audience/preview.ts'
import { foldSample } from '../../src/audience/sample-history.ts'
import { newUser } from '../../src/audience/state.ts'
import { openCounter, scanUsers } from '../../src/audience/survey.ts'
import { parseCondition } from '../../src/domain/condition/parse.ts'
import { aRig, audience, codec, performed } from '../project/rig.ts'
import { cloneDatabase } from '../support/database.ts'
import { startTestAdmin } from './start.ts'

const people = Array.from({ length: 40 }, (_, at) => ({ userId: `u${at}`, orders: at % 4 }))
const idsWith = (min: number) => people.filter(({ orders }) => orders >= min).map((it) => it.userId)

describe('trying a condition before it is saved', async () => {
  const { pool } = await cloneDatabase()
  const rig = await aRig(pool)
  const running = rig.start()
  afterAll(() => running.stop())
  const log = { source: rig.log.source(), codecs: { call: codec } }
  const { admin, viewer } = await startTestAdmin({ pool, clock: rig.clock, ...log })
  const { id: workspaceId } = (await admin('POST', '/admin/v1/workspaces', { name: 'shop' })).body
  const where = performed('gte', 1, '48h')
  const { id } = (await admin('POST', '/admin/v1/audiences', { name: 'Buyers', where })).body
  rig.live.replace({ audiences: [audience(id, where, { workspaceId })] })
  await rig.built()
  for (const { userId, orders } of people)
    await rig.send(
      { workspaceId, userId, event: 'Seen' },
      ...Array.from({ length: orders }, () => ({ workspaceId, userId })),
    )
  for (let at = 0; at < 10; at++) await rig.send({ workspaceId, anonymousId: `a${at}` })
  await rig.send({ workspaceId: workspaceId + 1, userId: 'elsewhere' })
  await rig.caughtUp()
  const ask = async (body: object, of = '') => {
    const answer = await admin('POST', `/admin/v1/audiences${of}/preview`, body)
    return { status: answer.status, ...answer.body }
  }

  test('what is kept already is counted from users, anonymous ones apart', async () => {
    const found = await ask({ where, sample: 100 })
    expect(found).toMatchObject({
      status: 200,
      exact: true,
      readFrom: 'users',
      users: 50,
      usersRead: 50,
      callsRead: null,
      members: { users: 40, identifiedUsers: 30 },
      entering: null,
      leaving: null,
    })
    expect(found.members.sample.toSorted()).toEqual(idsWith(1).toSorted())
    const without = await ask({ where, includeAnonymous: false, sample: 3 })
    expect(without.members).toMatchObject({ users: 30, identifiedUsers: 30 })
    expect(without.members.sample).toHaveLength(3)
  })

  test('what nobody keeps yet is read from the log, and so is text', async () => {
    const found = await ask({
      where: "event('Ordered').count() >= 3 AND event('Seen').count() = 1",
      sample: 100,
    })
    expect(found).toMatchObject({ status: 200, exact: true, readFrom: 'log', users: 50 })
    expect(found.callsRead).toBe(40 + 60 + 10 + 1)
    expect(found.members.sample.toSorted()).toEqual(idsWith(3).toSorted())
    expect(await rig.members(id)).toHaveLength(40)
  })

  test('of an edit it says who would enter and leave, and saving it does just that', async () => {
    const next = { any: [performed('gte', 2), { not: performed('gte', 1) }] }
    const found = await ask({ where: next, sample: 100 }, `/${id}`)
    const none = people.filter(({ orders }) => orders === 0).map(({ userId }) => userId)
    const one = people.filter(({ orders }) => orders === 1).map(({ userId }) => userId)
    expect(found.entering).toMatchObject({ users: 10, identifiedUsers: 10 })
    expect(found.entering.sample.toSorted()).toEqual(none.toSorted())
    expect(found.leaving).toMatchObject({ users: 20, identifiedUsers: 10 })
    expect(found.leaving.sample.toSorted()).toEqual(one.toSorted())
    expect((await admin('GET', `/admin/v1/audiences/${id}`)).body.where).toEqual(where)
    rig.live.replace({ audiences: [audience(id, next, { workspaceId })] })
    await rig.built()
    expect(await rig.members(id)).toEqual([...none, ...idsWith(2)].toSorted())
    const again = await ask({ where: next }, `/${id}`)
    expect(again).toMatchObject({
      readFrom: 'users',
      entering: { users: 0 },
      leaving: { users: 0 },
    })
    const { leaving } = await ask({}, `/${id}`)
    expect(leaving.users).toBe(10)
  })

  test('what cannot be tried is refused as saving it would be', async () => {
    const refused = async (body: object, of = '') => {
      const { status, error } = await ask(body, of)
      return [status, error.code, error.problems?.[0].path]
    }
    expect(await refused({ where: { all: [] } })).toEqual([400, 'condition_invalid', '/where/all'])
    expect(await refused({ where: "event('x'" })).toEqual([400, 'condition_invalid', '/where'])
    expect(await refused({ where: { audience: 'none', in: true } })).toEqual([
      400,
      'condition_invalid',
      '/where/audience',
    ])
    expect(await refused({})).toEqual([400, 'field_missing', '/where'])
    expect(await refused({ where, timezone: 'Mars' })).toEqual([
      400,
      'timezone_unknown',
      '/timezone',
    ])
    expect((await ask({ where, sample: 101 })).status).toBe(400)
    expect((await ask({ where, workspaceId: 99 })).error.code).toBe('workspace_unknown')
    expect((await ask({ where }, '/999')).status).toBe(404)
    expect((await viewer('POST', '/admin/v1/audiences/preview', { where })).status).toBe(403)
  })

  test('more than its share of the log is not read, and it says so', async () => {
    const users = new Map([[1, newUser(1, workspaceId)]])
    const sampling = { sql: pool, ...log, codec, workspaceId, users, leaves: [] }
    const part = await foldSample({ ...sampling, callsMax: 50, isOver: () => false })
    expect(part.isWhole).toBe(false)
    expect(part.calls).toBeGreaterThan(20)
    expect(part.calls).toBeLessThanOrEqual(50)
    const over = await foldSample({ ...sampling, callsMax: 1_000, isOver: () => true })
    expect(over).toEqual({ calls: 0, isWhole: false })
  })
})

describe('what a preview may use', async () => {
  const { admin } = await startTestAdmin({ limits: { previewsMax: 0 } })
  const other = await startTestAdmin()

  test('no more run at a time than may', async () => {
    await admin('POST', '/admin/v1/workspaces', { name: 'shop' })
    const where = { trait: 'a', op: 'exists' }
    const { status, body } = await admin('POST', '/admin/v1/audiences/preview', { where })
    expect([status, body.error.code]).toEqual([429, 'previews_too_many'])
  })

  test('without a log what is kept of users is all there is', async () => {
    await other.admin('POST', '/admin/v1/workspaces', { name: 'shop' })
    const ask = async (where: object) =>
      (await other.admin('POST', '/admin/v1/audiences/preview', { where })).status
    expect(await ask(performed('gte', 1))).toBe(503)
    expect(await ask({ trait: 'a', op: 'exists' })).toBe(200)
  })

  test('where not all users can be read, those of equal ranges stand for the rest', async () => {
    const { pool } = other
    await pool.query(
      `insert into ustate (user_key, shard, workspace_id, ver, st, user_id)
       select k, k % 64, case when k % 3 = 0 then 2 else 1 end, 1, '\\x02000000000000'::bytea, 'u' || k
         from generate_series(1001, 4000) k`,
    )
    const survey = async (usersMax: number) => {
      const counter = openCounter(20)
      let [read, all] = [0, 0]
      for await (const { users, weight } of scanUsers(pool, {
        workspaceId: 1,
        usersMax,
        partUsers: 50,
      })) {
        read += users.length
        all += users.length * weight
        for (const user of users) counter.add(user, weight)
      }
      return { read, all, ...counter.tally(1) }
    }
    const whole = await survey(10_000)
    expect([whole.read, whole.all, whole.users, whole.sample.length]).toEqual([
      2_000, 2_000, 2_000, 20,
    ])
    const part = await survey(500)
    expect(part.read).toBeLessThanOrEqual(500)
    expect(Math.abs(part.users - 2_000)).toBeLessThan(100)
    const ages = part.sample.map((id) => Number(id.slice(1)))
    expect(Math.max(...ages) - Math.min(...ages)).toBeGreaterThan(1_500)
    expect((await survey(500)).sample).toEqual(part.sample)
  })

  test('when its time is over, what was read until then stands for the rest', async () => {
    const parsed = parseCondition({ not: { trait: 'none', op: 'exists' } })
    if (!parsed.ok) throw new Error('the condition is not sound')
    const found = await preview({
      ...{ sql: other.pool, workspaceId: 1, condition: parsed.condition, current: null, log: null },
      ...{ at: 1, sampleMax: 5, signal: new AbortController().signal },
      limits: { ...previewLimits, durationMsMax: 0 },
    })
    expect(found).toMatchObject({ isExact: false, log: null })
    expect(found?.usersRead).toBeLessThan(200)
    expect(Math.abs((found?.users ?? 0) - 2_000)).toBeLessThan(200)
    expect(found?.members.users).toBe(found?.users)
  })
})
