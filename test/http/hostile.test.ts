// Receivers that break HTTP, stall, flood or never end: each costs one bounded try and nothing else.
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { openPost } from '../../src/http/open-post.ts'
import { until } from '../support/until.ts'
import { answering, closeServers } from './servers.ts'

const addresses = { allowPrivate: true, allowed: [] }
/** Tenths of the product's times: what is tested is which clock ends what. */
const post = openPost({ addresses, limits: { answerMs: 500, totalMs: 1_000, connectMs: 500 } })
const body = Buffer.from('{"type":"track"}')
const headers = { 'Content-Type': 'application/json' }
const send = (url: string) => post({ url, headers, body })

afterAll(async () => {
  await post.close()
  closeServers()
})

// What a first request compiles and connects is not what these tests time.
beforeAll(async () => {
  const { url } = await answering((socket) => socket.end('HTTP/1.1 200 OK\r\n\r\n'))
  await send(url)
})

const ok = 'HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n'

describe('an answer', () => {
  test.each([
    { of: 'HTTP/1.0', text: 'HTTP/1.0 200 OK\r\n\r\nfine', status: 200 },
    { of: 'no length', text: 'HTTP/1.1 200 OK\r\nconnection: close\r\n\r\nfine', status: 200 },
    {
      of: 'chunks',
      text: 'HTTP/1.1 201 Made\r\ntransfer-encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n',
    },
    { of: 'no content', text: 'HTTP/1.1 204 No Content\r\n\r\n' },
    { of: 'early hints first', text: `HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n${ok}` },
    { of: 'processing first', text: `HTTP/1.1 102 Processing\r\n\r\n${ok}` },
    { of: 'a continue that nobody asked for', text: `HTTP/1.1 100 Continue\r\n\r\n${ok}` },
    { of: 'no reason phrase', text: 'HTTP/1.1 200\r\ncontent-length: 0\r\n\r\n' },
  ])('with $of is a success', async ({ text }) => {
    const { url } = await answering((socket) => {
      socket.write(text)
      if (!/length: 0|chunked|204/.test(text)) socket.end()
    })
    expect((await send(url)).answer).toEqual({ type: 'delivered' })
    expect((await send(url)).answer).toEqual({ type: 'delivered' })
  })

  test('whose continue comes by itself is waited for, and its connection is kept', async () => {
    const { url, seen } = await answering((socket) => {
      socket.write('HTTP/1.1 100 Continue\r\n\r\n')
      setTimeout(() => socket.write(ok), 20)
    })
    for (let at = 0; at < 3; at += 1)
      expect(await send(url)).toMatchObject({ answer: { type: 'delivered' }, status: 200 })
    expect(seen.connections).toBe(1)
  })

  test('that never goes beyond a continue is none', async () => {
    const { url } = await answering((socket) => socket.write('HTTP/1.1 100 Continue\r\n\r\n'))
    expect((await send(url)).answer).toMatchObject({ type: 'temporary', reason: 'timeout' })
  })

  test('that closes its connection is followed by a new connection, one that does not by none', async () => {
    const closing = await answering((socket) =>
      socket.end('HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 0\r\n\r\n'),
    )
    const keeping = await answering((socket) => socket.write(ok))
    for (let at = 0; at < 3; at += 1) {
      expect(await send(closing.url)).toMatchObject({ reused: false, status: 200 })
      await until(() => closing.seen.closed === at + 1, 'the connection is closed')
    }
    const reused: boolean[] = []
    for (let at = 0; at < 3; at += 1) reused.push((await send(keeping.url)).reused)
    expect(closing.seen.connections).toBe(3)
    expect(keeping.seen.connections).toBe(1)
    expect(reused).toEqual([false, true, true])
  })

  test.each([
    { of: 'another protocol', text: 'SSH-2.0-OpenSSH_9.6\r\n', reason: 'malformed_answer' },
    {
      of: 'broken headers',
      text: 'HTTP/1.1 200 OK\r\nbad header\r\n\r\n',
      reason: 'malformed_answer',
    },
    {
      of: 'two lengths',
      text: 'HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nab',
      reason: 'malformed_answer',
    },
    {
      of: 'length and chunks',
      text: 'HTTP/1.1 200 OK\r\ncontent-length: 1\r\ntransfer-encoding: chunked\r\n\r\n',
      reason: 'malformed_answer',
    },
    {
      of: 'an upgrade nobody asked for',
      text: 'HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n',
      reason: 'malformed_answer',
    },
    { of: 'nothing', text: '', reason: 'connection_reset' },
    { of: 'half a status line', text: 'HTTP/1.1 20', reason: 'connection_reset' },
    {
      of: 'half of its headers',
      text: 'HTTP/1.1 200 OK\r\ncontent-le',
      reason: 'connection_reset',
    },
  ])('with $of is temporary: $reason', async ({ text, reason }) => {
    const { url, seen } = await answering((socket) => socket.end(text))
    expect((await send(url)).answer).toMatchObject({ type: 'temporary', reason })
    expect(seen.requests).toBe(1)
    await until(() => seen.closed === 1, 'the connection is closed')
  })

  test('whose headers flood is cut at their limit', async () => {
    let written = 0
    const { url, seen } = await answering((socket) => {
      socket.write('HTTP/1.1 200 OK\r\n')
      const more = () => {
        written += 1
        if (!socket.destroyed) socket.write(`x-${written}: ${'v'.repeat(1_000)}\r\n`, more)
      }
      more()
    })
    expect((await send(url)).answer).toMatchObject({ reason: 'headers_too_large' })
    await until(() => seen.closed === 1, 'the connection is closed')
    expect(written).toBeLessThan(5_000)
  })

  test('that announces itself without end is given up, and not read for five seconds', async () => {
    let written = 0
    const hints = Buffer.from('HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n'.repeat(1_000))
    const { url, seen } = await answering((socket) => {
      const more = () => {
        written += hints.length
        if (!socket.destroyed) socket.write(hints, () => setImmediate(more))
      }
      more()
    })
    expect((await send(url)).answer).toMatchObject({
      type: 'temporary',
      reason: 'malformed_answer',
    })
    await until(() => seen.closed === 1, 'the connection is closed')
    expect(written).toBeLessThan(50_000_000)
  })

  test('whose headers drip byte by byte runs into the five seconds', async () => {
    const { url, seen } = await answering((socket) => {
      const drip = setInterval(() => socket.write('x'), 20)
      socket.write('HTTP/1.1 200 OK\r\nx: ')
      socket.on('close', () => clearInterval(drip))
    })
    const { answer, durationMs } = await send(url)
    expect(answer).toMatchObject({ type: 'temporary', reason: 'timeout' })
    expect(durationMs).toBeGreaterThanOrEqual(495)
    await until(() => seen.closed === 1, 'the connection is closed')
  })

  test.each([200, 500])('%i with a gigabyte to come is cut after 8 KiB', async (status) => {
    let written = 0
    const chunk = Buffer.alloc(65_536, 'x')
    const { url, seen } = await answering((socket) => {
      socket.write(`HTTP/1.1 ${status} Any\r\ncontent-length: 1000000000\r\n\r\n`)
      const more = () => {
        written += chunk.length
        if (!socket.destroyed && written < 1_000_000_000)
          socket.write(chunk, () => setImmediate(more))
      }
      more()
    })
    const result = await send(url)
    expect(result.answer.type).toBe(status === 200 ? 'delivered' : 'temporary')
    expect(result.head.length).toBe(status === 200 ? 0 : 8_192)
    await until(() => seen.closed === 1, 'the connection is closed')
    expect(written).toBeLessThan(50_000_000)
  })

  test.each(['reset', 'closed'])('counts once its head is there, %s at any byte', async (how) => {
    const head = 'HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 201 Made\r\ncontent-length: 3\r\n\r\n'
    const text = `${head}yes`
    const { url, seen } = await answering((socket, request) => {
      const bytes = Number(/^POST \/(\d+)/.exec(request.toString('latin1'))?.[1])
      socket.write(text.slice(0, bytes), () =>
        how === 'reset' ? socket.resetAndDestroy() : socket.end(),
      )
    })
    // No clock has a part in it.
    const patient = openPost({ addresses, limits: { answerMs: 120_000, totalMs: 120_000 } })
    const results = await Promise.all(
      Array.from({ length: text.length }, (_, bytes) =>
        patient({ url: `${url}${bytes}`, headers, body }),
      ),
    )
    for (const [bytes, { answer, status }] of results.entries())
      expect({ bytes, reason: answer.type === 'delivered' ? status : answer.reason }).toEqual({
        bytes,
        reason: bytes < head.length ? 'connection_reset' : 201,
      })
    expect(seen.requests).toBe(text.length)
    await patient.close()
  })

  test.each([
    { end: 'is reset', stop: 'reset' },
    { end: 'is closed', stop: 'close' },
    { end: 'stalls', stop: 'stall' },
  ])('whose body $end half way counts by its status', async ({ stop }) => {
    const answered = async (status: number) => {
      const { url, seen } = await answering((socket) => {
        socket.write(`HTTP/1.1 ${status} Any\r\ncontent-length: 99\r\n\r\nwhy`, () => {
          if (stop === 'reset') setTimeout(() => socket.resetAndDestroy(), 50)
          if (stop === 'close') socket.end()
        })
      })
      const result = await send(url)
      await until(() => seen.closed === 1, 'the connection is closed')
      expect(seen.requests).toBe(1)
      return result
    }
    expect(await answered(200)).toMatchObject({ answer: { type: 'delivered' }, head: '' })
    expect(await answered(503)).toMatchObject({
      answer: { type: 'temporary', reason: 'status_503' },
      head: 'why',
    })
    expect(await answered(404)).toMatchObject({ answer: { type: 'final', reason: 'status_404' } })
  })
})

describe('a kept connection', () => {
  test('that was closed as we wrote on it is replaced once, by a new one, within the same try', async () => {
    // Two are kept; both are met by a close at their second request.
    const { url, seen } = await answering((socket) => {
      const state = socket as typeof socket & { served?: number }
      state.served = (state.served ?? 0) + 1
      if (state.served === 2) socket.destroy()
      else socket.write(ok)
    })
    await Promise.all([send(url), send(url)])
    expect(seen.connections).toBe(2)
    const result = await send(url)
    expect(result).toMatchObject({ answer: { type: 'delivered' }, reused: false })
    expect(result.phases.connectMs).toBeGreaterThan(0)
    expect(seen).toMatchObject({ requests: 4, connections: 3 })
  })

  test('is not replaced once a byte of the answer came, nor twice', async () => {
    const half = await answering((socket) => {
      const state = socket as typeof socket & { served?: number }
      state.served = (state.served ?? 0) + 1
      if (state.served === 2) socket.end('HTTP/1.1 2')
      else socket.write(ok)
    })
    await send(half.url)
    expect((await send(half.url)).answer).toMatchObject({ reason: 'connection_reset' })
    expect(half.seen.requests).toBe(2)
    let dead = false
    const gone = await answering((socket) => (dead ? socket.destroy() : socket.write(ok)))
    await send(gone.url)
    dead = true
    expect((await send(gone.url)).answer).toMatchObject({ reason: 'connection_reset' })
    expect(gone.seen.requests).toBe(3)
  })

  test('that says something nobody asked for is not used again', async () => {
    const { url, seen } = await answering((socket) => {
      socket.write(ok, () => setTimeout(() => socket.write(ok), 5))
    })
    await send(url)
    await until(() => seen.closed === 1, 'the connection is closed')
    expect(await send(url)).toMatchObject({ answer: { type: 'delivered' }, reused: false })
  })
})

test('the five seconds begin when the request is written, and the whole ends after ten', async () => {
  // The name takes 600 of the 1,200 ms that connecting has; the answer 800 of its own 1,200.
  const { port } = await answering((socket) => setTimeout(() => socket.write(ok), 800))
  const slow = openPost({
    addresses,
    limits: { answerMs: 1_200, connectMs: 1_200, totalMs: 10_000 },
    resolve: async () => {
      await new Promise((resolve) => setTimeout(resolve, 600))
      return [{ address: '127.0.0.1', family: 4 }]
    },
  })
  const url = `http://slow.test:${port}/`
  const result = await slow({ url, headers, body })
  expect(result.answer).toEqual({ type: 'delivered' })
  expect(result.phases.dnsMs).toBeGreaterThanOrEqual(595)
  expect(result.phases.firstByteMs).toBeGreaterThanOrEqual(795)
  expect(result.phases.totalMs).toBeGreaterThanOrEqual(1_390)
  const again = await slow({ url, headers, body })
  expect(again).toMatchObject({
    reused: true,
    phases: { dnsMs: null, connectMs: null, tlsMs: null },
  })
  await slow.close()
  const hurried = openPost({ addresses, limits: { answerMs: 20_000, totalMs: 100 } })
  const { url: silent } = await answering(() => undefined)
  const { answer, durationMs } = await hurried({ url: silent, headers, body })
  expect(answer).toMatchObject({ reason: 'timeout' })
  expect(durationMs).toBeLessThan(19_000)
  await hurried.close()
})
