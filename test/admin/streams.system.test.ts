// Streams of the admin API: how long one lasts, and who is cut off.
import { setTimeout as sleep } from 'node:timers/promises'
import pino from 'pino'
import { afterAll, describe, expect, test } from 'vitest'
import { openDebugger } from '../../src/debugger/debugger.ts'
import { watchSource } from '../debugger/watching.ts'
import { until } from '../support/until.ts'
import { startTestAdmin } from './start.ts'

const token = 'given-admin-token'

const aSourceOf = async (limits: Parameters<typeof startTestAdmin>[0]) => {
  const started = await startTestAdmin(limits)
  await started.admin('POST', '/admin/v1/workspaces', { name: 'shop' })
  await started.admin('POST', '/admin/v1/sources', { name: 'web', class: 'server' })
  return { ...started, path: `${started.url}/admin/v1/sources/1/debugger` }
}

describe('a stream that has lasted its time', async () => {
  const { path, lines } = await aSourceOf({ limits: { streamMsMax: 300 } })

  test('ends cleanly, for its client to resume', async () => {
    const watcher = await watchSource(path, { token })
    expect(await watcher.ended).toBe(true)
    expect(watcher.text()).toBe('retry: 2000\n\n')
    expect(lines.join('\n')).not.toMatch(/debugger\.broken|request\.failed/)
  })
})

describe('a stream that its client does not read', async () => {
  const { path, pool } = await aSourceOf({ limits: { stalledMsMax: 3_000 } })
  const logger = pino({ level: 'silent' })
  const debugging = await openDebugger({
    pool,
    clock: () => new Date(),
    logger,
    limits: { flushMs: 5 },
  })
  afterAll(debugging.close)

  test('is cut, and one that is read beside it goes on', async () => {
    const stalled = await fetch(path, { headers: { authorization: `Bearer ${token}` } })
    const watcher = await watchSource(path, { token })
    await until(() => debugging.isWatched(1))
    let isOver = false
    void watcher.ended.then(() => {
      isOver = true
    })
    const call = { list: Array(20).fill('x') }
    const filling = setInterval(() => {
      const told = {
        step: 'accepted',
        at: 0,
        reason: null,
        type: 'track',
        messageId: null,
      } as const
      debugging.tell(
        1,
        Array.from({ length: 400 }, () => ({ ...told, event: 'Filling', call })),
      )
    }, 20)
    // Far more than its sockets hold, and then far longer than it may take nothing.
    await until(() => watcher.text().length > 12_000_000)
    await sleep(7_000)
    // A broken connection, though there is ever more to read.
    await expect(stalled.text()).rejects.toThrow()
    clearInterval(filling)
    expect(isOver).toBe(false)
    await watcher.close()
  })
})
