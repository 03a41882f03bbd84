import { afterAll, describe, expect, test } from 'vitest'
import { aRig, audience, day, performed, start } from '../project/rig.ts'
import { startTestAdmin } from './start.ts'

const hour = 3_600_000

describe('why a user is in an audience', async () => {
  let now = () => start
  const { admin, viewer, pool } = await startTestAdmin({ clock: () => new Date(now()) })
  const { id: workspaceId } = (await admin('POST', '/admin/v1/workspaces', { name: 'shop' })).body
  const where = {
    all: [
      { event: { name: 'Ordered', window: { last: '48h' } }, count: { op: 'gte', value: 2 } },
      { not: { trait: 'plan', op: 'eq', value: 'free' } },
    ],
  }
  const { id } = (await admin('POST', '/admin/v1/audiences', { name: 'Active', where })).body
  const path = `/admin/v1/audiences/${id}/explain`
  const early = await viewer('GET', `${path}?userId=u1`)

  const rig = await aRig(pool, [audience(id, where, { workspaceId })])
  now = rig.now
  const running = rig.start()
  afterAll(() => running.stop())
  await rig.built()
  await rig.send(
    { workspaceId, type: 'identify', userId: 'u1', traits: { plan: 'pro' } },
    { workspaceId, userId: 'u1', timestamp: start - 40 * hour },
    { workspaceId, userId: 'u1', timestamp: start - hour },
    { workspaceId, anonymousId: 'a1' },
  )
  await rig.caughtUp()

  test('while it is built, it says to ask again', async () => {
    expect([early.status, early.body.error.code]).toEqual([409, 'audience_backfilling'])
  })

  test('the tree shows each comparison with its facts, and when time changes it', async () => {
    const { status, body } = await viewer('GET', `${path}?userId=u1`)
    const leaves = start - (start % 60_000) + 8 * hour
    expect([status, body.member, body.recorded, body.synced]).toEqual([200, true, true, false])
    expect(Date.parse(body.changesAt)).toBe(leaves)
    expect(body.where).toMatchObject({ type: 'all', holds: true })
    const [count, not] = body.where.of
    expect(count).toMatchObject({
      type: 'count',
      holds: true,
      says: "event('Ordered').within(2 days).count() >= 2",
      facts: [
        {
          name: 'count',
          value: 2,
          orMore: false,
          windowFrom: new Date(start - 48 * hour + 60_000).toISOString(),
        },
      ],
      takes: null,
    })
    expect(not).toMatchObject({ type: 'not', holds: true, changesAt: null })
    expect(not.of[0]).toMatchObject({
      holds: false,
      facts: [{ name: 'trait', value: 'pro' }],
      takes: 'a trait that is equal to "free"',
    })
  })

  test('as of a later instant it says what will be if no call arrives', async () => {
    const at = new Date(start + day).toISOString()
    const { body } = await viewer('GET', `${path}?userId=u1&at=${at}`)
    expect([body.at, body.member, body.recorded]).toEqual([at, false, true])
    expect(body.where.of[0]).toMatchObject({ facts: [{ value: 1 }], takes: '1 more' })
  })

  test('an anonymous user is found by the anonymous id', async () => {
    const { body } = await viewer('GET', `${path}?anonymousId=a1`)
    expect([body.userId, body.member]).toEqual([null, false])
  })

  test('what cannot be answered is refused and says why', async () => {
    const before = new Date(start - 1).toISOString()
    const refused = async (query: string) => {
      const { status, body } = await viewer('GET', path + query)
      return [status, body.error.code, body.error.message]
    }
    const [status, code, message] = await refused(`?userId=u1&at=${before}`)
    expect([status, code]).toEqual([400, 'field_invalid'])
    expect(message).toContain(new Date(start).toISOString())
    expect(await refused('')).toEqual([
      400,
      'field_missing',
      'name one user by userId or anonymousId',
    ])
    expect((await refused('?userId=u1&anonymousId=a1'))[0]).toBe(400)
    expect((await refused('?userId=u1&at=yesterday'))[1]).toBe('field_invalid')
    expect((await refused('?userId=nobody'))[0]).toBe(404)
    expect((await refused('?userId=%00'))[0]).toBe(404)
    expect((await viewer('GET', '/admin/v1/audiences/999/explain?userId=u1')).status).toBe(404)
  })

  test('of a computed trait it shows the value, what it is made of, and when time changes it', async () => {
    const where = { prop: 'plan', op: 'eq', ref: 'trait:plan' }
    const event = { name: 'Paid', where, window: { last: '48h' } }
    const measure = { event, sum: { prop: 'price' } }
    const made = (await admin('POST', '/admin/v1/traits', { name: 'Paid', measure })).body
    const path = `/admin/v1/traits/${made.id}/explain`
    expect((await viewer('GET', `${path}?userId=u1`)).body.error.code).toBe('audience_backfilling')
    const trait = audience(made.id, measure, { kind: 'trait', workspaceId })
    const own = audience(id, { identified: true }, { workspaceId })
    rig.live.replace({ audiences: [own, trait] })
    await rig.built()
    const paid = (price: number, plan: string, hours: number) => ({
      ...{ workspaceId, userId: 'u1', event: 'Paid', properties: { price, plan } },
      timestamp: start - hours * hour,
    })
    await rig.send(paid(0, 'pro', 40), paid(5, 'pro', 30), paid(7, 'pro', 1), paid(9, 'free', 1))
    await rig.caughtUp()
    const { status, body } = await viewer('GET', `${path}?userId=u1`)
    expect([status, body.value, body.recorded, body.synced]).toEqual([200, 12, 12, false])
    // Not when the one that says nothing leaves.
    expect(Date.parse(body.changesAt)).toBe(start - (start % 60_000) + 18 * hour)
    expect(body.says).toContain("property('plan') = trait('plan')")
    expect(body.facts).toMatchObject([
      { name: 'sum', value: 12, windowFrom: new Date(start - 48 * hour + 60_000).toISOString() },
      { name: 'where trait plan', value: 'pro' },
    ])
    const at = new Date(start + 18 * hour).toISOString()
    expect((await viewer('GET', `${path}?userId=u1&at=${at}`)).body).toMatchObject({
      ...{ value: 7, recorded: 12 },
    })
    expect((await viewer('GET', `/admin/v1/traits/${id}/explain?userId=u1`)).status).toBe(404)
  })

  test('of an audience of accounts it shows the user’s own part, and what the last sync found', async () => {
    const users = { quantifier: 'all', where: performed('gte', 1) }
    const made = (await admin('POST', '/admin/v1/audiences', { name: 'Firms', where: { users } }))
      .body
    const own = [audience(id, where, { workspaceId })]
    rig.live.replace({ audiences: [...own, audience(made.id, { users }, { workspaceId })] })
    await rig.built()
    const ask = async () =>
      (await viewer('GET', `/admin/v1/audiences/${made.id}/explain?userId=u1`)).body
    expect(await ask()).toMatchObject({
      quantifier: 'all',
      member: false,
      recorded: false,
      changesAt: null,
      changesExactly: false,
      where: { type: 'count', holds: true },
    })
    await pool.query(
      `insert into membership (audience_id, shard, user_key, user_id, cur, synced, entered_at)
       select $1, user_key % 64, user_key, 'u1', true, true, $2 from ustate where user_id = 'u1'`,
      [made.id, new Date(start)],
    )
    expect(await ask()).toMatchObject({ member: true, recorded: true, synced: true })
  })
})
