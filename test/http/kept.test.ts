// Requests as they are written, and the connections kept for the next: for how long, and which are not.
import { createServer, Socket } from 'node:net'
import { setImmediate as turn } from 'node:timers/promises'
import { afterAll, describe, expect, test, vi } from 'vitest'
import { openPost } from '../../src/http/open-post.ts'
import { until } from '../support/until.ts'
import { answering, closeServers, listen } from './servers.ts'

const addresses = { allowPrivate: true, allowed: [] }
const ok = 'HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n'
const small = Buffer.from('{"type":"track"}')

afterAll(closeServers)

test.each([
  { of: 'a line end in a value', headers: { 'X-Team': 'a\r\nX-Other: b' } },
  { of: 'a line end in a name', headers: { 'X-Team: a\r\nX-Other': 'b' } },
  { of: 'a character no header has', headers: { 'X-Team': '→' } },
  { of: 'a length of its own', headers: { 'Content-Length': '1' } },
  { of: 'a coding of its own', headers: { 'transfer-encoding': 'chunked' } },
])('headers with $of are final, and nothing is sent', async ({ headers }) => {
  const { url, seen } = await answering((socket) => socket.write(ok))
  const post = openPost({ addresses })
  const result = await post({ url, headers: headers as Record<string, string>, body: small })
  expect(result.answer).toMatchObject({ type: 'final', reason: 'invalid_request' })
  expect(seen.connections).toBe(0)
  await post.close()
})

test.each([0, 65_536, 65_537, 300_000])('a body of %i bytes arrives as it is', async (length) => {
  const body = Buffer.from(Array.from({ length }, (_, at) => at % 251))
  let received = Buffer.alloc(0)
  const port = await listen(
    createServer((socket) => {
      socket.on('data', (chunk) => {
        received = Buffer.concat([received, chunk])
        const end = received.indexOf('\r\n\r\n') + 4
        if (received.length === end + length) socket.write(ok)
      })
    }),
  )
  const post = openPost({ addresses })
  const url = `http://127.0.0.1:${port}/a%20b?c=d`
  expect((await post({ url, headers: ['X-Team', 'é'], body })).answer.type).toBe('delivered')
  const end = received.indexOf('\r\n\r\n')
  expect(received.toString('latin1', 0, end).split('\r\n')).toEqual([
    'POST /a%20b?c=d HTTP/1.1',
    `host: 127.0.0.1:${port}`,
    'connection: keep-alive',
    'X-Team: é',
    expect.stringMatching(/^User-Agent: Millrace/),
    `content-length: ${length}`,
  ])
  expect(received.subarray(end + 4).equals(body)).toBe(true)
  await post.close()
})

test('a receiver that answers before it has read the request is answered, and its connection not used again', async () => {
  const { url, seen } = await answering((socket) => {
    socket.pause()
    socket.write(ok)
  })
  const post = openPost({ addresses })
  const body = Buffer.alloc(30_000_000, 'x')
  expect((await post({ url, headers: {}, body })).answer).toEqual({ type: 'delivered' })
  expect(post.counts()).toMatchObject({ busy: 0, idle: 0 })
  expect((await post({ url, headers: {}, body: small })).reused).toBe(false)
  expect(seen.connections).toBe(2)
  await post.close()
})

test('a connection that was idle for as long as it is kept is closed', async () => {
  const { url, seen } = await answering((socket) => socket.write(ok))
  const post = openPost({ addresses, limits: { keepAliveMs: 100, answerMs: 500 } })
  await post({ url, headers: {}, body: small })
  await until(() => seen.closed === 1, 'it is closed')
  expect(post.counts()).toMatchObject({ busy: 0, idle: 0 })
  expect((await post({ url, headers: {}, body: small })).reused).toBe(false)
  await post.close()
})

test('a receiver says how long it keeps connections: one is not used in its last two seconds', async () => {
  const answer = (seconds: number) =>
    answering((socket) =>
      socket.write(
        `HTTP/1.1 200 OK\r\nkeep-alive: timeout=${seconds}\r\ncontent-length: 0\r\n\r\n`,
      ),
    )
  // Kept by ourselves for a moment only, were nothing said.
  const post = openPost({ addresses, limits: { keepAliveMs: 1 } })
  const reused = async (url: string) => {
    await post({ url, headers: {}, body: small })
    return (await post({ url, headers: {}, body: small })).reused
  }
  const [brief, long] = [await answer(2), await answer(600)]
  expect(await reused(brief.url)).toBe(false)
  await until(() => brief.seen.closed === 2, 'both are closed')
  expect(await reused(long.url)).toBe(true)
  await post.close()
})

describe('a kept connection that was reset', () => {
  /** The receiver is in this process: what it does is with the kernel before the next line runs. */
  const reset = (sockets: readonly Socket[]) => {
    for (const socket of sockets) socket.resetAndDestroy()
  }

  test.each([
    { when: 'before the request is given', act: reset },
    {
      when: 'as the request is about to be written',
      act: (sockets: readonly Socket[]) => void setImmediate(reset, sockets),
    },
  ])('$when costs no try', async ({ act }) => {
    const open: Socket[] = []
    const { url, seen } = await answering((socket) => {
      open.push(socket)
      socket.write(ok)
    })
    const post = openPost({ addresses })
    const send = () => post({ url, headers: {}, body: small })
    for (let at = 0; at < 20; at += 1) {
      await Promise.all([send(), send()])
      await turn()
      act(open.splice(0))
      const results = await Promise.all([send(), send()])
      for (const result of results)
        expect(result).toMatchObject({ answer: { type: 'delivered' }, reused: false })
    }
    expect(seen.requests).toBe(80)
    await post.close()
  })

  test('by the network, in whatever word, costs no try where nothing was written', async () => {
    const { url, seen } = await answering((socket) => socket.write(ok))
    const post = openPost({ addresses })
    const connects = vi.spyOn(Socket.prototype, 'connect')
    await post({ url, headers: {}, body: small })
    const [socket] = connects.mock.contexts as readonly Socket[]
    connects.mockRestore()
    const second = post({ url, headers: {}, body: small })
    // As a probe of the system's that nobody answered ends it.
    socket?.destroy(Object.assign(new Error('read ETIMEDOUT'), { code: 'ETIMEDOUT' }))
    expect(await second).toMatchObject({ answer: { type: 'delivered' }, reused: false })
    expect(seen.requests).toBe(2)
    await post.close()
  })
})
