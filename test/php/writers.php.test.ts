// Many workers and one log file, while send.php takes it away again and again; and one worker with many calls.
import { readFile, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect } from 'vitest'
import { freshId, once } from '../clients/line.ts'
import { until } from '../support/until.ts'
import { lineOfFile, writeKey } from './line.ts'
import { appendCalls, besides, send } from './log.ts'
import { expectQuiet, type Order, pagePath, phpTest, runPage, tempFolder } from './page.ts'
import { answering, openServer } from './servers.ts'

const held = lineOfFile()
const workers = 50
const callsEach = 40

const callsOf = (userId: string, worker: number): Order['calls'] =>
  Array.from({ length: callsEach }, (_, at) => [
    'track',
    // Lines of many lengths: a torn one would show.
    {
      userId: `${userId}-${worker * callsEach + at}`,
      event: 'Written',
      properties: { n: worker * callsEach + at, text: 'é'.repeat((at * 97) % 9_000) },
    },
  ])

const write = (userId: string, filename: string) =>
  Promise.all(
    Array.from({ length: workers }, (_, worker) => {
      const options = { consumer: 'file', filename, host: 'http://127.0.0.1:9' }
      return runPage({ writeKey, options, calls: callsOf(userId, worker) })
    }),
  )

const all = Array.from({ length: workers * callsEach }, (_, n) => n)

phpTest('fifty writers of one log lose nothing, and nobody else may read it', async () => {
  const [userId, log] = [freshId('user'), join(await tempFolder(), 'analytics.log')]
  const pages = await write(userId, log)
  expect(pages.flatMap(({ heard }) => heard)).toEqual([])
  const lines = (await readFile(log, 'utf8'))
    .trimEnd()
    .split('\n')
    .map((text) => JSON.parse(text))
  expect(lines.map((call) => call.properties.n).toSorted((a, b) => a - b)).toEqual(all)
  expect((await stat(log)).mode & 0o777).toBe(0o600)
})

const takenMin = 3

phpTest('nor do they lose anything while send.php takes the log away from them', async () => {
  const [userId, folder] = [freshId('user'), await tempFolder()]
  const [log, stopFile] = [join(folder, 'analytics.log'), join(folder, 'stop')]
  const sending = { writeKey, log, host: held.line.collectUrl }
  const options = { consumer: 'file', filename: log, host: 'http://127.0.0.1:9' }
  const order = { writeKey, options, calls: [], userId, stopFile, callsMax: 200 }
  const pages = Array.from({ length: workers }, (_, worker) =>
    runPage({ ...order, worker }, { script: pagePath('writer') }),
  )
  for (let taken = 0; taken < takenMin; ) {
    const ran = await send(sending)
    expectQuiet(ran)
    taken += ran.out.includes(' 0 calls') ? 0 : 1
  }
  await writeFile(stopFile, '')
  const written = await Promise.all(pages)
  expect(written.flatMap(({ heard }) => heard)).toEqual([])
  expectQuiet(await send(sending))
  expect(await besides(log)).toEqual(['stop'])

  const wanted = written.flatMap(({ figures }, worker) =>
    Array.from({ length: figures['taken'] ?? 0 }, (_, n) => `${userId}-${worker}-${n}`),
  )
  const arrived = () =>
    held.line.bodies().filter((body) => String(body['userId']).startsWith(`${userId}-`))
  const idsIn = (bodies: readonly Record<string, unknown>[]) =>
    bodies.map((body) => String(body['userId']))
  await until(() => new Set(idsIn(arrived())).size >= wanted.length, 'all calls arrive', 120_000)
  const sentinel = freshId('sentinel')
  await appendCalls(log, sentinel, [0, 1])
  expectQuiet(await send(sending))
  await until(() => held.line.bodies().some((body) => body['userId'] === `${sentinel}-0`))
  expect(idsIn(await once(held.line, arrived())).toSorted()).toEqual(wanted.toSorted())
})

describe('many calls of one process', { timeout: 400_000 }, () => {
  const growthMax = 1 << 20
  const ways = [
    { consumer: 'lib_curl', count: 100_000 },
    // A process for each hundred takes most of its time, and shows no more with more of them.
    { consumer: 'fork_curl', count: 5_000 },
    // A connection each, and the machine has only so many ports.
    { consumer: 'socket', count: 20_000 },
    { consumer: 'file', count: 100_000 },
  ]

  phpTest.for(ways)(
    '$count through $consumer take no more memory than a tenth of them',
    async ({ consumer, count }) => {
      const accept = answering(200, {}, '{"success":true}')
      let received = 0
      const server = await openServer((response, seen, index) => {
        received += JSON.parse(seen.body.toString('utf8')).batch.length
        server.seen.length = 0
        accept(response, seen, index)
      })
      const filename = join(await tempFolder(), 'analytics.log')
      // A busy machine may take long to accept one of so many connections.
      const options = { consumer, host: server.url, filename, timeout: 30 }
      const order = { writeKey, options, calls: [], count, mark: count / 10 }
      const { figures, heard } = await runPage(order, { script: pagePath('many') })
      expect(heard).toEqual([])
      expect(figures['taken']).toBe(count)
      expect(figures['peakBytes']).toBeLessThan((figures['peakBytesAtMark'] ?? 0) + growthMax)
      if (consumer === 'file')
        expect((await readFile(filename, 'utf8')).split('\n')).toHaveLength(count + 1)
      else await until(() => received === count, `${count} calls come, ${received} did`, 120_000)
    },
  )
})
