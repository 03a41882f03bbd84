// A real S3 server over a folder, for the archive's tests: Versity's gateway, built once from its published module.
import { execFile } from 'node:child_process'
import { mkdir, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import type { TestProject } from 'vitest/node'
import { setup as startPostgres } from './global-setup.ts'
import { cached, freePort } from './kafka-cache.ts'
import { own } from './kafka-process.ts'
import { startAll } from './stops.ts'

const version = 'v1.8.0'
const buildMs = 600_000

export const s3Credentials = { accessKeyId: 'millrace', secretAccessKey: 'of-the-tests-alone' }
export const s3Bucket = 'events'

declare module 'vitest' {
  // biome-ignore lint/style/useConsistentTypeDefinitions: merging into vitest's type needs an interface
  export interface ProvidedContext {
    /** Where the server answers, and the folder its buckets are in. */
    s3: { readonly endpoint: string; readonly folder: string }
  }
}

/** What is missing fails the run: a suite of its own is never skipped. */
export const setup = (project: TestProject): Promise<() => Promise<void>> =>
  startAll(
    () => startPostgres(project),
    async () => {
      const { endpoint, folder, stop } = await startGateway()
      project.provide('s3', { endpoint, folder })
      return stop
    },
  )

/** `go` wants its caches where they are; only the program goes to ours. */
const built = async (): Promise<string> => {
  const folder = await cached(`versitygw-${version}`, async (partial) => {
    const module = `github.com/versity/versitygw/cmd/versitygw@${version}`
    const env = { ...process.env, GOBIN: partial }
    await promisify(execFile)('go', ['install', module], { env, timeout: buildMs })
  })
  return join(folder, 'versitygw')
}

const startMs = 30_000

const startGateway = async () => {
  const program = await built()
  const scratch = await mkdtemp(join(tmpdir(), 'millrace-s3-'))
  const [folder, meta] = [join(scratch, 'buckets'), join(scratch, 'meta')]
  await mkdir(join(folder, s3Bucket), { recursive: true })
  await mkdir(meta)
  const port = await freePort()
  const { accessKeyId, secretAccessKey } = s3Credentials
  const keys = ['--access', accessKeyId, '--secret', secretAccessKey]
  const serving = ['--port', `127.0.0.1:${port}`, '--quiet', '--keep-alive']
  // Beside the buckets: not every disk keeps attributes of files.
  const storing = ['posix', '--sidecar', meta, folder]
  const server = await own([program, ...keys, ...serving, ...storing], join(scratch, 'log'))
  const stop = async () => {
    await server.end('SIGKILL')
    await rm(scratch, { recursive: true, force: true })
  }
  const endpoint = `http://127.0.0.1:${port}`
  const until = performance.now() + startMs
  while (!(await answers(endpoint))) {
    if (!server.running() || performance.now() > until) {
      const output = await server.output()
      await stop()
      throw new Error(`the S3 server did not start:\n${output}`)
    }
    await sleep(50)
  }
  return { endpoint, folder, stop }
}

/** Refused without a signature, and that is an answer. */
const answers = (endpoint: string): Promise<boolean> =>
  fetch(endpoint).then(
    async (response) => {
      await response.arrayBuffer()
      return true
    },
    () => false,
  )
