// The debugger where one process serves the admin API and another collects and projects.
import { afterAll, expect, test } from 'vitest'
import { watchSource } from '../debugger/watching.ts'
import { acceptsWriteKey, apply } from '../support/applied.ts'
import { cloneDatabase } from '../support/database.ts'
import { startProcess } from '../support/process.ts'
import { until } from '../support/until.ts'

const { url: databaseUrl } = await cloneDatabase()
const start = (roles: string) =>
  startProcess({ databaseUrl, time: 'running', env: { MILLRACE_ROLES: roles } })
const serving = await start('admin')
const collecting = await start('collect,project')

afterAll(collecting.stop)

test('a watcher hears of calls that other processes collect and project, masked', async () => {
  await apply(serving, {
    workspaces: [
      { name: 'shop', sources: [{ name: 'web', class: 'server', writeKey: 'wk_debug' }] },
    ],
  })
  await acceptsWriteKey(collecting.collectUrl, 'wk_debug')
  const answer = await fetch(`${serving.adminUrl}/admin/v1/sources`, {
    headers: { authorization: `Bearer ${serving.token}` },
  })
  const { sources } = (await answer.json()) as { sources: { id: number; writeKey: string }[] }
  const { id } = sources.find(({ writeKey }) => writeKey === 'wk_debug') ?? {}
  const watcher = await watchSource(`${serving.adminUrl}/admin/v1/sources/${id}/debugger`, serving)
  const send = () =>
    fetch(`${collecting.collectUrl}/v1/identify`, {
      method: 'POST',
      headers: { authorization: `Basic ${btoa('wk_debug:')}` },
      body: JSON.stringify({
        userId: 'jane@example.com',
        messageId: 'one',
        traits: { plan: 'pro' },
      }),
    })
  // Sent until the watch is in force there.
  await until(async () => {
    await send()
    return watcher.calls().some(({ step }) => step === 'accepted')
  })
  await send()
  await until(() => watcher.calls().some(({ step }) => step === 'duplicate'))
  expect(watcher.calls()[0]).toMatchObject({ type: 'identify', call: { traits: { plan: '…3' } } })
  expect(watcher.text()).not.toContain('jane')
  await serving.stop()
  expect(await watcher.ended).toBe(true)
})
