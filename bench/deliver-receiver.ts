// Receivers of the deliver bench in a process of their own: as little HTTP as a receiver can be.

import type { AddressInfo } from 'node:net'
import { createServer, type Socket } from 'node:net'

const [ports = '1', delayMs = '0'] = process.argv.slice(2)
const ok = Buffer.from('HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n')
let requests = 0
let bytes = 0

/** Requests on one socket come one after the other; each is counted when its body is complete. */
const serve = (socket: Socket) => {
  let kept = Buffer.alloc(0)
  socket.setNoDelay(true)
  socket.on('error', () => undefined)
  socket.on('data', (chunk) => {
    kept = kept.length === 0 ? chunk : Buffer.concat([kept, chunk])
    const end = kept.indexOf('\r\n\r\n')
    if (end < 0) return
    const length = Number(/content-length: (\d+)/i.exec(kept.toString('latin1', 0, end))?.[1])
    if (kept.length < end + 4 + length) return
    kept = kept.subarray(end + 4 + length)
    requests += 1
    bytes += length
    if (Number(delayMs) === 0) socket.write(ok)
    else setTimeout(() => socket.write(ok), Number(delayMs))
  })
}

const urls: string[] = []
for (let at = 0; at < Number(ports); at += 1) {
  const server = createServer(serve)
  await new Promise<void>((resolve) =>
    server.listen({ port: 0, host: '127.0.0.1', backlog: 2_048 }, resolve),
  )
  urls.push(`http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`)
}
process.on('disconnect', () => process.exit(0))
process.on('message', () => process.send?.({ requests, bytes }))
process.send?.({ urls })
