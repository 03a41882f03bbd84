// Runs one driver, a small program around a published client, with an order, and reads its outcome.
import { spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'

export type Order = {
  readonly host: string
  readonly writeKey: string
  readonly kind: string
  readonly userId: string
  /** Whom the alias call names. */
  readonly newId?: string
  /** When the calls happened, where the client can be told. */
  readonly at?: string
  /** How many calls of kind `many`. */
  readonly count?: number
  readonly gzip?: boolean
  readonly [extra: string]: unknown
}

export type Outcome = {
  readonly sent: number
  /** What the client told its application. */
  readonly errors: readonly unknown[]
  /** What the client or the runtime printed besides. */
  readonly printed: string
  readonly [extra: string]: unknown
}

export type Driven = {
  readonly outcome: Outcome
  /** One more order, for a driver that takes more. */
  say(order: Order): void
  /** Lets the driver end; rejects when it does not end well. */
  finish(): Promise<void>
}

const driverTimeoutMs = 360_000

export const scriptOf = (path: string) => fileURLToPath(new URL(path, import.meta.url))

export const drive = async (command: readonly string[], order: Order): Promise<Outcome> => {
  const { outcome, finish } = await startDriver(command, order)
  await finish()
  return outcome
}

/** For drivers that hold something open, a browser, until they are told to end. */
export const startDriver = async (command: readonly string[], order: Order): Promise<Driven> => {
  const [program = '', ...args] = command
  const child = spawn(program, [...args, JSON.stringify(order)], {
    stdio: ['pipe', 'pipe', 'pipe'],
    timeout: driverTimeoutMs,
    env: withoutProxies(process.env),
  })
  let printed = ''
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    printed += text
  })
  const ended = new Promise<void>((resolve, reject) => {
    child.once('error', reject)
    child.once('close', (code, signal) =>
      code === 0
        ? resolve()
        : reject(new Error(`${command.join(' ')} ended with ${signal ?? code}:\n${printed}`)),
    )
  })
  const outcome = new Promise<Outcome>((resolve, reject) => {
    createInterface(child.stdout).on('line', (line) => {
      if (line.startsWith('{"')) resolve({ ...JSON.parse(line), printed })
      else printed += `${line}\n`
    })
    ended.then(() => reject(new Error(`${program} told no outcome:\n${printed}`)), reject)
  })
  return {
    outcome: await outcome,
    say: (next) => {
      child.stdin.write(`${JSON.stringify(next)}\n`)
    },
    finish: () => {
      child.stdin.end()
      return ended
    },
  }
}

/** Everything is on the loopback; a machine's proxy has no part in it. */
const withoutProxies = (env: NodeJS.ProcessEnv): NodeJS.ProcessEnv =>
  Object.fromEntries(Object.entries(env).filter(([name]) => !/_proxy$/i.test(name)))
