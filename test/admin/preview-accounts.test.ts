// Trying an audience of accounts before it is saved: what is said of it is what the naive evaluator says.
import { afterAll, describe, expect, test } from 'vitest'
import { previewLimits } from '../../src/audience/preview.ts'
import { previewAccounts } from '../../src/audience/preview-accounts.ts'
import { parseUsers } from '../../src/domain/condition/users.ts'
import type { Message } from '../../src/domain/message.ts'
import { answers } from '../oracle/oracle.ts'
import { aRig, audience, codec, performed, type Sent } from '../project/rig.ts'
import { cloneDatabase } from '../support/database.ts'
import type { Call, OfUsers } from '../support/language.ts'
import { startTestAdmin } from './start.ts'

const users = (quantifier: string, where: object) => ({ users: { quantifier, where } })

const asCall = (message: Message): Call =>
  ({ ...message, ...JSON.parse(Buffer.from(message.body).toString()) }) as Call

describe('trying an audience of accounts before it is saved', async () => {
  const { pool } = await cloneDatabase()
  const rig = await aRig(pool)
  const running = rig.start()
  afterAll(() => running.stop())
  const log = { source: rig.log.source(), codecs: { call: codec } }
  const { admin } = await startTestAdmin({ pool, clock: rig.clock, ...log })
  const { id: workspaceId } = (await admin('POST', '/admin/v1/workspaces', { name: 'shop' })).body
  const calls: Call[] = []
  const send = async (...said: readonly Sent[]) =>
    void calls.push(...(await rig.send(...said.map((it) => ({ workspaceId, ...it })))).map(asCall))
  // Twenty users and four visitors in six accounts, some in two; as many orders as the number's rest.
  for (let at = 0; at < 24; at++) {
    const who = at < 20 ? { userId: `u${at}` } : { anonymousId: `a${at}` }
    const group = { type: 'group', ...who } as const
    await send({ ...group, groupId: `g${at % 6}` }, { ...who, event: 'Seen' })
    if (at % 7 === 0) await send({ ...group, groupId: 'g1' })
    await send(...Array.from({ length: at % 3 }, () => who))
  }
  await send({ userId: 'alone' })
  await rig.send({ type: 'group', workspaceId: workspaceId + 1, userId: 'far', groupId: 'g1' })
  await rig.caughtUp()
  const ask = async (body: object, of = '') => {
    const answer = await admin('POST', `/admin/v1/audiences${of}/preview`, { sample: 100, ...body })
    return { status: answer.status, ...answer.body }
  }
  const expectedOf = (where: object, includeAnonymous = true) => {
    const asked = { key: 'a', condition: where as OfUsers, includeAnonymous }
    const { named, nameless } = answers(calls, asked, rig.now())
    return { ids: [...named.keys()].sort(), users: named.size + nameless.length }
  }

  test.each(['any', 'all', 'none'])('%s of the users: as the naive evaluator says', async (of) => {
    const sizes = new Set<number>()
    for (const least of [1, 2, 3])
      for (const includeAnonymous of [true, false]) {
        const where = users(of, performed('gte', least))
        const found = await ask({ where, includeAnonymous })
        const expected = expectedOf(where, includeAnonymous)
        sizes.add(expected.users)
        expect(found).toMatchObject({ status: 200, exact: true, users: 25, entering: null })
        const { users: size, identifiedUsers, sample } = found.members
        expect([size, identifiedUsers, sample.toSorted()]).toEqual([
          expected.users,
          expected.ids.length,
          expected.ids,
        ])
      }
    expect(sizes.size).toBeGreaterThan(1)
  })

  test('of an edit it says who would enter and who would leave', async () => {
    const where = users('all', performed('gte', 1))
    const { id } = (await admin('POST', '/admin/v1/audiences', { name: 'Accounts', where })).body
    rig.live.replace({ audiences: [audience(id, where, { workspaceId, scope: 'account' })] })
    await rig.built()
    const next = users('any', { event: { name: 'Ordered' }, count: { op: 'eq', value: 0 } })
    const [before, after] = [expectedOf(where), expectedOf(next)]
    const found = await ask({ where: next }, `/${id}`)
    const entering = after.ids.filter((user) => !before.ids.includes(user))
    const leaving = before.ids.filter((user) => !after.ids.includes(user))
    expect(found.members.sample.toSorted()).toEqual(after.ids)
    expect(found.entering.sample.toSorted()).toEqual(entering)
    expect(found.leaving.sample.toSorted()).toEqual(leaving)
    expect(entering.length).toBeGreaterThan(0)
    expect(await ask({}, `/${id}`)).toMatchObject({
      members: { users: before.users },
      entering: { users: 0 },
      leaving: { users: 0 },
    })
    const ofUsers = await ask({ where: performed('gte', 1) }, `/${id}`)
    expect([ofUsers.status, ofUsers.error.code]).toEqual([400, 'scope_invalid'])
  })
})

describe('trying an audience of more accounts than can be read', async () => {
  const { pool } = await cloneDatabase()
  // Accounts of ten users each. Every third account is empty of users with an id.
  await pool.query(
    `insert into ustate (user_key, shard, workspace_id, ver, st, user_id)
     select k, k % 64, 1, 1, '\\x02000000000000'::bytea,
            case when (k / 10) % 3 = 0 then null else 'u' || k end
       from generate_series(0, 5999) k`,
  )
  await pool.query(
    `insert into account_user (user_key, workspace_id, group_id)
     select k, 1, 'g' || k / 10 from generate_series(0, 5999) k`,
  )
  const tried = async (quantifier: string, limits: object) => {
    const parsed = parseUsers(users(quantifier, { identified: true }), { timezone: 'UTC' })
    if (!parsed.ok) throw new Error('the condition is not sound')
    return previewAccounts({
      ...{ sql: pool, workspaceId: 1, condition: parsed.users, current: null, log: null },
      ...{ at: 1, sampleMax: 5, signal: new AbortController().signal },
      limits: { ...previewLimits, ...limits },
    })
  }

  test('some users stand for all, judged by all of their accounts', async () => {
    for (const [quantifier, size] of [
      ['any', 4_000],
      ['all', 4_000],
      ['none', 2_000],
    ] as const) {
      const whole = await tried(quantifier, {})
      expect(whole).toMatchObject({ isExact: true, users: 6_000, members: { users: size } })
      const part = await tried(quantifier, { logUsersMax: 1_024 })
      expect(part?.isExact).toBe(false)
      expect(part?.usersRead).toBeLessThanOrEqual(1_024)
      expect(Math.abs((part?.members.users ?? 0) - size)).toBeLessThan(600)
    }
  })
})
