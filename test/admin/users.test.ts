import { describe, expect, test } from 'vitest'
import { packUser } from '../../src/audience/pack.ts'
import { newUser } from '../../src/audience/state.ts'
import { writeTraits } from '../../src/domain/traits.ts'
import { startTestAdmin } from './start.ts'

describe('looking a user up', async () => {
  const { admin, viewer, pool } = await startTestAdmin()
  const workspace = (await admin('POST', '/admin/v1/workspaces', { name: 'shop' })).body
  const where = { trait: 'plan', op: 'eq', value: 'pro' }
  const audience = (await admin('POST', '/admin/v1/audiences', { name: 'Pros', where })).body

  const insertUser = async (key: number, userId: string) => {
    const user = {
      ...newUser(key, workspace.id),
      userId,
      traits: writeTraits(
        new Map(),
        { plan: 'pro', address: { city: 'Cork' }, gone: null },
        { te: 1, r: 1, id: 'm' },
      ),
    }
    const st = packUser(user, { leaf: () => true, audience: () => true })
    await pool.query(
      `insert into ustate (user_key, shard, workspace_id, ver, user_id, st) values ($1, 0, $2, 1, $3, $4)`,
      [key, workspace.id, userId, st],
    )
    await pool.query(
      `insert into identity (workspace_id, kind, value, user_key)
       values ($1, 0, $3, $2), ($1, 1, $4, $2), ($1, 1, $5, $2)`,
      [workspace.id, key, userId, `${userId}-a`, `${userId}-b`],
    )
  }
  await insertUser(7, 'u/1 é')
  await pool.query(
    `insert into membership (audience_id, shard, user_key, user_id, cur, synced, entered_at)
     values ($1, 0, 7, 'u/1 é', true, false, '2026-01-02T03:04:05Z'), ($2, 0, 7, 'u/1 é', false, true, null)`,
    [audience.id, audience.id + 1],
  )

  test('a viewer sees traits, anonymous ids and memberships', async () => {
    const answer = await viewer('GET', `/admin/v1/users/${encodeURIComponent('u/1 é')}`)
    expect(answer.body).toEqual({
      userId: 'u/1 é',
      workspaceId: workspace.id,
      traits: { plan: 'pro', address: { city: 'Cork' } },
      computedTraits: {},
      anonymousIds: ['u/1 é-a', 'u/1 é-b'],
      memberships: [
        {
          audienceId: audience.id,
          name: 'Pros',
          key: 'pros',
          enteredAt: '2026-01-02T03:04:05.000Z',
        },
      ],
    })
  })

  test('an unknown user, an anonymous id and an id no database holds are not found', async () => {
    for (const id of ['nobody', encodeURIComponent('u/1 é-a'), '%00', '%ED%A0%80'])
      expect([id, (await viewer('GET', `/admin/v1/users/${id}`)).status]).toEqual([
        id,
        id === '%ED%A0%80' ? 400 : 404,
      ])
  })
})
