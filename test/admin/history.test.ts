import { describe, expect, test } from 'vitest'
import { versionsMax } from '../../src/control/audience-version.ts'
import { startTestAdmin } from './start.ts'

describe('how an audience came to be', async () => {
  const { admin, viewer, pool } = await startTestAdmin()
  await admin('POST', '/admin/v1/workspaces', { name: 'shop' })
  const where = { trait: 'plan', op: 'eq', value: 'pro' }
  const { id } = (await admin('POST', '/admin/v1/audiences', { name: 'Pros', where })).body
  const path = `/admin/v1/audiences/${id}`

  test('every save makes a version that says who changed what', async () => {
    const wider = { trait: 'plan', op: 'exists' }
    await admin('PATCH', path, { where: wider })
    await admin('PATCH', path, { where: wider })
    expect((await admin('PATCH', path, { where: { trait: 'plan' } })).status).toBe(400)
    await admin('PATCH', path, { name: 'Planned', syncEvery: '1h' })
    const { versions, more } = (await viewer('GET', `${path}/versions`)).body
    expect(more).toBe(false)
    expect(versions).toMatchObject([
      {
        version: 3,
        actor: 'environment',
        definition: { name: 'Planned', key: 'pros', where: wider, timezone: 'UTC' },
        changes: {
          name: { from: 'Pros', to: 'Planned' },
          syncEvery: { from: '2h30m', to: '1h' },
        },
      },
      { version: 2, changes: { where: { from: where, to: wider } } },
      { version: 1, definition: { name: 'Pros', where } },
    ])
    expect(Object.keys(versions[1].changes)).toEqual(['where'])
    expect(Date.parse(versions[0].at)).toBeGreaterThanOrEqual(Date.parse(versions[1].at))
    const page = (await viewer('GET', `${path}/versions?before=3&limit=1`)).body
    expect([page.versions.length, page.versions[0].version, page.more]).toEqual([1, 2, true])
  })

  test('computed traits have versions too, and ids of the other kind have none', async () => {
    const measure = { event: { name: 'Ordered' }, count: {} }
    const trait = (await admin('POST', '/admin/v1/traits', { name: 'Orders', measure })).body
    const { versions } = (await viewer('GET', `/admin/v1/traits/${trait.id}/versions`)).body
    expect(versions).toMatchObject([{ version: 1, definition: { where: measure } }])
    expect((await viewer('GET', `/admin/v1/audiences/${trait.id}/versions`)).status).toBe(404)
    expect((await viewer('GET', `/admin/v1/audiences/${trait.id}/sizes`)).status).toBe(404)
  })

  test('the oldest versions go when there are too many, and all go with the audience', async () => {
    await pool.query(
      `insert into audience_version (audience_id, version, actor, definition, changes)
       select $1, v, 'somebody', '{}', '{}' from generate_series(4, $2::int) v`,
      [id, versionsMax + 3],
    )
    await admin('PATCH', path, { name: 'Last' })
    const count = async () => {
      const { rows } = await pool.query<{ count: number; first: number }>(
        'select count(*)::int as count, min(version) as first from audience_version where audience_id = $1',
        [id],
      )
      return rows[0]
    }
    expect(await count()).toEqual({ count: versionsMax, first: 5 })
    await admin('DELETE', path)
    expect(await count()).toEqual({ count: 0, first: null })
  })

  test('sizes are shown page by page, newest first', async () => {
    const { id: other } = (await admin('POST', '/admin/v1/audiences', { name: 'Other', where }))
      .body
    await pool.query(
      `insert into audience_size (audience_id, run_id, at, members, anonymous)
       values ($1, 1, '2026-01-01T00:00:00Z', 10, 1), ($1, 2, '2026-01-01T03:00:00Z', 12, 2)`,
      [other],
    )
    const sizes = `/admin/v1/audiences/${other}/sizes`
    expect((await viewer('GET', `${sizes}?limit=1`)).body).toEqual({
      sizes: [{ syncId: 2, at: '2026-01-01T03:00:00.000Z', members: 12, anonymousMembers: 2 }],
      more: true,
    })
    const { body } = await viewer('GET', `${sizes}?before=2`)
    expect([body.sizes.length, body.sizes[0].members, body.more]).toEqual([1, 10, false])
  })
})
