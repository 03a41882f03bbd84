// The dashboard in Chromium: signing in, what goes on and how far it is, and steering it.
import { expect, inject, test } from 'vitest'
import { until } from '../support/until.ts'
import { scriptOf, startDriver } from './driver.ts'
import { freshId, openLine } from './line.ts'

const { node, chromium } = inject('runtimes')
const { adminUrl, token } = inject('millrace')

const ask = async (method: 'GET' | 'POST', path: string, body?: object) => {
  const response = await fetch(`${adminUrl}/admin/v1${path}`, {
    method,
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  })
  expect(response.status, path).toBeLessThan(300)
  // biome-ignore lint/suspicious/noExplicitAny: tests look into answers of any form
  return (await response.json()) as any
}

const send = async (collectUrl: string, writeKey: string, userIds: readonly string[]) => {
  const response = await fetch(`${collectUrl}/v1/batch`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      authorization: `Basic ${Buffer.from(`${writeKey}:`).toString('base64')}`,
    },
    body: JSON.stringify({
      batch: userIds.map((userId) => ({ type: 'track', event: 'Ordered', userId })),
    }),
  })
  expect(response.status).toBe(200)
}

test.skipIf(node === null || chromium === null)(
  'the dashboard shows how long work goes, steers it, and keeps out who has no token',
  async () => {
    const [name, writeKey, userId] = [freshId('dashboard'), freshId('wk'), freshId('u')]
    const line = await openLine(name, [{ name: 'web', class: 'server', writeKey }])
    await send(
      line.collectUrl,
      writeKey,
      Array.from({ length: 20 }, () => userId),
    )
    await until(() => line.bodiesOf(userId).length === 20, 'all calls are delivered')
    const { workspaces } = await ask('GET', '/workspaces')
    const workspace = workspaces.find((each: { name: string }) => each.name === name)
    const { destinations } = await ask('GET', `/destinations?workspaceId=${workspace.id}`)
    const replay = await ask('POST', '/replays', {
      destinationId: destinations[0].id,
      since: '2020-01-01T00:00:00Z',
      userIds: [userId],
      ratePerSecond: 0.01,
    })
    const imported = await ask('POST', '/imports', {
      writeKey,
      name: '<b>orders</b>.ndjson',
      bytes: 4_000_000,
    })
    const deletion = await ask('POST', '/deletions', {
      workspaceId: workspace.id,
      kind: 'suppress_only',
      userIds: [freshId('forgotten')],
    })
    await until(
      async () => (await ask('GET', `/deletions/${deletion.id}`)).state === 'finished',
      'the suppression is in force',
    )
    const viewer = await ask('POST', '/tokens', { name, role: 'viewer' })

    const driven = await startDriver([node ?? '', scriptOf('browser/dashboard.mjs')], {
      host: adminUrl,
      ...{ writeKey, userId, kind: 'dashboard', chromium, token, viewer: viewer.token },
      replay: `replays/${replay.id}`,
      import: `imports/${imported.id}`,
      deletion: `deletions/${deletion.id}`,
      screenshots: process.env['MILLRACE_TEST_SCREENSHOTS'],
    })
    await driven.finish()

    expect(driven.outcome).toMatchObject({
      errors: [],
      strange: [],
      refusal: expect.stringContaining('sign in with another'),
      summary: expect.stringMatching(/^\d+ going on$/),
      replay: expect.stringMatching(`^Replay ${replay.id} to Webhooks running Pause Cancel`),
      imported: expect.stringContaining(`Import ${imported.id} of <b>orders</b>.ndjson`),
      share: 0,
      asked: expect.stringContaining('cannot go on'),
      steps: 0,
      kept: 0,
      forbidden: expect.stringContaining('admin'),
      overflow: 0,
    })
    const { deletion: shown } = driven.outcome
    expect(shown).toContain(`Suppression ${deletion.id} finished`)
    expect((await ask('GET', `/replays/${replay.id}`)).state).toBe('cancelled')
    expect((await ask('GET', `/imports/${imported.id}`)).state).toBe('running')
    await ask('POST', `/imports/${imported.id}/cancel`)
    await line.close()
  },
)
