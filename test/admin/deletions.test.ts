import { describe, expect, test } from 'vitest'
import { insertToken } from '../../src/control/token.ts'
import { cliAgainst } from '../support/run-cli.ts'
import { startTestAdmin } from './start.ts'

type Asked = { readonly id: number; readonly ids: number }

const asked = new Date('2026-03-01T12:00:00.000Z')

describe('asking for a user to be deleted', async () => {
  const { admin, viewer, pool, url, databaseUrl } = await startTestAdmin({ clock: () => asked })
  const shop = (await admin('POST', '/admin/v1/workspaces', { name: 'shop' })).body.id

  const token = (await insertToken(pool, { name: 'keyed', role: 'admin' }))?.secret

  const cli = cliAgainst({ databaseUrl, url })
  const run = (...args: readonly string[]) => cli(['delete-user', ...args])

  test('is received, shown, and audited without the id of the user', async () => {
    const made = await admin('POST', '/admin/v1/deletions', { userId: 'u-secret' })
    expect(made).toMatchObject({
      status: 201,
      body: {
        workspaceId: shop,
        userId: 'u-secret',
        anonymousId: null,
        origin: 'api',
        sourceId: null,
        state: 'received',
        createdAt: asked.toISOString(),
      },
    })
    expect((await viewer('GET', `/admin/v1/deletions/${made.body.id}`)).body).toEqual(made.body)
    const { entries } = (await admin('GET', '/admin/v1/audit?limit=1')).body
    expect(entries[0]).toMatchObject({
      action: 'requested',
      kind: 'deletion',
      entityId: made.body.id,
    })
    expect(JSON.stringify(entries[0])).not.toContain('u-secret')
  })

  test('needs an id, one that a stored call can hold', async () => {
    for (const [body, code] of [
      [{}, 'field_missing'],
      [{ userId: '' }, 'field_invalid'],
      [{ userId: 'a\0b' }, 'field_invalid'],
      [{ anonymousId: '\ud800' }, 'field_invalid'],
      [{ userId: 'x'.repeat(513) }, 'field_invalid'],
      [{ userId: 'u1', workspaceId: shop + 1 }, 'workspace_unknown'],
    ] as const) {
      const refused = await admin('POST', '/admin/v1/deletions', body)
      expect([refused.status, refused.body.error.code]).toEqual([400, code])
    }
  })

  test('is for admins; a viewer reads', async () => {
    expect((await viewer('POST', '/admin/v1/deletions', { userId: 'u1' })).status).toBe(403)
    expect((await viewer('GET', '/admin/v1/deletions/2147483647')).status).toBe(404)
  })

  test('is made once for a key, however often it is asked for', async () => {
    const ask = async (key: string, body: object) => {
      const answer = await fetch(`${url}/admin/v1/deletions`, {
        method: 'POST',
        headers: {
          authorization: `Bearer ${token}`,
          'content-type': 'application/json',
          'idempotency-key': key,
        },
        body: JSON.stringify(body),
      })
      return { status: answer.status, body: (await answer.json()) as Asked }
    }
    const body = { kind: 'suppress_with_delete', userIds: ['k1', 'k2', 'k1'], anonymousIds: ['k3'] }
    const first = await ask('key-1', body)
    expect(first).toMatchObject({ status: 201, body: { ids: 3, userIds: ['k1', 'k2'] } })
    expect((await ask('key-1', body)).body.id).toBe(first.body.id)
    expect(await ask('key-1', { ...body, kind: 'delete_only' })).toMatchObject({
      status: 409,
      body: { error: { code: 'idempotency_key_used' } },
    })
    expect((await ask('key-2', body)).body.id).not.toBe(first.body.id)
    const many = Array.from({ length: 5_001 }, (_, at) => `u${at}`)
    expect((await ask('key-3', { userIds: many })).status).toBe(400)
    expect((await ask('key-3', { userIds: many.slice(1) })).body.ids).toBe(5_000)
    const { rows } = await pool.query(
      `select count(*)::int as suppressed from suppression where suppressed and deleted_before = $1`,
      [asked],
    )
    expect(rows).toEqual([{ suppressed: 3 }])
  })

  test('lists the newest first, page by page and by workspace', async () => {
    await pool.query('truncate deletion_request cascade')
    for (const userId of ['u1', 'u2', 'u3']) await admin('POST', '/admin/v1/deletions', { userId })
    await pool.query(
      `with made as (
         insert into deletion_request (workspace_id, source_id, message_id, origin, created_at)
         values ($1, 7, 'm1', 'call', $2) returning id)
       insert into deletion_subject (request_id, n, kind, value) select id, 0, 0, 'u4' from made`,
      [shop + 1, asked],
    )
    const users = async (query: string) =>
      (await viewer('GET', `/admin/v1/deletions${query}`)).body.deletions.map(
        ({ userId }: { userId: string }) => userId,
      )
    expect(await users('')).toEqual(['u4', 'u3', 'u2', 'u1'])
    expect(await users(`?workspaceId=${shop}`)).toEqual(['u3', 'u2', 'u1'])
    const [, second] = (await viewer('GET', '/admin/v1/deletions?limit=2')).body.deletions
    expect(await users(`?before=${second.id}`)).toEqual(['u2', 'u1'])
  })

  test('works from the command line', async () => {
    await pool.query('truncate deletion_request cascade')
    expect(await run('create', 'u9')).toMatchObject({ code: 0, err: '' })
    expect(await run('create', '--anonymous-id', 'a9', '--workspace', 'shop')).toMatchObject({
      code: 0,
      out: expect.stringMatching(/deletion request +\d+\nstate +received/),
    })
    const { out } = await run('list')
    expect(out.split('\n')[0]).toMatch(/^ID +USER +ANONYMOUS ID +IDS +KIND +BY +STATE +RECEIVED$/)
    expect(out).toMatch(/- {2,}a9 +1 +delete_only +api +received +2026-03-01T12:00:00.000Z/)
    expect(out).toMatch(/u9 +- +1 +delete_only +api/)
    const id = /request +(\d+)/.exec((await run('create', 'u10', 'u11', '--suppress')).out)?.[1]
    expect((await run('show', id ?? '')).out).toMatch(
      /kind +suppress_with_delete[\s\S]*profile +pending/,
    )
    expect((await cli(['suppress', 'u12'])).out).toMatch(/state +received/)
    expect((await cli(['unsuppress', 'u12', '--anonymous-id', 'a12'])).out).toMatch(/ids +2/)
    expect((await run('create')).code).toBe(2)
    expect((await run('erase', 'u9')).code).toBe(2)
  })
})
