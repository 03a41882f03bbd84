// One command on a bare machine: what it prints works, a second start keeps the data, and stopping drains.
import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { afterEach, expect, test } from 'vitest'
import { findPostgres } from '../../src/postgres/embedded.ts'
import { knownCluster } from '../../src/postgres/embedded-place.ts'
import { type CommandRun, runCommand } from '../support/command.ts'
import { ownFolder } from '../support/folder.ts'
import { removeDataDir } from '../support/process.ts'

const run = promisify(execFile)
const directories: string[] = []
const running: CommandRun[] = []

afterEach(async () => {
  for (const command of running.splice(0)) {
    command.kill('SIGKILL')
    await command.ended
  }
  for (const dataDir of directories.splice(0)) await removeDataDir(dataDir)
})

const aDataDir = async () => {
  const dataDir = await ownFolder('smoke')
  directories.push(dataDir)
  return dataDir
}

const start = (dataDir: string, env: Readonly<Record<string, string>> = {}) => {
  const command = runCommand(['serve'], {
    MILLRACE_DATA_DIR: dataDir,
    MILLRACE_COLLECT_PORT: '0',
    MILLRACE_ADMIN_PORT: '0',
    ...env,
  })
  running.push(command)
  return command
}

const field = (command: CommandRun, name: string) =>
  new RegExp(`^ {2}${name} +(\\S+)`, 'm').exec(command.out())?.[1] ?? ''

/** Pastes the printed line into a shell. */
const paste = async (command: CommandRun) => {
  const [line] = await command.until(/^ {2}curl .*$/m)
  return (await run('sh', ['-c', line])).stdout
}

const serverPid = async (dataDir: string) => {
  const cluster = (await knownCluster(dataDir)) ?? ''
  return Number.parseInt(await readFile(join(cluster, 'postmaster.pid'), 'utf8'), 10)
}

const acceptedCalls = async (command: CommandRun) => {
  const text = await (await fetch(`${field(command, 'Admin')}/metrics`)).text()
  return Number(
    /^millrace_pipeline_calls_total\{[^}]*step="appended"[^}]*\} (\d+)/m.exec(text)?.[1],
  )
}

test('the first start prints what works when pasted; the second keeps it', async () => {
  const dataDir = await aDataDir()
  const first = start(dataDir)
  expect(await paste(first)).toBe('{"success":true}')
  const writeKey = field(first, 'Write key')
  const authorization = `Bearer ${field(first, 'Admin token')}`
  const sources = await fetch(`${field(first, 'Admin')}/admin/v1/sources`, {
    headers: { authorization },
  })
  expect(await sources.text()).toContain(writeKey)
  expect(await acceptedCalls(first)).toBe(1)
  first.kill('SIGTERM')
  expect(await first.ended).toBe(0)

  const second = start(dataDir)
  expect(await paste(second)).toBe('{"success":true}')
  expect(field(second, 'Write key')).toBe(writeKey)
  expect(second.out()).toContain('as printed at the first start')
  const again = await fetch(`${field(second, 'Admin')}/admin/v1/sources`, {
    headers: { authorization },
  })
  expect(again.status).toBe(200)
  second.kill('SIGTERM')
  expect(await second.ended).toBe(0)
})

test('a Ctrl-C that comes twice at once drains like one', async () => {
  const command = start(await aDataDir())
  await command.until(/curl/)
  command.kill('SIGINT')
  await sleep(50)
  command.kill('SIGINT')
  expect(await command.ended).toBe(0)
  expect(command.err()).toContain('millrace.stopped')
})

test('kill -9 and start again recovers', async () => {
  const dataDir = await aDataDir()
  const first = start(dataDir)
  expect(await paste(first)).toBe('{"success":true}')
  first.kill('SIGKILL')
  await first.ended
  const second = start(dataDir)
  expect(await paste(second)).toBe('{"success":true}')
  expect(field(second, 'Write key')).toBe(field(first, 'Write key'))
  second.kill('SIGTERM')
  expect(await second.ended).toBe(0)
})

test('a second start on one data directory is refused, and the first goes on', async () => {
  const dataDir = await aDataDir()
  const first = start(dataDir)
  await first.until(/curl/)
  const second = start(dataDir)
  expect(await second.ended).toBe(1)
  expect(second.err()).toMatch(new RegExp(`in use by another Millrace \\(process ${first.pid}\\)`))
  expect(await paste(first)).toBe('{"success":true}')
})

test('a taken port is refused by the name of its setting, and leaves no server behind', async () => {
  const taken = createServer().listen(0, '127.0.0.1')
  await new Promise((resolve) => taken.once('listening', resolve))
  const { port } = taken.address() as { port: number }
  const dataDir = await aDataDir()
  for (const variable of ['MILLRACE_COLLECT_PORT', 'MILLRACE_ADMIN_PORT']) {
    const command = start(dataDir, { [variable]: String(port) })
    expect(await command.ended).toBe(1)
    expect(command.err()).toContain(`port ${port} is taken`)
    expect(command.err()).toContain(variable)
  }
  taken.close()
  expect(await findPostgres(dataDir)).toBeNull()
})

test('when the embedded server dies, the process ends with 1, and the next start recovers', async () => {
  const dataDir = await aDataDir()
  const first = start(dataDir)
  expect(await paste(first)).toBe('{"success":true}')
  process.kill(await serverPid(dataDir), 'SIGKILL')
  expect(await first.ended).toBe(1)
  expect(first.err()).toContain('millrace.died')
  const second = start(dataDir)
  expect(await paste(second)).toBe('{"success":true}')
})

test('logs are JSON lines on standard error, without keys, tokens or bodies', async () => {
  const command = start(await aDataDir(), { MILLRACE_LOG_LEVEL: 'debug' })
  await paste(command)
  command.kill('SIGTERM')
  expect(await command.ended).toBe(0)
  const lines = command.err().trim().split('\n')
  expect(lines.map((line) => JSON.parse(line).msg)).toContain('millrace.started')
  for (const name of ['Write key', 'Secret key', 'Admin token'])
    expect(command.err()).not.toContain(field(command, name))
  expect(command.err()).not.toContain('Order Completed')
})

test('a refused configuration ends with 2 and names every problem', async () => {
  const command = start(await aDataDir(), {
    MILLRACE_COLLECT_PORT: 'http',
    MILLRACE_COLECT_PORT: '80',
  })
  expect(await command.ended).toBe(2)
  expect(command.err()).toContain('MILLRACE_COLLECT_PORT must be a port')
  expect(command.err()).toContain('MILLRACE_COLECT_PORT is not a setting')
})

test('an unknown command ends with 2; help ends with 0 and lists them', async () => {
  const unknown = runCommand(['sevre'], {})
  expect(await unknown.ended).toBe(2)
  const help = runCommand(['help'], {})
  expect(await help.ended).toBe(0)
  for (const name of ['serve', 'migrate', 'demo', 'apply', 'source', 'destination', 'sync'])
    expect(help.out()).toContain(`millrace ${name} `)
})
