// The embedded server: who runs it, where it lives, and what happens when processes die around it.
import { type ChildProcess, fork, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, readdir, readFile, rm, stat, utimes, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { Readable } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterEach, expect, test } from 'vitest'
import { findPostgres, startPostgres } from '../../src/postgres/embedded.ts'
import { keepServerLog } from '../../src/postgres/embedded-log.ts'
import { bornOf } from '../../src/postgres/embedded-orphan.ts'
import { openPool } from '../../src/postgres/pool.ts'
import { ownFolder } from '../support/folder.ts'

const isRoot = process.getuid?.() === 0
const cleanups: (() => Promise<unknown>)[] = []

afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup()
})

/** A data directory that does not exist yet, in a directory only its owner may enter. */
const aPrivateDirectory = async () => {
  const home = await ownFolder('home')
  const dataDir = join(home, 'clone', 'data')
  cleanups.push(async () => {
    const cluster = await clusterOf(dataDir).catch(() => null)
    if (cluster !== null)
      for (const path of [cluster, `${cluster}.sockets`])
        await rm(path, { recursive: true, force: true })
    await rm(home, { recursive: true, force: true })
  })
  return dataDir
}

const clusterOf = async (dataDir: string): Promise<string> => {
  const pointer = await readFile(join(dataDir, 'postgres.json'), 'utf8').catch(() => null)
  return pointer === null ? join(dataDir, 'postgres') : JSON.parse(pointer).cluster
}

const serverPid = async (dataDir: string) =>
  Number((await readFile(join(await clusterOf(dataDir), 'postmaster.pid'), 'utf8')).split('\n')[0])

type News = { readonly state: string; readonly url?: string; readonly message?: string }

const startChild = async (dataDir: string, detached = false) => {
  const child: ChildProcess = fork(
    new URL('../support/embedded-child.ts', import.meta.url),
    [dataDir],
    { detached, execArgv: [] },
  )
  const ended = once(child, 'exit')
  const [news] = (await once(child, 'message')) as [News]
  cleanups.push(async () => {
    if (child.connected) child.send('stop')
    await ended
  })
  return { child, ended, news }
}

const killChild = async ({ child, ended }: Awaited<ReturnType<typeof startChild>>) => {
  child.kill('SIGKILL')
  await ended
}

const gone = async (pid: number, deadlineMs = 20_000) => {
  for (const until = Date.now() + deadlineMs; Date.now() < until; await sleep(20))
    if ((await bornOf(pid)) === null) return true
  return false
}

const writeRow = async (url: string, value: string) => {
  const pool = openPool({ url, connectionsMax: 1, name: 'test' })
  await pool.query('create table if not exists kept (value text)')
  await pool.query('insert into kept values ($1)', [value])
  await pool.close()
}

const readRows = async (url: string) => {
  const pool = openPool({ url, connectionsMax: 1, name: 'test' })
  const { rows } = await pool.query<{ value: string }>('select value from kept order by value')
  await pool.close()
  return rows.map(({ value }) => value)
}

test('a restart keeps the data, also under a directory only its owner may enter', async () => {
  const dataDir = await aPrivateDirectory()
  const first = await startPostgres({ dataDir })
  await writeRow(first.url, 'first')
  await first.stop()
  const second = await startPostgres({ dataDir })
  await writeRow(second.url, 'second')
  expect(await readRows(second.url)).toEqual(['first', 'second'])
  await second.stop()
})

test.runIf(isRoot)('as root the server runs as another user', async () => {
  const dataDir = await aPrivateDirectory()
  const server = await startPostgres({ dataDir })
  expect((await stat(`/proc/${await serverPid(dataDir)}`)).uid).not.toBe(0)
  expect(dirname(await clusterOf(dataDir))).not.toBe(dataDir)
  await server.stop()
})

test.runIf(isRoot)(
  'as root the cluster stays in a data directory that others can reach',
  async () => {
    const home = await ownFolder('open')
    const server = await startPostgres({ dataDir: home })
    expect(await clusterOf(home)).toBe(join(home, 'postgres'))
    await server.stop()
  },
)

test('the cluster is UTF8 with the C locale, syncs, and listens on a socket only', async () => {
  const dataDir = await aPrivateDirectory()
  const server = await startPostgres({ dataDir })
  const pool = openPool({ url: server.url, connectionsMax: 1, name: 'test' })
  const { rows } = await pool.query(`select pg_encoding_to_char(encoding) as encoding, datcollate,
    current_setting('fsync') as fsync, current_setting('synchronous_commit') as synchronous_commit,
    current_setting('listen_addresses') as listen_addresses
    from pg_database where datname = current_database()`)
  expect(rows).toEqual([
    {
      encoding: 'UTF8',
      datcollate: 'C',
      fsync: 'on',
      synchronous_commit: 'on',
      listen_addresses: '',
    },
  ])
  await pool.close()
  await server.stop()
})

test('the server left by a killed process is stopped and its data taken over', async () => {
  const dataDir = await aPrivateDirectory()
  const before = await startChild(dataDir)
  expect(before.news).toMatchObject({ state: 'ready' })
  await writeRow(before.news.url ?? '', 'before')
  const orphan = await serverPid(dataDir)
  await killChild(before)
  expect(await bornOf(orphan)).not.toBeNull()
  const after = await startPostgres({ dataDir })
  expect(await bornOf(orphan)).toBeNull()
  expect(await readRows(after.url)).toEqual(['before'])
  await after.stop()
})

test('a second process is refused by name and the first goes on', async () => {
  const dataDir = await aPrivateDirectory()
  const first = await startChild(dataDir)
  await writeRow(first.news.url ?? '', 'kept')
  await expect(startPostgres({ dataDir })).rejects.toMatchObject({
    code: 'embedded_postgres_failed',
    message: expect.stringMatching(
      new RegExp(`in use by another Millrace \\(process ${first.child.pid}\\).*MILLRACE_DATA_DIR`),
    ),
  })
  expect(await findPostgres(dataDir)).toBe(first.news.url)
  expect(await readRows(first.news.url ?? '')).toEqual(['kept'])
})

test('of processes that start at once on an empty directory exactly one runs', async () => {
  const dataDir = await aPrivateDirectory()
  await mkdir(dataDir, { recursive: true })
  const children = await Promise.all([1, 2, 3].map(() => startChild(dataDir)))
  const states = children.map(({ news }) => news.state).sort()
  expect(states).toEqual(['ready', 'refused', 'refused'])
  const ready = children.find(({ news }) => news.state === 'ready')
  await writeRow(ready?.news.url ?? '', 'one')
  expect(await findPostgres(dataDir)).toBe(ready?.news.url)
})

test('a pid file whose pid now belongs to somebody else does not stop the start', async () => {
  const dataDir = await aPrivateDirectory()
  const before = await startChild(dataDir)
  await writeRow(before.news.url ?? '', 'before')
  const server = await serverPid(dataDir)
  await killChild(before)
  process.kill(server, 'SIGKILL')
  expect(await gone(server)).toBe(true)
  const cluster = await clusterOf(dataDir)
  const { uid, gid } = await stat(cluster)
  // Of the same user as the server: Postgres by itself would take it for a live one.
  const stranger = spawn('sleep', ['600'], isRoot ? { uid, gid } : {})
  cleanups.push(async () => stranger.kill('SIGKILL'))
  const pidFile = join(cluster, 'postmaster.pid')
  const text = await readFile(pidFile, 'utf8')
  await writeFile(pidFile, text.replace(/^\d+/, String(stranger.pid)))
  const after = await startPostgres({ dataDir })
  expect(await readRows(after.url)).toEqual(['before'])
  expect(stranger.exitCode).toBeNull()
  await after.stop()
})

test('a server that dies by itself is told, and the next start recovers', async () => {
  const dataDir = await aPrivateDirectory()
  const server = await startPostgres({ dataDir })
  await writeRow(server.url, 'before')
  process.kill(await serverPid(dataDir), 'SIGKILL')
  await expect(server.done).rejects.toMatchObject({ code: 'embedded_postgres_failed' })
  await server.stop()
  const next = await startPostgres({ dataDir })
  expect(await readRows(next.url)).toEqual(['before'])
  await next.stop()
})

test('Ctrl-C on the group does not reach the server', async () => {
  const dataDir = await aPrivateDirectory()
  const child = await startChild(dataDir, true)
  process.kill(-(child.child.pid ?? Number.NaN), 'SIGINT')
  await writeRow(child.news.url ?? '', 'after Ctrl-C')
  expect(await readRows(child.news.url ?? '')).toEqual(['after Ctrl-C'])
})

test('what a killed initdb left is removed once it is old', async () => {
  const home = await ownFolder('draft')
  const [old, fresh] = [join(home, 'postgres.new-00000000'), join(home, 'postgres.new-11111111')]
  await mkdir(old)
  await mkdir(fresh)
  const hourAgo = Date.now() / 1_000 - 3_600
  await utimes(old, hourAgo, hourAgo)
  await (await startPostgres({ dataDir: home })).stop()
  const names = await readdir(home)
  expect(names).not.toContain('postgres.new-00000000')
  expect(names).toContain('postgres.new-11111111')
})

test('without a running server there is none to find', async () => {
  const dataDir = await aPrivateDirectory()
  expect(await findPostgres(dataDir)).toBeNull()
  await (await startPostgres({ dataDir })).stop()
  expect(await findPostgres(dataDir)).toBeNull()
})

test("the server's log stays under twice its limit", async () => {
  const directory = await ownFolder('log')
  const path = join(directory, 'postgres.log')
  const lines = Array.from({ length: 500 }, (_, at) => Buffer.from(`line ${at}\n`))
  const stream = Readable.from(lines)
  const log = keepServerLog(stream, path, 1_000)
  await once(stream, 'close')
  expect((await stat(path)).size).toBeLessThanOrEqual(1_000)
  expect((await stat(`${path}.1`)).size).toBeLessThanOrEqual(1_000)
  expect(await readFile(path, 'utf8')).toMatch(/line 499\n$/)
  expect(log.tail()).toMatch(/line 499$/)
})
