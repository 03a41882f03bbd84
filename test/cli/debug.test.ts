// `millrace debug` as a user runs it: a process, its output, its exit code.
import pino from 'pino'
import { afterAll, describe, expect, test } from 'vitest'
import { openDebugger, type Told } from '../../src/debugger/debugger.ts'
import { startTestAdmin } from '../admin/start.ts'
import { type CommandRun, runCommand } from '../support/command.ts'
import { until } from '../support/until.ts'

describe('millrace debug', async () => {
  const { admin, pool, url, databaseUrl } = await startTestAdmin()
  await admin('POST', '/admin/v1/workspaces', { name: 'shop' })
  await admin('POST', '/admin/v1/sources', { name: 'web', class: 'server' })
  const logger = pino({ level: 'silent' })
  const debugging = await openDebugger({ pool, clock: () => new Date(), logger })
  afterAll(debugging.close)

  const run = (...args: readonly string[]): CommandRun =>
    runCommand(['debug', ...args], {
      MILLRACE_DATABASE_URL: databaseUrl,
      MILLRACE_ADMIN_PORT: new URL(url).port,
    })
  const told = (over: Partial<Told>): Told => ({
    ...{ step: 'accepted', at: Date.UTC(2026, 2, 1, 12), reason: null, type: 'track' },
    ...{
      event: 'Order Completed',
      messageId: 'order-of-jane',
      call: { userId: 'jane@example.com' },
    },
    ...over,
  })

  test('shows each call in columns as it happens, until Ctrl-C, and leaves no token behind', async () => {
    const command = run('web', '--calls')
    await command.until(/^TIME +STEP +TYPE +EVENT +REASON +MESSAGE ID$/m)
    await until(() => debugging.isWatched(1))
    debugging.tell(1, [
      told({}),
      told({ step: 'rejected', reason: 'no_user_anon_id', event: 'Evil \u001b[2J', call: 7 }),
    ])
    await command.until(/rejected.*\n.*\n/)
    command.kill('SIGINT')
    expect(await command.ended).toBe(0)
    expect(command.err()).toBe('')
    expect(command.out().split('\n').slice(1, -1)).toEqual([
      '12:00:00.000  accepted   track     Order Completed               -                         or…13',
      '    {"userId":"ja…16"}',
      '12:00:00.000  rejected   track     Evil [2J                      no_user_anon_id           or…13',
      '    7',
    ])
    const { rows } = await pool.query<{ name: string }>(
      'select name from admin_token order by name',
    )
    expect(rows.map(({ name }) => name)).toEqual(['environment', 'watcher'])
  })

  test('prints lines of JSON, as many and of such as were asked for', async () => {
    const command = run('web', '--json', '--limit', '1', '--step', 'rejected')
    expect(await command.ended).toBe(0)
    expect(
      command
        .out()
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line)),
    ).toMatchObject([{ step: 'rejected', reason: 'no_user_anon_id', event: 'Evil [2J', call: 7 }])
  })

  test('says what it cannot do', async () => {
    const nobody = run('nobody')
    expect([await nobody.ended, nobody.err().trim()]).toEqual([
      1,
      'there is no source named "nobody"',
    ])
    const step = run('web', '--step', 'lost')
    expect(await step.ended).toBe(2)
    expect(step.err()).toContain('step')
    const limit = run('web', '--limit', 'all')
    expect([await limit.ended, limit.err().trim()]).toEqual([2, '--limit takes a number from 1'])
  })
})
