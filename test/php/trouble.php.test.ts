// Servers no page must suffer from: what it costs the page, what the handler hears, and that the calls come later.
import { readdir, rename } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect } from 'vitest'
import { freshId, settled } from '../clients/line.ts'
import { until } from '../support/until.ts'
import { lineOfFile, sharedFolder, writeKey } from './line.ts'
import { send } from './log.ts'
import { expectQuiet, type Order, type PageRan, phpTest, runPage } from './page.ts'
import { answering, authority, deadPort, openForward, openServer, openTls } from './servers.ts'

const held = lineOfFile()

/** A batch that a process has in hand is neither sent nor kept yet. */
const isKept = async (folder: string) => {
  const names = await readdir(folder)
  return names.length > 0 && !names.some((name) => name.endsWith('.sending'))
}

const senders = ['lib_curl', 'fork_curl', 'socket'] as const

const three = (userId: string): Order['calls'] =>
  [0, 1, 2].map((n) => ['track', { userId, event: 'Counted', properties: { n } }])

const arriveOnce = async (userId: string, count: number) => {
  await until(
    () => held.line.bodiesOf(userId).length >= count,
    `${count} calls of ${userId} arrive`,
  )
  await settled(held.line, { writeKey, userId, newId: userId })
  const numbers = held.line
    .bodiesOf(userId)
    .map(({ properties }) => (properties as { n: number }).n)
  expect(numbers.toSorted((a, b) => a - b)).toEqual(Array.from({ length: count }, (_, n) => n))
}

/** A page, whatever it calls, is not held up for longer: a connect and a request timeout, and PHP's own start. */
const pageMsMax = 10_000

describe.for(senders.map((consumer) => ({ consumer })))(
  'through $consumer, a server that',
  ({ consumer }) => {
    const page = (host: string, userId: string, more: Partial<Order> = {}): Promise<PageRan> =>
      runPage({
        writeKey,
        calls: three(userId),
        ...more,
        options: { consumer, host, ...more.options },
      })

    phpTest('is dead costs no page its time, and the calls are kept', async () => {
      const [userId, folder, port] = [freshId('user'), await sharedFolder(), await deadPort()]
      const spool = join(folder, 'kept.ndjson')
      const options = { consumer, host: `http://127.0.0.1:${port}`, spool }
      const ran = await runPage({ writeKey, options, calls: three(userId) })
      expect(ran.tookMs).toBeLessThan(pageMsMax)
      // The process that fork_curl leaves behind has nobody to tell.
      const told = consumer === 'fork_curl' ? [] : ['connection_failed']
      expect([...new Set(ran.heard.map(({ code }) => code))]).toEqual(told)

      await until(() => isKept(folder), 'the calls are kept')
      const { url } = await openForward(held.line.collectUrl, port)
      // The consumer socket, which hears no answers, leaves this to send.php.
      if (consumer === 'socket') expectQuiet(await send({ writeKey, log: spool, host: url }))
      else {
        const calls: Order['calls'] = [['track', { userId: freshId('later'), event: 'Later' }]]
        expect((await runPage({ writeKey, options, calls })).heard).toEqual([])
      }
      await arriveOnce(userId, 3)
    })

    phpTest('never answers costs a page a few seconds at most', async () => {
      const server = await openServer()
      const { tookMs, heard } = await page(server.url, freshId('user'))
      expect(tookMs).toBeLessThan(pageMsMax)
      await until(() => server.seen.length > 0, 'the server is asked')
      // The consumer socket does not wait for answers, and fork_curl's process is on its own.
      expect(heard.map(({ code }) => code)).toEqual(consumer === 'lib_curl' ? ['timed_out'] : [])
    })

    const answers: readonly (readonly [string, number, Record<string, string>, number])[] = [
      ['answers 500', 500, {}, 2],
      ['answers 429', 429, { 'retry-after': '120' }, 1],
      ['redirects', 301, { location: 'http://127.0.0.1:9/' }, 1],
      ['redirects to itself', 307, { location: '/v1/batch' }, 1],
    ]

    phpTest.for(answers)(
      '%s is asked at most a few times, and without debug nobody is told',
      async (answer) => {
        const [, status, headers, requestsMax] = answer
        const server = await openServer(answering(status, headers))
        const { tookMs, heard } = await page(server.url, freshId('user'))
        expect(tookMs).toBeLessThan(pageMsMax)
        expect(heard).toEqual([])
        await until(() => server.seen.length > 0, 'the server is asked')
        // One connection for each call there; the others ask once for all three.
        expect(server.seen.length).toBeLessThanOrEqual(consumer === 'socket' ? 3 : requestsMax)
      },
    )

    phpTest.for(answers)('%s is told of with debug', async ([, status, headers]) => {
      const server = await openServer(answering(status, headers))
      const { heard } = await page(server.url, freshId('user'), { options: { debug: true } })
      const code = status === 500 || status === 429 ? 'server_unavailable' : 'server_misdirected'
      expect(new Set(heard.map((each) => each.code))).toEqual(new Set([code]))
    })

    /** A busy machine may take its time over a handshake: that is not what these are about. */
    const patient = { timeout: 30, connect_timeout: 30, request_timeout: 30 }

    phpTest('shows a certificate of an authority that is configured gets the calls', async () => {
      const userId = freshId('user')
      const tls = await openTls(held.line.collectUrl, 'leaf')
      const { heard } = await page(tls.url, userId, {
        options: { ca_file: authority, ...patient },
      })
      expect(heard).toEqual([])
      await arriveOnce(userId, 3)
      expect(tls.requests).toBe(consumer === 'socket' ? 3 : 1)
    })

    const untrusted: readonly (readonly [string, 'leaf' | 'self', Record<string, unknown>])[] = [
      ['shows a self-signed certificate', 'self', { ca_file: authority }],
      ['shows a certificate of an authority nobody configured', 'leaf', {}],
    ]

    phpTest.for(untrusted)('%s gets no request', async ([, certificate, options]) => {
      const tls = await openTls(held.line.collectUrl, certificate)
      const { heard } = await page(tls.url, freshId('user'), {
        options: { ...options, ...patient, debug: true },
      })
      expect(new Set(heard.map(({ code }) => code))).toEqual(new Set(['connection_failed']))
      expect(tls.requests).toBe(0)
    })
  },
)

phpTest('what a page could not send is kept with its message ids', async () => {
  const folder = await sharedFolder()
  const server = await openServer((response, seen, index) =>
    answering(index < 2 ? 503 : 200, {}, index < 2 ? '{}' : '{"success":true}')(
      response,
      seen,
      index,
    ),
  )
  const options = { consumer: 'lib_curl', host: server.url }
  const order = { writeKey, options, calls: three(freshId('user')) }
  await runPage(order, { env: { TMPDIR: folder } })
  const [refused, again] = server.messageIds()
  expect(again).toEqual(refused)
  await runPage(
    { ...order, calls: [['track', { userId: 'u1', event: 'Later' }]] },
    { env: { TMPDIR: folder } },
  )
  expect(server.messageIds().slice(2).flat()).toEqual(expect.arrayContaining([...(refused ?? [])]))
})

phpTest('send.php takes over what a page kept, where the spool is a file with a name', async () => {
  const userId = freshId('user')
  const spool = `${await sharedFolder()}/kept.ndjson`
  const dead = `http://127.0.0.1:${await deadPort()}`
  await runPage({
    writeKey,
    options: { consumer: 'lib_curl', host: dead, spool },
    calls: three(userId),
  })
  const log = `${await sharedFolder()}/analytics.log`
  await rename(spool, log)
  await send({ writeKey, log, host: held.line.collectUrl })
  await arriveOnce(userId, 3)
})
