// send.php as a scheduler runs it: what its exit codes, its files and the collector's end tell.
import { execFile } from 'node:child_process'
import { mkdir, readdir, readFile, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect } from 'vitest'
import { freshId, type Line, once, openLine } from '../clients/line.ts'
import { until } from '../support/until.ts'
import { appendCalls, besides, callOf, rejectsOf, send, startSend } from './log.ts'
import { complaintsIn, expectQuiet, phpTest, runPhp, sendPath, tempFolder } from './page.ts'
import { answering, authority, deadPort, openServer, openTls } from './servers.ts'

const writeKey = freshId('wk')
let line: Line

beforeAll(async () => {
  line = await openLine(freshId('send'), [{ name: 'server', class: 'server', writeKey }])
})

afterAll(() => line.close())

const taken = async (log: string) => (await besides(log)).filter((name) => name.endsWith('.taken'))

const freshLog = async () => join(await tempFolder(), 'analytics.log')

const bodiesOf = (userId: string) =>
  line.bodies().filter((body) => String(body['userId']).startsWith(`${userId}-`))

const numbersIn = (bodies: readonly Record<string, unknown>[]) =>
  bodies.map(({ properties }) => (properties as { readonly n: number }).n)

/** Whatever came twice would have come by the time a later call did. */
const expectNumbers = async (userId: string, count: number) => {
  await until(
    () => new Set(numbersIn(bodiesOf(userId))).size >= count,
    `${count} calls of ${userId} arrive`,
    120_000,
  )
  const log = await freshLog()
  const sentinel = freshId('sentinel')
  await appendCalls(log, sentinel, [0, 1])
  expectQuiet(await send({ writeKey, log, host: line.collectUrl }))
  await until(() => bodiesOf(sentinel).length > 0, 'the sentinel arrives')
  const numbers = numbersIn(await once(line, bodiesOf(userId)))
  expect(numbers.toSorted((a, b) => a - b)).toEqual(Array.from({ length: count }, (_, n) => n))
}

phpTest('a log is sent, removed, and every call of it arrives once', async () => {
  const [log, userId] = [await freshLog(), freshId('user')]
  await appendCalls(log, userId, [0, 250])

  const ran = await send({ writeKey, log, host: line.collectUrl })

  expectQuiet(ran)
  expect(ran.out).toBe('send.php: 250 calls accepted\n')
  expect(await besides(log)).toEqual([])
  await expectNumbers(userId, 250)
})

phpTest('a scheduler that passes --quiet hears nothing of success', async () => {
  const log = await freshLog()
  const options = { writeKey, log, host: line.collectUrl, args: ['--quiet'] }
  expect(await send(options)).toMatchObject({ code: 0, out: '', err: '' })
  await appendCalls(log, freshId('user'), [0, 3])
  expect(await send(options)).toMatchObject({ code: 0, out: '', err: '' })
})

phpTest('the key may come from the environment, which no process list shows', async () => {
  const log = await freshLog()
  await appendCalls(log, freshId('user'), [0, 3])
  const ran = await runPhp({
    script: sendPath,
    args: ['--file', log, '--host', line.collectUrl],
    env: { MILLRACE_WRITE_KEY: writeKey },
  })
  expectQuiet(ran)
  expect(ran.out).toContain('3 calls accepted')
})

phpTest('--dry-run tells what would be sent, and changes nothing', async () => {
  const log = await freshLog()
  await appendCalls(log, freshId('user'), [0, 250])
  await writeFile(log, 'no call\n', { flag: 'a' })
  const before = await readFile(log)
  const server = await openServer(answering(200))

  const ran = await send({ writeKey, log, host: server.url, args: ['--dry-run'] })

  expect(ran).toMatchObject({ code: 1, out: '' })
  expect(ran.err).toContain('250 calls would be sent in 3 requests, 1 line rejected')
  expect(await readFile(log)).toEqual(before)
  expect(await readdir(join(log, '..'))).toEqual(['analytics.log'])
  expect(server.seen).toEqual([])
})

phpTest(
  'lines that can never be accepted are kept with their reason, the others arrive',
  async () => {
    const [log, userId] = [await freshLog(), freshId('user')]
    await appendCalls(log, userId, [0, 2])
    const large = JSON.stringify({ ...callOf({ userId, n: 7 }), padding: 'x'.repeat(40_000) })
    const nobody = JSON.stringify({ type: 'track', event: 'Seen' })
    const giant = JSON.stringify({ ...callOf({ userId, n: 8 }), padding: 'x'.repeat(3_000_000) })
    await writeFile(log, `${large}\n${nobody}\n{"type":"tr\n${giant}\n`, { flag: 'a' })
    await appendCalls(log, userId, [2, 4])

    const ran = await send({ writeKey, log, host: line.collectUrl })

    expect(complaintsIn(ran)).toEqual([])
    expect(ran).toMatchObject({ code: 1, out: '' })
    expect(ran.err).toContain('4 calls accepted, 4 lines rejected')
    const rejects = await rejectsOf(log)
    expect(new Set(rejects.map(({ code }) => code))).toEqual(
      new Set(['invalid_json', 'line_too_long', 'call_too_large', 'no_user_anon_id']),
    )
    expect(rejects.find(({ code }) => code === 'call_too_large')?.['line']).toBe(large)
    const pieces = rejects.filter(({ code }) => code === 'line_too_long').map(({ line }) => line)
    expect(pieces.join('') === giant).toBe(true)
    expect((await stat(`${log}.rejects`)).mode & 0o777).toBe(0o600)
    expect(await besides(log)).toEqual(['analytics.log.rejects'])
    await expectNumbers(userId, 4)
  },
)

const mistakes: readonly (readonly [string, readonly string[], string])[] = [
  ['no file', ['--secret', 'k'], '--file LOG is missing'],
  ['no key', ['--file', 'a.log'], '--secret WRITE_KEY is missing'],
  ['an unknown option', ['--secret', 'k', '--file', 'a.log', '--fast'], '--fast is no option'],
  ['a host of another scheme', ['--secret', 'k', '--file', 'a', '--host', 'ftp://a'], 'http'],
]

phpTest.for(mistakes)('%s is a mistake of usage', async ([, args, told]) => {
  const ran = await runPhp({ script: sendPath, args })
  expect(ran).toMatchObject({ code: 2, out: '' })
  expect(ran.err).toContain(told)
  expect(complaintsIn(ran)).toEqual([])
})

describe('a collector that', () => {
  phpTest('is down is tried again by the next run, and the log grows as one file', async () => {
    const [log, userId] = [await freshLog(), freshId('user')]
    await appendCalls(log, userId, [0, 10])
    const dead = `http://127.0.0.1:${await deadPort()}`
    const ran = await send({ writeKey, log, host: dead })
    expect(ran).toMatchObject({ code: 3, out: '' })
    expect(ran.err).toContain('the log is kept')
    expect(complaintsIn(ran)).toEqual([])
    await appendCalls(log, userId, [10, 20])
    expect((await send({ writeKey, log, host: dead })).code).toBe(3)
    expect(await taken(log)).toHaveLength(1)

    expectQuiet(await send({ writeKey, log, host: line.collectUrl }))
    expect(await besides(log)).toEqual([])
    await expectNumbers(userId, 20)
  })

  phpTest('answers 503 twice and then accepts gets the same message ids', async () => {
    const log = await freshLog()
    await appendCalls(log, freshId('user'), [0, 5])
    const server = await openServer((response, seen, index) =>
      answering(index < 2 ? 503 : 200, {}, index < 2 ? '{}' : '{"success":true}')(
        response,
        seen,
        index,
      ),
    )
    expectQuiet(await send({ writeKey, log, host: server.url }))
    const [first, ...again] = server.messageIds()
    expect(again).toEqual([first, first])
    expect(server.seen[0]?.headers['authorization']).toBe(
      `Basic ${Buffer.from(`${writeKey}:`).toString('base64')}`,
    )
  })

  phpTest('never answers is left to the next run, and the log is kept', async () => {
    const log = await freshLog()
    await appendCalls(log, freshId('user'), [0, 5])
    const server = await openServer()
    const ran = await send({ writeKey, log, host: server.url })
    expect(ran).toMatchObject({ code: 3, out: '' })
    expect(complaintsIn(ran)).toEqual([])
    expect(server.seen).toHaveLength(1)
    expect(await taken(log)).toHaveLength(1)
  })

  phpTest('asks for a pause gets it', async () => {
    const log = await freshLog()
    await appendCalls(log, freshId('user'), [0, 5])
    const at: number[] = []
    const server = await openServer((response, seen, index) => {
      at.push(performance.now())
      if (index === 0) answering(429, { 'retry-after': '2' })(response, seen, index)
      else answering(200, {}, '{"success":true}')(response, seen, index)
    })
    expectQuiet(await send({ writeKey, log, host: server.url }))
    expect((at[1] ?? 0) - (at[0] ?? 0)).toBeGreaterThanOrEqual(1_990)
  })

  const refusals: readonly (readonly [string, number, Record<string, string>, string])[] = [
    ['redirects', 301, { location: 'http://127.0.0.1:9/v1/batch' }, 'redirects'],
    ['does not know the key', 401, {}, 'HTTP 401'],
    ['has no such path', 404, {}, 'HTTP 404'],
  ]

  phpTest.for(refusals)(
    '%s is asked once, and the log is kept',
    async ([, status, headers, told]) => {
      const log = await freshLog()
      await appendCalls(log, freshId('user'), [0, 5])
      const server = await openServer(answering(status, headers))
      const ran = await send({ writeKey, log, host: server.url })
      expect(ran).toMatchObject({ code: 4, out: '' })
      expect(ran.err).toContain(told)
      expect(server.seen).toHaveLength(1)
      expect(await taken(log)).toHaveLength(1)
    },
  )

  phpTest('has a certificate of a trusted authority gets the log', async () => {
    const [log, userId] = [await freshLog(), freshId('user')]
    await appendCalls(log, userId, [0, 5])
    const tls = await openTls(line.collectUrl, 'leaf')
    expectQuiet(await send({ writeKey, log, host: tls.url, args: ['--ca-file', authority] }))
    expect(tls.requests).toBe(1)
    await expectNumbers(userId, 5)
  })

  phpTest('is reached without ext-curl gets the log too', async () => {
    const [log, userId] = [await freshLog(), freshId('user')]
    await appendCalls(log, userId, [0, 150])
    const tls = await openTls(line.collectUrl, 'leaf')
    const args = ['--secret', writeKey, '--file', log, '--host', tls.url, '--ca-file', authority]
    // Without its settings PHP loads no extension but those built into it.
    const ran = await runPhp({ script: sendPath, args, flags: ['-n'] })
    expectQuiet(ran)
    expect(tls.requests).toBe(2)
    await expectNumbers(userId, 150)
  })

  phpTest('has a certificate nobody signed gets no request', async () => {
    const log = await freshLog()
    await appendCalls(log, freshId('user'), [0, 5])
    const tls = await openTls(line.collectUrl, 'self')
    const ran = await send({ writeKey, log, host: tls.url, args: ['--ca-file', authority] })
    expect(ran).toMatchObject({ code: 3, out: '' })
    expect(complaintsIn(ran)).toEqual([])
    expect(tls.requests).toBe(0)
  })
})

describe('of two runs', () => {
  phpTest('the second leaves the log to the first', async () => {
    const log = await freshLog()
    await appendCalls(log, freshId('user'), [0, 5])
    const accepted = Promise.withResolvers<void>()
    const accept = answering(200, {}, '{"success":true}')
    const server = await openServer((response, seen, index) => {
      void accepted.promise.then(() => accept(response, seen, index))
    })
    const first = startSend({ writeKey, log, host: server.url })
    await until(() => server.seen.length === 1, 'the first run sends')
    const second = await send({ writeKey, log, host: server.url })
    expect(second).toMatchObject({ code: 6, out: '' })
    expect(second.err).toContain('another run')
    accepted.resolve()
    expectQuiet(await first.done)
  })
})

phpTest('a log larger than the memory PHP may have is sent', async () => {
  const log = await freshLog()
  const count = 60_000
  await appendCalls(log, freshId('user'), [0, count])
  const lines = (await stat(log)).size
  const memoryBytes = 4 << 20
  expect(lines).toBeGreaterThan(2 * memoryBytes)
  let received = 0
  const server = await openServer((response, seen, index) => {
    received += JSON.parse(seen.body.toString('utf8')).batch.length
    server.seen.length = 0
    answering(200, {}, '{"success":true}')(response, seen, index)
  })
  const ran = await runPhp({
    script: sendPath,
    args: ['--secret', writeKey, '--file', log, '--host', server.url],
    settings: [`memory_limit=${memoryBytes}`],
  })
  expectQuiet(ran)
  expect(ran.out).toContain('60,000 calls accepted')
  expect(received).toBe(count)
})

phpTest('a terminal is shown how far the log is sent', async () => {
  const log = await freshLog()
  await appendCalls(log, freshId('user'), [0, 50])
  const php = `php ${sendPath} --secret ${writeKey} --file ${log} --host ${line.collectUrl}`
  // `script` gives its command a terminal.
  const { stdout } = await promisify(execFile)('script', ['-qec', php, '/dev/null'])
  expect(stdout).toMatch(/taken: 100 %, 50 calls/)
  expect(stdout).toContain('send.php: 50 calls accepted')
})

phpTest('a log beside which nothing can be written is kept, and that is told', async () => {
  const log = await freshLog()
  await appendCalls(log, freshId('user'), [0, 5])
  // What may not be written would be no hindrance to root: a folder stands in the way instead.
  await mkdir(`${log}.lock`)
  const ran = await send({ writeKey, log, host: line.collectUrl })
  expect(ran).toMatchObject({ code: 5, out: '' })
  expect(ran.err).toContain('.lock cannot be opened')
  expect(await besides(log)).toEqual(['analytics.log'])
})
