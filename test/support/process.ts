// Starts Millrace as a process that can be killed with -9 while its clock is driven from here.
import { type ChildProcess, fork } from 'node:child_process'
import { readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { clearCluster } from '../../src/postgres/embedded-orphan.ts'
import type { ChildStart, News, Order } from './child.ts'
import { aSecretKey } from './configuration.ts'

export type ProcessOptions = {
  /** Embedded Postgres here; or else a database by URL. */
  readonly dataDir?: string
  readonly databaseUrl?: string
  readonly kafkaBrokers?: readonly string[]
  /** What the clock says at first; it stands still until `setTime`, unless it is to run. The present when absent. */
  readonly time?: Date | 'running'
  /** More MILLRACE_ variables. */
  readonly env?: Readonly<Record<string, string>>
}

export type MillraceProcess = {
  readonly collectUrl: string
  readonly adminUrl: string
  /** Admin. */
  readonly token: string
  readonly pid: number
  /** Resolves once the process's clock says so. */
  setTime(at: Date): Promise<void>
  /** Resolves when the process is gone; an embedded server stays, as it would. */
  kill9(): Promise<void>
  /** SIGTERM; rejects when the process does not end with 0. */
  stop(): Promise<void>
  /** Resolves when the process ended, however it did. */
  readonly done: Promise<Ended>
  /** The end of its log. */
  logTail(): string
}

export type Ended = { readonly code: number | null; readonly signal: NodeJS.Signals | null }

export const processToken = 'at_test_0123456789abcdef'

export const startProcess = async (options: ProcessOptions): Promise<MillraceProcess> => {
  const { time = new Date() } = options
  const start: ChildStart = {
    env: envOf(options),
    time: time === 'running' ? null : time.getTime(),
  }
  const child = fork(new URL('./child.ts', import.meta.url), [JSON.stringify(start)], {
    execArgv: [],
    env: pick(process.env, ['PATH', 'HOME', 'TMPDIR', 'LANG', 'NODE_COMPILE_CACHE']),
    stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
  })
  const logTail = keepTail(child)
  const done = new Promise<Ended>((resolve) => {
    child.once('exit', (code, signal) => resolve({ code, signal }))
  })
  const started = await startedOf(child, logTail)
  return {
    collectUrl: started.collectUrl ?? '',
    adminUrl: started.adminUrl ?? '',
    token: processToken,
    pid: child.pid ?? Number.NaN,
    setTime: timeSetter(child, logTail),
    kill9: async () => {
      child.kill('SIGKILL')
      await done
    },
    stop: async () => {
      child.kill('SIGTERM')
      const { code, signal } = await done
      if (code !== 0) throw new Error(`Millrace ended with ${signal ?? code}:\n${logTail()}`)
    },
    done,
    logTail,
  }
}

/** Removes a data directory with its cluster, stopping a server that a killed process left there. */
export const removeDataDir = async (dataDir: string): Promise<void> => {
  const pointer = await readFile(join(dataDir, 'postgres.json'), 'utf8').catch(() => null)
  const cluster = pointer === null ? join(dataDir, 'postgres') : JSON.parse(pointer).cluster
  await clearCluster(cluster)
  for (const path of [cluster, `${cluster}.sockets`, dataDir])
    await rm(path, { recursive: true, force: true })
}

const envOf = (options: ProcessOptions): Readonly<Record<string, string>> => ({
  MILLRACE_COLLECT_PORT: '0',
  MILLRACE_ADMIN_PORT: '0',
  MILLRACE_ADMIN_TOKEN: processToken,
  MILLRACE_ALLOW_PRIVATE_DESTINATIONS: 'true',
  MILLRACE_LOG_LEVEL: 'warn',
  ...(options.dataDir === undefined ? {} : { MILLRACE_DATA_DIR: options.dataDir }),
  ...(options.databaseUrl === undefined
    ? {}
    : { MILLRACE_DATABASE_URL: options.databaseUrl, MILLRACE_SECRET_KEY: aSecretKey }),
  ...(options.kafkaBrokers === undefined
    ? {}
    : { MILLRACE_KAFKA_BROKERS: options.kafkaBrokers.join(',') }),
  ...options.env,
})

const pick = (env: NodeJS.ProcessEnv, names: readonly string[]): NodeJS.ProcessEnv =>
  Object.fromEntries(names.flatMap((name) => (env[name] === undefined ? [] : [[name, env[name]]])))

const tailCharactersMax = 65_536

const keepTail = (child: ChildProcess) => {
  let tail = ''
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    tail = (tail + text).slice(-tailCharactersMax)
  })
  return () => tail
}

const startedOf = (child: ChildProcess, logTail: () => string) =>
  new Promise<Extract<News, { type: 'started' }>>((resolve, reject) => {
    const fail = (why: string) => reject(new Error(`Millrace did not start: ${why}\n${logTail()}`))
    child.once('message', (news: News) => {
      if (news.type === 'started') resolve(news)
      else fail(JSON.stringify(news))
    })
    child.once('error', (error) => fail(error.message))
    child.once('exit', (code, signal) => fail(`it ended with ${signal ?? code}`))
  })

const timeSetter = (child: ChildProcess, logTail: () => string) => {
  let last = 0
  const waiting = new Map<number, { resolve: () => void; reject: (error: Error) => void }>()
  child.on('message', (news: News) => {
    if (news.type !== 'time') return
    waiting.get(news.id)?.resolve()
    waiting.delete(news.id)
  })
  const fail = () => {
    for (const { reject } of waiting.values())
      reject(new Error(`Millrace ended before it took the time:\n${logTail()}`))
    waiting.clear()
  }
  child.once('exit', fail)
  return (at: Date) =>
    new Promise<void>((resolve, reject) => {
      const id = ++last
      waiting.set(id, { resolve, reject })
      const order: Order = { type: 'time', id, at: at.getTime() }
      if (child.exitCode !== null || child.signalCode !== null) fail()
      else child.send(order, (error) => error && fail())
    })
}
