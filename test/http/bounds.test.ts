// The outgoing port's bounds: connections, waiting requests and memory, with thousands of receivers.

import { setTimeout as sleep } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { afterAll, describe, expect, test } from 'vitest'
import { openPost } from '../../src/http/open-post.ts'
import { until } from '../support/until.ts'
import { answering, closeServers } from './servers.ts'

const addresses = { allowPrivate: true, allowed: [] }
const body = Buffer.from('{"type":"track"}')
const ok = 'HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n'
const resolve = async () => [{ address: '127.0.0.1', family: 4 }]
const none = { busy: 0, lingering: 0, idle: 0, waiting: 0 }

afterAll(closeServers)

const open = (limits: Record<string, number> = {}) => openPost({ addresses, resolve, limits })
type Port = ReturnType<typeof open>
const send = (post: Port, url: string) => post({ url, headers: {}, body })

setFlagsFromString('--expose-gc')
const gc = runInNewContext('gc') as () => void

const heapAfterGc = () => {
  gc()
  return process.memoryUsage().heapUsed
}

test('five thousand different origins leave bounded connections and memory behind', async () => {
  const { port, seen } = await answering((socket) => socket.write(ok))
  const post = open({ idleMax: 200 })
  const sendAll = async (from: number, until: number) => {
    for (let at = from; at < until; at += 50)
      await Promise.all(
        Array.from({ length: 50 }, (_, by) => send(post, `http://h${at + by}.test:${port}/hook`)),
      )
  }
  await sendAll(0, 1_000)
  const before = heapAfterGc()
  await sendAll(1_000, 5_000)
  expect(seen.requests).toBe(5_000)
  expect(post.counts()).toEqual({ ...none, idle: 200 })
  await until(() => seen.connections - seen.closed <= 200, 'the others are closed')
  // Names and parsed URLs are remembered, up to 10,000 of them; clients and sockets must not be.
  expect((heapAfterGc() - before) / 4_000).toBeLessThan(4_000)
  await post.close()
  await until(() => seen.closed === seen.connections, 'all are closed')
})

test('an idle connection holds nothing of the answer it brought', async () => {
  const all = 300
  const refusal = Buffer.alloc(8_000, 'x')
  let waiting: (() => void)[] = []
  const { url } = await answering((socket) => {
    waiting.push(() => {
      socket.write(`HTTP/1.1 500 Oops\r\ncontent-length: ${refusal.length}\r\n\r\n`)
      socket.write(refusal)
    })
    if (waiting.length < all) return
    for (const answer of waiting) answer()
    waiting = []
  })
  const post = open()
  gc()
  const before = process.memoryUsage().arrayBuffers
  const results = await Promise.all(Array.from({ length: all }, () => send(post, url)))
  expect(results.map(({ head }) => head.length)).toEqual(Array(all).fill(refusal.length))
  expect(post.counts()).toEqual({ ...none, idle: all })
  await until(() => {
    gc()
    return process.memoryUsage().arrayBuffers - before < (all * refusal.length) / 4
  }, 'what was read is let go')
  await post.close()
})

test('connections that the receiver closed, or that failed, are not kept', async () => {
  const closing = await answering((socket) =>
    socket.write(ok, () => setTimeout(() => socket.end(), 20)),
  )
  const refusing = await answering((socket) => socket.destroy())
  const post = open()
  await Promise.all(Array.from({ length: 20 }, () => send(post, closing.url)))
  await until(() => post.counts().idle === 0, 'what was closed is forgotten')
  await Promise.all(Array.from({ length: 20 }, () => send(post, refusing.url)))
  await until(
    () => post.counts().idle === 0 && post.counts().busy === 0,
    'what failed is forgotten',
  )
  expect(post.counts()).toEqual(none)
  await post.close()
})

test('to one origin only so many idle connections are kept', async () => {
  const { url, seen } = await answering((socket) => setTimeout(() => socket.write(ok), 30))
  const post = open({ idlePerOriginMax: 3 })
  await Promise.all(Array.from({ length: 10 }, () => send(post, url)))
  expect(post.counts()).toEqual({ ...none, idle: 3 })
  await until(() => seen.closed === 7, 'the others are closed')
  await post.close()
})

test('of answers whose bodies do not end only so many are read on', async () => {
  const { url, seen } = await answering((socket) =>
    socket.write('HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nab'),
  )
  const post = open({ lingerMax: 5 })
  const results = await Promise.all(Array.from({ length: 30 }, () => send(post, url)))
  expect(results.filter(({ answer }) => answer.type === 'delivered')).toHaveLength(30)
  expect(post.counts()).toEqual({ ...none, lingering: 5 })
  await until(() => seen.closed === 25, 'the oldest are closed')
  await post.close()
})

describe('requests in flight', () => {
  test('to one origin are bounded, and others pass by those that wait', async () => {
    const answered = Promise.withResolvers<void>()
    let atOnce = 0
    let atOnceMax = 0
    const slow = await answering((socket) => {
      atOnce += 1
      atOnceMax = Math.max(atOnceMax, atOnce)
      void answered.promise.then(() => {
        atOnce -= 1
        socket.write(ok)
      })
    })
    const quick = await answering((socket) => socket.write(ok))
    const post = open({ inFlightPerOriginMax: 2 })
    const began = performance.now()
    const all = Array.from({ length: 10 }, async () => {
      const { durationMs } = await send(post, slow.url)
      return performance.now() - began - durationMs
    })
    await send(post, quick.url)
    expect(post.counts()).toMatchObject({ busy: 2, waiting: 8 })
    await sleep(100)
    answered.resolve()
    const elsewhereMs = await Promise.all(all)
    expect(atOnceMax).toBe(2)
    // Waiting in our own queue is not the receiver's time.
    for (const ms of elsewhereMs.slice(2)) expect(ms).toBeGreaterThan(95)
    await post.close()
  })

  test('are bounded in all, and origins take turns', async () => {
    const order: string[] = []
    const receive = (name: string) =>
      answering((socket) => {
        order.push(name)
        socket.write(ok)
      })
    const [a, b] = [await receive('a'), await receive('b')]
    const post = open({ inFlightMax: 1 })
    const urls = [a.url, a.url, a.url, a.url, b.url, b.url]
    await Promise.all(urls.map((url) => send(post, url)))
    expect(order).toEqual(['a', 'a', 'b', 'a', 'b', 'a'])
    expect(post.counts()).toMatchObject({ busy: 0, waiting: 0 })
    await post.close()
  })

  test('and those that wait reject when the port is closed: that is no try', async () => {
    const { url, seen } = await answering(() => undefined)
    const post = open({ inFlightMax: 2 })
    const all = Array.from({ length: 5 }, () => send(post, url))
    const settled = Promise.allSettled(all)
    await until(() => seen.requests === 2, 'two are in flight')
    await post.close()
    const reasons = (await settled).map((one) => one.status === 'rejected' && one.reason.code)
    expect(reasons).toEqual(Array.from({ length: 5 }, () => 'post_closed'))
    expect(seen.requests).toBe(2)
  })
})
