// Hundreds of requests over kept connections to a receiver that answers as it likes: each gets its own answer.
import { createServer, type Socket } from 'node:net'
import { afterAll, expect, test } from 'vitest'
import { openPost } from '../../src/http/open-post.ts'
import { closeServers, listen } from './servers.ts'

const requests = 800
const atOnce = 40

afterAll(closeServers)

const chunked = (text: string) =>
  `transfer-encoding: chunked\r\n\r\n${text.length.toString(16)}\r\n${text}\r\n0\r\n\r\n`
const sized = (text: string) => `content-length: ${text.length}\r\n\r\n${text}`

/** What a receiver may do with the request of this number. */
const manners: readonly ((socket: Socket, id: string) => void)[] = [
  (socket, id) => socket.write(`HTTP/1.1 500 Oops\r\n${sized(id)}`),
  (socket, id) => socket.write(`HTTP/1.1 500 Oops\r\n${chunked(id)}`),
  (socket, id) => socket.write(`HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 500 Oops\r\n${sized(id)}`),
  (socket, id) => socket.end(`HTTP/1.1 500 Oops\r\n\r\n${id}`),
  (socket, id) => socket.end(`HTTP/1.1 500 Oops\r\nconnection: close\r\n${sized(id)}`),
  // The connection goes though it said nothing of that: whoever writes on it goes on elsewhere.
  (socket, id) => socket.write(`HTTP/1.1 500 Oops\r\n${sized(id)}`, () => socket.destroy()),
  // More than it announced: what follows is no answer to anybody.
  (socket, id) => socket.write(`HTTP/1.1 500 Oops\r\n${sized(id)}HTTP/1.1 200 OK\r\n\r\n`),
  (socket, id) => {
    const text = `HTTP/1.1 500 Oops\r\n${chunked(id)}`
    socket.write(text.slice(0, 25))
    setImmediate(() => socket.write(text.slice(25)))
  },
]

test('no answer is taken for that of another request, and none is missing', async () => {
  const port = await listen(
    createServer((socket) => {
      socket.on('data', (bytes) => {
        const id = /x-number: (\d+)/.exec(bytes.toString('latin1'))?.[1] ?? 'none'
        manners[(Number(id) * 7) % manners.length]?.(socket, id)
      })
    }),
  )
  const post = openPost({ addresses: { allowPrivate: true, allowed: [] } })
  const url = `http://127.0.0.1:${port}/`
  const heads: string[] = []
  let next = 0
  const one = async () => {
    while (next < requests) {
      const id = next
      next += 1
      const result = await post({ url, headers: ['x-number', `${id}`], body: Buffer.from('{}') })
      heads[id] = `${result.status} ${result.head}`
    }
  }
  await Promise.all(Array.from({ length: atOnce }, one))
  expect(heads).toEqual(Array.from({ length: requests }, (_, id) => `500 ${id}`))
  expect(post.counts()).toMatchObject({ busy: 0, lingering: 0, waiting: 0 })
  await post.close()
})
