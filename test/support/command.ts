// Runs the CLI as a user does: a process, its output, its exit code.
import { spawn } from 'node:child_process'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'

const entry = fileURLToPath(new URL('../../src/main.ts', import.meta.url))

export type CommandRun = {
  readonly pid: number
  out(): string
  err(): string
  kill(signal: NodeJS.Signals): void
  /** Resolves with the exit code, or the signal it ended with. */
  readonly ended: Promise<number | NodeJS.Signals>
  /** Waits until standard output matches; rejects when the process ends before. */
  until(pattern: RegExp): Promise<RegExpExecArray>
}

export const runCommand = (
  args: readonly string[],
  env: Readonly<Record<string, string>>,
  /** What standard input has; nothing when absent. */
  input: Uint8Array | null = null,
): CommandRun => {
  const { PATH = '', HOME = '/', NODE_COMPILE_CACHE } = process.env
  const child = spawn(process.execPath, [entry, ...args], {
    env: { PATH, HOME, NODE_COMPILE_CACHE, ...env },
    stdio: ['pipe', 'pipe', 'pipe'],
  })
  // A command that does not read it closes the pipe.
  child.stdin.on('error', () => undefined).end(input ?? undefined)
  let out = ''
  let err = ''
  let over = false
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    out += text
  })
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    err += text
  })
  const ended = new Promise<number | NodeJS.Signals>((resolve) => {
    child.once('close', (code, signal) => {
      over = true
      resolve(code ?? signal ?? 1)
    })
  })
  return {
    pid: child.pid ?? Number.NaN,
    out: () => out,
    err: () => err,
    kill: (signal) => child.kill(signal),
    ended,
    until: async (pattern) => {
      for (const deadline = Date.now() + 60_000; Date.now() < deadline; await sleep(20)) {
        const found = pattern.exec(out)
        if (found) return found
        if (over) break
      }
      throw new Error(`no ${pattern} in:\n${out}\n${err}`)
    },
  }
}
