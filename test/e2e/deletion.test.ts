// A deletion from the call to its request: recorded once, sent to nobody, and refused to whoever has the write key only.
import { afterAll, expect, test } from 'vitest'
import { acceptsWriteKey, apply } from '../support/applied.ts'
import { cloneDatabase } from '../support/database.ts'
import { startProcess } from '../support/process.ts'
import { openReceiver } from '../support/receiver.ts'
import { until } from '../support/until.ts'

const receiver = await openReceiver()
const { url: databaseUrl } = await cloneDatabase()
const millrace = await startProcess({
  databaseUrl,
  time: 'running',
  env: { MILLRACE_PUBLIC_URL: 'https://events.example' },
})

afterAll(async () => {
  await millrace.stop()
  await receiver.close()
})

const post = async (path: string, key: string, body: object) => {
  const response = await fetch(`${millrace.collectUrl}${path}`, {
    method: 'POST',
    headers: { authorization: `Basic ${Buffer.from(`${key}:`).toString('base64')}` },
    body: JSON.stringify(body),
  })
  return { status: response.status, json: await response.json() }
}

const deletions = async () => {
  const response = await fetch(`${millrace.adminUrl}/admin/v1/deletions`, {
    headers: { authorization: `Bearer ${millrace.token}` },
  })
  return ((await response.json()) as { deletions: readonly object[] }).deletions
}

test('a delete call with the secret key becomes one request, and no webhook', async () => {
  await apply(millrace, {
    workspaces: [
      {
        name: 'shop',
        sources: [
          { name: 'web', class: 'server', writeKey: 'wk_del', secretKey: 'sk_del_0123456789' },
        ],
        destinations: [
          {
            name: 'Webhooks',
            sources: ['web'],
            sharedSecret: 'secret',
            webhooks: [{ url: `${receiver.url}/hook` }],
          },
        ],
      },
    ],
  })
  await acceptsWriteKey(millrace.collectUrl, 'wk_del')
  expect(await post('/v1/delete', 'wk_del', { userId: 'u1' })).toMatchObject({
    status: 400,
    json: { code: 'unknown_type' },
  })
  const aDelete = { type: 'delete', userId: 'u1', messageId: 'd1' }
  const after = { type: 'track', userId: 'u1', event: 'After', messageId: 'm1' }
  for (const batch of [[aDelete, aDelete, after], [aDelete]])
    expect((await post('/v1/batch', 'sk_del_0123456789', { batch })).status).toBe(200)
  await until(async () => (await deletions()).length > 0)
  await until(() => receiver.requests.length > 0)
  // One visitor's messages are sent in order: what stands before `After` would have come before it.
  expect(receiver.requests.map(({ json }) => [json['type'], json['event']])).toEqual([
    ['track', 'After'],
  ])
  expect(await deletions()).toMatchObject([
    { userId: 'u1', anonymousId: null, origin: 'call', state: 'received' },
  ])
})

test('the settings document names the public URL the process was given', async () => {
  const response = await fetch(`${millrace.collectUrl}/v1/projects/wk_del/settings`)
  const { integrations } = (await response.json()) as {
    readonly integrations: Readonly<Record<string, object>>
  }
  expect(integrations['Segment.io']).toMatchObject({
    apiHost: 'events.example/v1',
    protocol: 'https',
  })
})
