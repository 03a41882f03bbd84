// The programs on the page for receivers: taken out of it as they stand there, and run by the command it gives.
import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { type AddressInfo, connect, createServer } from 'node:net'
import { join } from 'node:path'

export type Program = {
  readonly file: string
  readonly text: string
  /** As a shell takes it, in the folder the file is in. */
  readonly command: string
}

const page = new URL('../../docs/receivers.md', import.meta.url)

/** A block that names its file is a program; the table before it says how each is run. */
export const loadPrograms = async (): Promise<readonly Program[]> => {
  const markdown = await readFile(page, 'utf8')
  const commands = [...markdown.matchAll(/^\| [^|]+ \| `([^`]+)` \|/gm)].map(([, it = '']) => it)
  return [...markdown.matchAll(/^```\w+ (\S+)\n(.*?)^```$/gms)].map(([, file = '', text = '']) => {
    const command = commands.find((each) => each.split(' ').includes(file))
    if (command === undefined) throw new Error(`the page does not say how to run ${file}`)
    return { file, text, command }
  })
}

/** What a program's runtime must be able to do, and the package that brings it. */
const runtimes: Readonly<Record<string, readonly [check: string, packages: string]>> = {
  node: ['node --version', 'node'],
  python3: ['python3 -c "import http.server"', 'python3'],
  php: ['php -r "exit(0);"', 'php-cli'],
  go: ['go version', 'golang'],
  ruby: ['ruby -r openssl -r webrick -e 0', 'ruby'],
  java: ['javac -version', 'default-jdk-headless'],
}

/** Of what is missing here, the packages by Debian's names; `null`: it can run. */
export const missingFor = (command: string): string | null => {
  const [check, packages] = runtimes[command.split(' ')[0] ?? ''] ?? ['false', command]
  try {
    execFileSync('/bin/sh', ['-c', check], { stdio: 'ignore', timeout: 60_000 })
    return null
  } catch {
    return packages
  }
}

export type Running = {
  readonly url: string
  /** What it kept, in bytes: one line for each body. */
  kept(): Buffer
  stop(): Promise<void>
}

/** `ended`: it did not start, with its exit code. */
export type Start =
  | { readonly running: Running }
  | { readonly ended: number; readonly said: string }

type Place = { readonly folder: string; readonly secret: string | null }

export const startProgram = async (program: Program, place: Place): Promise<Running> => {
  let said = ''
  // Another process may have taken the port by the time the program asks for it.
  for (let left = 3; left > 0; left -= 1) {
    const start = await tryProgram(program, place)
    if ('running' in start) return start.running
    said = start.said
  }
  throw new Error(`${program.command} ended by itself:\n${said}`)
}

export const tryProgram = async (program: Program, place: Place): Promise<Start> => {
  await mkdir(place.folder, { recursive: true })
  await writeFile(join(place.folder, program.file), program.text)
  const port = await freePort()
  const { MILLRACE_SECRET: _, ...env } = process.env
  const child = spawn('/bin/sh', ['-c', program.command], {
    cwd: place.folder,
    env: {
      ...env,
      // What a killed compiler leaves goes with the folder.
      TMPDIR: place.folder,
      PORT: String(port),
      ...(place.secret === null ? {} : { MILLRACE_SECRET: place.secret }),
    },
    stdio: ['ignore', 'pipe', 'pipe'],
    // A group of its own: what a shell or a compiler started ends with it.
    detached: true,
  })
  const kept: Buffer[] = []
  let said = ''
  child.stdout.on('data', (chunk: Buffer) => kept.push(chunk))
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    said = (said + text).slice(-10_000)
  })
  const closed = once(child, 'close')
  if (!(await listening(child, port))) {
    await stopped(child, closed)
    return { ended: child.exitCode ?? 1, said }
  }
  const running = {
    url: `http://127.0.0.1:${port}/hook`,
    kept: () => Buffer.concat(kept),
    stop: () => stopped(child, closed),
  }
  return { running }
}

const stopped = async (child: ChildProcess, closed: Promise<unknown>): Promise<void> => {
  try {
    if (child.pid !== undefined) process.kill(-child.pid, 'SIGKILL')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
  }
  await closed
}

const startMs = 240_000

/** Whether it takes connections, and is still there then; compiling may come first. */
const listening = async (child: ChildProcess, port: number): Promise<boolean> => {
  const endsAt = performance.now() + startMs
  while (child.exitCode === null && performance.now() < endsAt) {
    if (await connects(port)) return child.exitCode === null
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
  return false
}

const connects = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1')
    socket.once('connect', () => resolve(true)).once('error', () => resolve(false))
    socket.once('connect', () => socket.destroy())
  })

const freePort = async (): Promise<number> => {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  return port
}
