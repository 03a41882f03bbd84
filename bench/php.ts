// php: what one call adds to a page through each consumer, against json_encode of the same call and nothing else.
import { spawn } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type Figure, partOf, type Run, runPairs, type Span } from './pairs.ts'

/** The most a call may cost, in times of json_encode: about three times what a busy machine of two cores measured. */
const budgets = { file: 60, lib_curl: 200, fork_curl: 6_000, socket: 1_500 } as const
type Consumer = keyof typeof budgets

const callsPerPage = 10
const page = fileURLToPath(new URL('php/page.php', import.meta.url))

export const run = async (span: Span): Promise<void> => {
  const folder = await mkdtemp(join(tmpdir(), 'millrace-bench-'))
  const collector = await openCollector()
  const consumers = Object.keys(budgets) as readonly Consumer[]
  try {
    const reached: number[] = []
    for (const consumer of consumers) {
      const bare = pages({ consumer: null, folder, url: '' })
      const product = pages({ consumer, folder, url: collector.url })
      const options = {
        name: `php ${consumer}`,
        budget: budgets[consumer],
        lower: true,
        bare,
        product,
      }
      const unit = 'nanoseconds per call'
      reached.push(
        (await runPairs({ ...options, unit, ...partOf(span, consumers.length) })) /
          budgets[consumer],
      )
    }
    // Each consumer by its own measure; the one that is nearest to its budget stands for all.
    console.log(`php ratio ${Math.max(...reached).toFixed(3)} budget 1`)
  } finally {
    collector.server.close()
    collector.server.closeAllConnections()
    await rm(folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 })
  }
}

type Pages = { readonly consumer: Consumer | null; readonly folder: string; readonly url: string }

const pages =
  ({ consumer, folder, url }: Pages): Run =>
  async (seconds): Promise<Figure> => {
    const options = {
      host: url,
      filename: join(folder, 'analytics.log'),
      spool: join(folder, 'spool'),
      // A busy machine's timeouts are not the library's cost.
      timeout: 30,
    }
    const order = { consumer, writeKey: 'wk_bench', options, callsPerPage, seconds }
    const told = await runPhp(JSON.stringify(order))
    const { calls, errors, nanoseconds } = JSON.parse(told) as Readonly<Record<string, number>>
    if (calls === undefined || nanoseconds === undefined || calls === 0)
      throw new Error(`php told ${told}`)
    if (errors !== 0) throw new Error(`${errors} errors were reported through ${consumer}`)
    const rate = nanoseconds / calls
    return { rate, notes: { microseconds: rate / 1_000, calls } }
  }

const runPhp = (input: string) =>
  new Promise<string>((resolve, reject) => {
    const child = spawn('php', [page], { stdio: ['pipe', 'pipe', 'inherit'] })
    let out = ''
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      out += text
    })
    child.once('error', reject)
    child.once('close', (code) =>
      code === 0 ? resolve(out) : reject(new Error(`php ended with ${code}`)),
    )
    child.stdin.end(input)
  })

/** Takes everything at once: what is measured is the page. */
const openCollector = async (): Promise<{ readonly url: string; readonly server: Server }> => {
  const server = createServer((request, response) => {
    request.resume().once('end', () => {
      response.writeHead(200, { 'content-type': 'application/json' }).end('{"success":true}')
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, server }
}
