import { describe, expect, test } from 'vitest'
import { routesOf } from '../../src/admin/admin.ts'
import type { AdminDeps } from '../../src/admin/deps.ts'
import { clientOf, startTestAdmin } from './start.ts'

describe('who may do what', async () => {
  const { admin, viewer, nobody, url } = await startTestAdmin()
  await admin('POST', '/admin/v1/workspaces', { name: 'shop' })
  const routes = routesOf({} as AdminDeps).map(({ method, path, access }) => ({
    method,
    access,
    path: path.replace(/:\w+/, '1'),
  }))

  test('without a token, or with a wrong one, only the open routes answer', async () => {
    const stranger = clientOf(url, 'at_wrong')
    for (const { method, path, access } of routes)
      for (const client of [nobody, stranger]) {
        const answer = await client(method, path)
        if (access === 'open') expect([path, answer.status]).toEqual([path, 200])
        else {
          expect([path, answer.status]).toEqual([path, 401])
          expect(answer.body.error.code).toBe('unauthorized')
          expect(answer.headers.get('www-authenticate')).toBe('Bearer')
        }
      }
  })

  test('a viewer reads, and is refused by every route that changes or shows tokens', async () => {
    for (const { method, path, access } of routes) {
      const answer = await viewer(method, path)
      if (access === 'admin') expect([path, answer.body.error.code]).toEqual([path, 'forbidden'])
      else expect([path, [200, 404].includes(answer.status)]).toEqual([path, true])
      expect(access === 'viewer' ? method : 'GET').toBe('GET')
    }
    expect((await admin('GET', '/admin/v1/workspaces')).body.workspaces).toHaveLength(1)
  })

  test('a viewer may not apply, not even dry, whatever the body', async () => {
    const answer = await viewer('POST', '/admin/v1/apply?dryRun=true', { nonsense: true })
    expect(answer.status).toBe(403)
  })

  test('a token is made, works, is never shown again, and is refused once deleted', async () => {
    const made = await admin('POST', '/admin/v1/tokens', { name: 'ci', role: 'admin' })
    expect(made.status).toBe(201)
    const ci = clientOf(url, made.body.token)
    expect((await ci('POST', '/admin/v1/workspaces', { name: 'by ci' })).status).toBe(201)
    const [entry] = (await ci('GET', '/admin/v1/audit?limit=1')).body.entries
    expect(entry).toMatchObject({ actor: 'ci', action: 'created', kind: 'workspace' })
    const listed = await admin('GET', '/admin/v1/tokens')
    const names = listed.body.tokens.map(({ name }: { name: string }) => name)
    expect(names).toEqual(['environment', 'watcher', 'ci'])
    expect(JSON.stringify(listed.body)).not.toContain(made.body.token)
    expect((await admin('POST', '/admin/v1/tokens', { name: 'ci', role: 'viewer' })).status).toBe(
      409,
    )
    expect((await admin('DELETE', `/admin/v1/tokens/${made.body.id}`)).status).toBe(204)
    expect((await ci('GET', '/admin/v1/workspaces')).status).toBe(401)
    const own = `/admin/v1/tokens/${listed.body.tokens[0].id}`
    expect((await admin('DELETE', own)).body.error.code).toBe('last_admin_token')
  })
})
