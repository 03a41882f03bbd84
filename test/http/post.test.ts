// The outgoing port: what is sent, and what each kind of answer means.
import { createServer as createPlain } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, describe, expect, test } from 'vitest'
import { retryAfterMs } from '../../src/http/classify.ts'
import { openPost, userAgent } from '../../src/http/open-post.ts'
import { openReceiver } from '../support/receiver.ts'
import { until } from '../support/until.ts'
import { closeServers, listen } from './servers.ts'

const post = openPost({ addresses: { allowPrivate: true, allowed: [] } })
const receiver = await openReceiver({ secret: null })

afterAll(async () => {
  await post.close()
  await receiver.close()
  closeServers()
})

const body = Buffer.from('{"type":"track","é":"😀"}')
const headers = { 'Content-Type': 'application/json', 'X-Team': 'growth' }
const send = (url = receiver.url) => post({ url, headers, body })

test('sends the bytes as given, with no headers beyond those given and what HTTP needs', async () => {
  receiver.reply(() => 204)
  expect(await send()).toMatchObject({ answer: { type: 'delivered' }, status: 204 })
  const received = receiver.requests.at(-1)
  expect(received?.body.equals(body)).toBe(true)
  expect(received?.headers).toEqual({
    host: new URL(receiver.url).host,
    connection: 'keep-alive',
    'content-type': 'application/json',
    'x-team': 'growth',
    'user-agent': userAgent,
    'content-length': String(body.length),
  })
  expect(userAgent).toMatch(/^Millrace\/\d+\.\d+\.\d+$/)
})

describe('a status', () => {
  test.each([
    [200, 'delivered'],
    [299, 'delivered'],
    [301, 'final'],
    [307, 'final'],
    [400, 'final'],
    [404, 'final'],
    [408, 'temporary'],
    [409, 'final'],
    [410, 'final'],
    [425, 'temporary'],
    [429, 'temporary'],
    [500, 'temporary'],
    [599, 'temporary'],
  ])('%i is %s', async (status, type) => {
    receiver.reply(() => ({ status, headers: { location: '/elsewhere' }, body: 'why' }))
    const before = receiver.requests.length
    const result = await send()
    expect(result.answer.type).toBe(type)
    expect(result.head).toBe(status < 300 ? '' : 'why')
    expect(receiver.requests.length).toBe(before + 1)
  })
})

test('Retry-After is passed on, in seconds or as a date', async () => {
  receiver.reply(() => ({ status: 429, headers: { 'retry-after': '7' } }))
  expect((await send()).answer).toMatchObject({ reason: 'status_429', retryAfterMs: 7_000 })
  const date = new Date(Date.now() + 60_000).toUTCString()
  receiver.reply(() => ({ status: 503, headers: { 'retry-after': date } }))
  const { answer } = await send()
  if (answer.type !== 'temporary') throw new Error(answer.type)
  expect(answer.retryAfterMs).toBeGreaterThan(50_000)
  expect(answer.retryAfterMs).toBeLessThanOrEqual(60_000)
})

test.each([
  ['0', 0],
  ['120', 120_000],
  ['9999999999', 86_400_000],
  ['9'.repeat(400), 86_400_000],
  ['Sun, 22 Nov 2026 12:00:30 GMT', 30_000],
  ['Sunday, 22-Nov-26 12:00:30 GMT', 30_000],
  ['Sun Nov 22 12:00:30 2026', 30_000],
  ['Sun Nov  1 12:00:30 2026', 0],
  ['2026-11-22T12:00:30Z', 30_000],
  ['Mon, 01 Jan 2035 00:00:00 GMT', 86_400_000],
  ['', null],
  ['1.5', null],
  ['2,3', null],
  ['-1', null],
  ['1e3', null],
  ['soon', null],
  ['Sun, 99 Foo 2026 12:00:30 GMT', null],
])('Retry-After: %j is %j ms', (value, ms) => {
  expect(retryAfterMs(value, Date.parse('2026-11-22T12:00:00Z'))).toBe(ms)
})

test.each(['http://127.0.0.1:0/', 'https://127.0.0.1:0/'])(
  '%s is final, and nothing is connected',
  async (url) => {
    expect((await post({ url, headers, body })).answer).toEqual({
      type: 'final',
      reason: 'invalid_url',
      status: null,
    })
  },
)

test('a receiver that does not answer within five seconds has timed out', async () => {
  receiver.reply(() => 'hang')
  const started = performance.now()
  const { answer } = await send()
  const tookMs = performance.now() - started
  expect(answer).toMatchObject({ type: 'temporary', reason: 'timeout' })
  expect(tookMs).toBeGreaterThanOrEqual(4_990)
  // The whole try would have ended after ten.
  expect(tookMs).toBeLessThan(9_500)
})

test('on a kept connection each request has all its time, whenever the one before was written', async () => {
  const answerMs = 400
  const brief = openPost({
    addresses: { allowPrivate: true, allowed: [] },
    limits: { answerMs },
  })
  // The last one is idle for longer than a request may take.
  for (const idleMs of [0, 150, 300, 500]) {
    receiver.reply(() => 204)
    // A machine that is busy may hold up even this one.
    await until(
      async () => (await brief({ url: receiver.url, headers, body })).status === 204,
      'an answer leaves its connection',
    )
    await sleep(idleMs)
    receiver.reply(() => 'hang')
    const result = await brief({ url: receiver.url, headers, body })
    expect(result).toMatchObject({ reused: true, answer: { reason: 'timeout' } })
    expect(result.durationMs).toBeGreaterThanOrEqual(answerMs - 5)
  }
  await brief.close()
})

test('a refused connection is temporary', async () => {
  const server = createPlain()
  const port = await listen(server)
  await new Promise((resolve) => server.close(resolve))
  expect((await send(`http://127.0.0.1:${port}/`)).answer).toMatchObject({
    type: 'temporary',
    reason: 'connection_refused',
  })
})

test('a name that does not exist is temporary', async () => {
  const { answer } = await send('http://nowhere.invalid/')
  expect(answer.type).toBe('temporary')
  expect(answer).toMatchObject({ reason: expect.stringMatching(/^dns_/) })
})

test('a connection reset before an answer is temporary, and was tried once', async () => {
  let connections = 0
  const port = await listen(
    createPlain((socket) => {
      connections += 1
      socket.once('data', () => socket.resetAndDestroy())
    }),
  )
  expect((await send(`http://127.0.0.1:${port}/`)).answer).toMatchObject({
    type: 'temporary',
    reason: 'connection_reset',
  })
  expect(connections).toBe(1)
})

test('a kept connection the receiver closed is replaced at once, within the same try', async () => {
  const served: number[] = []
  let connections = 0
  const port = await listen(
    createPlain((socket) => {
      connections += 1
      let requests = 0
      socket.on('data', () => {
        requests += 1
        served.push(requests)
        // The second request on a connection is met by a close, as a stale keep-alive is.
        if (requests === 2) socket.destroy()
        else socket.write('HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n')
      })
    }),
  )
  const url = `http://127.0.0.1:${port}/`
  expect((await send(url)).answer.type).toBe('delivered')
  expect((await send(url)).answer.type).toBe('delivered')
  expect(served).toEqual([1, 2, 1])
  expect(connections).toBe(2)
})

test('a success stands at its status line, whatever its body does', async () => {
  const port = await listen(
    createPlain((socket) => {
      socket.once('data', () => socket.write('HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\nab'))
    }),
  )
  expect((await send(`http://127.0.0.1:${port}/`)).answer.type).toBe('delivered')
  expect(post.counts().lingering).toBe(1)
})

test('of an endless answer 8 KiB are read, then the connection is destroyed', async () => {
  let closed = false
  let written = 0
  const port = await listen(
    createPlain((socket) => {
      socket.once('close', () => {
        closed = true
      })
      socket.once('data', () => {
        socket.write('HTTP/1.1 500 Oops\r\ntransfer-encoding: chunked\r\n\r\n')
        const more = () => {
          written += 1_024
          if (!socket.destroyed)
            socket.write(`400\r\n${'x'.repeat(1_024)}\r\n`, () => setImmediate(more))
        }
        more()
      })
    }),
  )
  const result = await send(`http://127.0.0.1:${port}/`)
  expect(result.answer).toMatchObject({ type: 'temporary', reason: 'status_500' })
  expect(result.head).toBe('x'.repeat(8_192))
  await until(() => closed, 'the connection is destroyed')
  expect(written).toBeLessThan(10_000_000)
})

test('a URL that cannot be posted to is final', async () => {
  expect((await send('ftp://127.0.0.1/')).answer).toMatchObject({ reason: 'invalid_url' })
  expect((await send('nonsense')).answer).toMatchObject({ type: 'final', reason: 'invalid_url' })
})

test("a closed port rejects: that is nobody's failed try", async () => {
  const closed = openPost()
  await closed.close()
  await expect(async () => closed({ url: receiver.url, headers, body })).rejects.toMatchObject({
    code: 'post_closed',
  })
})
