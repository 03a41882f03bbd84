// Millrace as a process under virtual time: the line from a call to a webhook, across kill -9.
import { afterAll, expect, test } from 'vitest'
import { ownFolder } from '../support/folder.ts'
import { type MillraceProcess, removeDataDir, startProcess } from '../support/process.ts'
import { openReceiver } from '../support/receiver.ts'
import { until } from '../support/until.ts'

const dataDir = await ownFolder('process')
const receiver = await openReceiver({ secret: 's3cret' })
const arrived = (type: string) =>
  receiver.requests.map(({ json }) => json).filter((json) => json['type'] === type)

const processes: MillraceProcess[] = []

afterAll(async () => {
  for (const millrace of processes) await millrace.kill9()
  await receiver.close()
  await removeDataDir(dataDir)
})

const startHere = async (time: string) => {
  const millrace = await startProcess({ dataDir, time: new Date(time) })
  processes.push(millrace)
  return millrace
}

const writeKey = 'wk_process_web'
const file = {
  workspaces: [
    {
      name: 'shop',
      sources: [{ name: 'web', class: 'server', writeKey }],
      destinations: [
        {
          name: 'Hooks',
          type: 'webhook',
          sources: ['web'],
          sharedSecret: 's3cret',
          webhooks: [{ url: receiver.url, headers: {} }],
        },
      ],
      audiences: [
        {
          name: 'Recent Buyers',
          destinations: ['Hooks'],
          syncEvery: '2h30m',
          where: {
            event: { name: 'Order Completed', window: { last: '1d' } },
            count: { op: 'gte', value: 1 },
          },
        },
      ],
    },
  ],
}

const admin = async (millrace: MillraceProcess, path: string, body: unknown) => {
  const response = await fetch(new URL(path, millrace.adminUrl), {
    method: 'POST',
    headers: {
      authorization: `Bearer ${millrace.token}`,
      'content-type': 'application/json',
    },
    body: JSON.stringify(body),
  })
  const text = await response.text()
  expect(response.status, text).toBe(200)
  return JSON.parse(text) as { emitted: number }
}

const track = async (millrace: MillraceProcess, messageId: string) => {
  const response = await fetch(new URL('/v1/track', millrace.collectUrl), {
    method: 'POST',
    headers: { authorization: `Basic ${btoa(`${writeKey}:`)}` },
    body: JSON.stringify({ messageId, userId: 'u1', event: 'Order Completed' }),
  })
  return response.status
}

/** Changes as the receiver sees them: a process killed after a post may post the same again. */
const memberships = () =>
  arrived('identify')
    .map(({ traits }) => (traits as Record<string, unknown>)['recent_buyers'])
    .filter((value, at, all) => value !== undefined && value !== all[at - 1])

test('a call reaches the webhook; a member leaves as time passes, across kill -9', async () => {
  const first = await startHere('2026-03-01T00:00:00Z')
  await admin(first, '/admin/v1/apply', file)
  await until(async () => (await track(first, 'm1')) === 200)
  await until(() => arrived('track').length > 0)
  await admin(first, '/admin/v1/sync', {})
  await until(() => memberships().length > 0)
  expect(memberships()).toEqual([true])
  await first.kill9()
  expect(await first.done).toEqual({ code: null, signal: 'SIGKILL' })

  const second = await startHere('2026-03-01T12:00:00Z')
  expect((await admin(second, '/admin/v1/sync', {})).emitted).toBe(0)
  await second.setTime(new Date('2026-03-02T00:01:00Z'))
  // The scheduled sync may come first; either tells it, and only once.
  await admin(second, '/admin/v1/sync', {})
  await until(() => memberships().length > 1)
  expect(memberships()).toEqual([true, false])
  expect(receiver.badSignatures).toEqual([])
  expect(arrived('track')[0]).toMatchObject({ userId: 'u1', event: 'Order Completed' })
  await second.stop()
})
