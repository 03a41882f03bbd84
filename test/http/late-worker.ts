// A receiver on a thread of its own: it goes on answering while the thread that posts is held up.

import type { AddressInfo } from 'node:net'
import { createServer } from 'node:net'
import { parentPort } from 'node:worker_threads'

const server = createServer((socket) => {
  socket.on('error', () => undefined)
  socket.on('data', () => {
    setTimeout(() => socket.write('HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n'), 50)
  })
})
server.listen(0, '127.0.0.1', () => {
  parentPort?.postMessage((server.address() as AddressInfo).port)
})
