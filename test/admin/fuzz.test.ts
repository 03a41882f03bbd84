import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { routesOf } from '../../src/admin/admin.ts'
import type { AdminDeps } from '../../src/admin/deps.ts'
import { seed } from '../support/seed.ts'
import { startTestAdmin } from './start.ts'

describe(`whatever is sent (SEED=${seed})`, async () => {
  const { admin } = await startTestAdmin()
  await admin('POST', '/admin/v1/workspaces', { name: 'shop' })
  const writing = routesOf({} as AdminDeps).filter(({ method }) => method !== 'GET')

  const hostile = fc.oneof(
    fc.constantFrom('', '\0', '\ud800', 'x'.repeat(3_000), 'All', '1m', '2h30m', 'web', 'admin'),
    fc.constantFrom('http://a.test', 'http://', 'HTTP://[::1]:0/', 'http://a.test/\ud800'),
    fc.constantFrom<unknown>(null, true, false, 0, -1, 1.5, 1e300, 2 ** 31, 1, 2),
    fc.string({ unit: 'binary', maxLength: 30 }),
    fc.json({ maxDepth: 3 }).map((text): unknown => JSON.parse(text)),
  )
  const webhook = fc.record(
    {
      url: hostile,
      headers: fc.dictionary(fc.string({ unit: 'binary' }), hostile, { maxKeys: 3 }),
    },
    { requiredKeys: [] },
  )
  const where = fc.record(
    {
      trait: hostile,
      op: fc.constantFrom('eq', 'one_of', 'exists'),
      value: hostile,
      all: fc.array(hostile),
    },
    { requiredKeys: [] },
  )
  const list = (of: fc.Arbitrary<unknown>) => fc.oneof(fc.array(of, { maxLength: 6 }), hostile)
  const entity = fc.record(
    {
      name: fc.oneof(fc.constantFrom('a', 'b', 'c'), hostile),
      workspaceId: hostile,
      class: fc.oneof(fc.constantFrom('web', 'mobile'), hostile),
      role: hostile,
      writeKey: hostile,
      secretKey: hostile,
      sharedSecret: hostile,
      historicalAfter: hostile,
      syncEvery: hostile,
      webhooks: list(webhook),
      sourceIds: list(hostile),
      destinationIds: list(hostile),
      audienceIds: list(hostile),
      where: fc.oneof(where, hostile),
    },
    { requiredKeys: [] },
  )
  const named = (keys: readonly string[]) =>
    entity.map((value) =>
      Object.fromEntries(Object.entries(value).filter(([key]) => keys.includes(key))),
    )
  const fields: readonly (readonly [string, readonly string[]])[] = [
    ['/workspaces', ['name']],
    ['/sources', ['name', 'class', 'writeKey', 'secretKey']],
    ['/destinations', ['name', 'sharedSecret', 'historicalAfter', 'webhooks', 'sourceIds']],
    ['/audiences', ['name', 'where', 'syncEvery', 'destinationIds']],
    ['/tokens', ['name', 'role']],
  ]
  const file = fc.record({
    workspaces: list(
      fc.record(
        {
          name: fc.constantFrom('shop', 'b'),
          sources: list(named(['name', 'class', 'writeKey'])),
          destinations: list(named(['name', 'webhooks', 'sharedSecret'])),
          audiences: list(named(['name', 'where', 'syncEvery'])),
        },
        { requiredKeys: [] },
      ),
    ),
  })
  const event = { event: { name: 'Ordered' }, count: { op: 'gte', value: 2 } }
  /** Right in every field, so that what is hostile meets what is there. */
  const right: readonly (readonly [string, object])[] = [
    ['/workspaces', {}],
    ['/sources', { workspaceId: 1, class: 'web' }],
    ['/destinations', { workspaceId: 1, webhooks: [{ url: 'http://127.0.0.1:9/' }] }],
    ['/audiences', { workspaceId: 1, where: event }],
    ['/tokens', { role: 'viewer' }],
  ]
  const bodyFor = (path: string) => {
    if (path.endsWith('/apply')) return file
    const known = fields.find(([part]) => path.includes(part))
    const whole = right.find(([part]) => path.endsWith(part))
    return fc.oneof(
      hostile,
      entity,
      ...(known ? [named(known[1])] : []),
      ...(whole ? [fc.constantFrom('a', 'b', 'c').map((name) => ({ ...whole[1], name }))] : []),
    )
  }
  const request = fc.constantFrom(...writing).chain(({ method, path }) =>
    fc.record({
      method: fc.constant(method),
      path: fc
        .constantFrom('1', '2', '3', '2147483647', '2147483648', '%00', '-1')
        // Not the tokens it speaks with.
        .filter((id) => !(path.includes('/tokens/') && ['1', '2'].includes(id)))
        .map((id) => path.replace(/:\w+/, id) + (path.endsWith('sync') ? '?wait=false' : '')),
      body: bodyFor(path),
    }),
  )

  test('is answered, refused with a code, and never a failure of ours', async () => {
    const property = fc.asyncProperty(request, async ({ method, path, body }) => {
      const answer = await admin(method, path, body)
      expect([200, 201, 202, 204, 400, 404, 409, 415]).toContain(answer.status)
      if (answer.status >= 400) expect(answer.body.error.code).toEqual(expect.any(String))
    })
    await fc.assert(property, { numRuns: 600 })
  })

  // It would prove nothing if everything were refused, and what is right must still be taken after it.
  test('what is right is still taken', async () => {
    const at = (path: string) => `/admin/v1${path}`
    const made = await admin('POST', at('/workspaces'), { name: 'right' })
    expect(made.status).toBe(201)
    const source = { workspaceId: made.body.id, name: 'web', class: 'web' }
    const { status, body } = await admin('POST', at('/sources'), source)
    expect(status).toBe(201)
    expect((await admin('PATCH', at(`/sources/${body.id}`), { enabled: false })).status).toBe(200)
    expect((await admin('DELETE', at(`/sources/${body.id}`))).status).toBe(204)
  })

  test('everything can still be read', async () => {
    for (const kind of ['workspaces', 'sources', 'destinations', 'audiences', 'tokens', 'audit'])
      expect((await admin('GET', `/admin/v1/${kind}`)).status).toBe(200)
  })
})
