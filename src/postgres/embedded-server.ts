// The embedded server's process: made on a fresh cluster, started, watched and stopped.
import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { chown, mkdir, readdir, rename, rm, stat } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import type { Binaries } from './embedded-binaries.ts'
import { keepServerLog, type ServerLog } from './embedded-log.ts'
import { clearCluster, ownerSettingOfThisProcess } from './embedded-orphan.ts'
import { exists, failed, ifMissing, leavePointer, type Place } from './embedded-place.ts'

const run = promisify(execFile)

const limits = {
  /** Recovery after a crash reads up to `max_wal_size`. */
  readyMs: 300_000,
  /** How long processes of a server that was killed may take to notice. */
  takeOverMs: 20_000,
  fastShutdownMs: 20_000,
  /** An initdb that takes longer is none. */
  draftMs: 600_000,
}

/** Modest: a laptop runs this beside everything else. fsync stays on, as in any database. */
const defaults: Readonly<Record<string, string>> = {
  listen_addresses: '',
  unix_socket_permissions: '0700',
  max_connections: '64',
  shared_buffers: '128MB',
  max_wal_size: '1GB',
  // Of what these binaries have, pglz: it took more CPU than all that was logged. Space is bounded above.
  wal_compression: 'off',
  checkpoint_timeout: '10min',
  // Workers would share memory through /dev/shm, which is 64 MB in a container.
  max_parallel_workers_per_gather: '0',
  jit: 'off',
  timezone: 'UTC',
  log_timezone: 'UTC',
  log_checkpoints: 'off',
  // A failed statement is its caller's to report, and its text may hold a user's data.
  log_min_error_statement: 'panic',
}

/** False when another start made the pointer first: then there is another place to look at. */
export const makeCluster = async (place: Place, { initdb }: Binaries): Promise<boolean> => {
  const { cluster, owner } = place
  if (await exists(join(cluster, 'PG_VERSION'))) return true
  await removeOldDrafts(cluster)
  const draft = `${cluster}.new-${randomBytes(4).toString('hex')}`
  await mkdir(draft, { mode: 0o700 })
  if (owner) await chown(draft, owner.uid, owner.gid)
  const args = ['-D', draft, '-U', 'millrace', '-A', 'trust', '-E', 'UTF8', '--locale=C']
  try {
    await run(initdb, args, { ...owner, cwd: '/', env: {} })
    await rename(draft, cluster)
  } catch (error) {
    await rm(draft, { recursive: true, force: true })
    if (await exists(join(cluster, 'PG_VERSION'))) return true
    const { stderr } = error as { stderr?: string }
    throw failed(`initdb could not make ${cluster}: ${stderr?.trim() ?? error}`, error)
  }
  if (await leavePointer(place)) return true
  for (const path of [cluster, place.sockets]) await rm(path, { recursive: true, force: true })
  return false
}

/** What an initdb that was killed left for this data directory, now or under an earlier name. */
const removeOldDrafts = async (cluster: string): Promise<void> => {
  const directory = dirname(cluster)
  const prefix = basename(cluster).replace(/-[0-9a-f]{8}$/, '')
  for (const name of await readdir(directory)) {
    if (!name.startsWith(prefix) || !/\.new-[0-9a-f]{8}$/.test(name)) continue
    const path = join(directory, name)
    const found = await stat(path).catch(ifMissing(null))
    if (found !== null && Date.now() - found.mtimeMs > limits.draftMs)
      await rm(path, { recursive: true, force: true })
  }
}

type Started = { readonly server: ChildProcess; readonly done: Promise<void> }

type Options = {
  readonly place: Place
  readonly binaries: Binaries
  readonly settings: Readonly<Record<string, string>>
}

/** Clears the cluster of what an earlier process left, then starts; tried again while that dies away. */
export const startServer = async (options: Options): Promise<Started> => {
  const { cluster } = options.place
  const deadline = performance.now() + limits.takeOverMs
  for (;;) {
    await clearCluster(cluster)
    const { server, log } = await spawnServer(options)
    const outcome = await ready(server, log)
    if (outcome === 'ready') {
      stopAtExit(server)
      return { server, done: ended(server, log) }
    }
    const contested = /already exists|still in use/.test(log.tail())
    if (!contested || performance.now() > deadline)
      throw failed(`Postgres does not start on ${cluster}: ${log.tail() || outcome}`)
    await sleep(100)
  }
}

const spawnServer = async ({ place, binaries, settings }: Options) => {
  const all = {
    ...defaults,
    unix_socket_directories: place.sockets,
    ...(await ownerSettingOfThisProcess()),
    ...settings,
  }
  const args = Object.entries(all).flatMap(([name, value]) => ['-c', `${name}=${value}`])
  const server = spawn(binaries.postgres, ['-D', place.cluster, ...args], {
    ...place.owner,
    stdio: ['ignore', 'ignore', 'pipe'],
    // A session of its own: Ctrl-C is for this process, which stops the server last.
    detached: true,
    cwd: '/',
    env: {},
  })
  return { server, log: keepServerLog(server.stderr, join(place.dataDir, 'postgres.log')) }
}

const ready = (server: ChildProcess, log: ServerLog) =>
  new Promise<'ready' | string>((resolve) => {
    const timer = setTimeout(() => {
      server.kill('SIGQUIT')
      resolve(`it was not ready after ${limits.readyMs} ms`)
    }, limits.readyMs)
    const settle = (outcome: string) => {
      clearTimeout(timer)
      resolve(outcome)
    }
    server.stderr?.on('data', () => {
      if (log.tail().includes('ready to accept connections')) settle('ready')
    })
    server.once('error', (error) => settle(error.message))
    server.once('close', (code, signal) => settle(`it ended with ${signal ?? code}`))
  })

const ended = (server: ChildProcess, log: ServerLog): Promise<void> =>
  new Promise((resolve, reject) => {
    server.once('exit', (code, signal) => {
      if (stopping.has(server)) resolve()
      else reject(failed(`the embedded Postgres ended with ${signal ?? code}: ${log.tail()}`))
    })
  })

const stopping = new WeakSet<ChildProcess>()

/** A process that ends without stopping it, by a bug or in a hurry, leaves no server behind. */
const stopAtExit = (server: ChildProcess) => {
  const hook = () => server.kill('SIGINT')
  process.once('exit', hook)
  server.once('exit', () => process.off('exit', hook))
}

/** Fast shutdown; if that hangs, an immediate one, from which Postgres recovers at the next start. */
export const stopServer = async ({ server, done }: Started): Promise<void> => {
  stopping.add(server)
  server.kill('SIGINT')
  const timer = setTimeout(() => server.kill('SIGQUIT'), limits.fastShutdownMs)
  // When it had ended before, `done` has told whoever watches it.
  await done.catch(() => undefined)
  clearTimeout(timer)
}
