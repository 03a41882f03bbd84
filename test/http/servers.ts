// Servers of the outgoing port's tests: on a free port of the loopback, closed with all their sockets at the end.
import type { AddressInfo, Server, Socket } from 'node:net'
import { createServer } from 'node:net'

const servers: Server[] = []
const sockets = new Set<Socket>()

export const listen = async (server: Server, host = '127.0.0.1'): Promise<number> => {
  servers.push(server)
  server.on('connection', (socket: Socket) => {
    sockets.add(socket)
    socket.on('error', () => undefined)
    socket.on('close', () => sockets.delete(socket))
  })
  await new Promise<void>((resolve) => server.listen(0, host, resolve))
  return (server.address() as AddressInfo).port
}

/** Does as told with every connection once a request's first bytes are there. */
export const answering = async (answer: (socket: Socket, request: Buffer) => void) => {
  const seen = { connections: 0, requests: 0, closed: 0 }
  const port = await listen(
    createServer((socket) => {
      seen.connections += 1
      socket.on('close', () => {
        seen.closed += 1
      })
      socket.on('data', (chunk) => {
        // One write of the port is one request, head and body.
        seen.requests += 1
        answer(socket, chunk)
      })
    }),
  )
  return { url: `http://127.0.0.1:${port}/`, port, seen }
}

export const closeServers = (): void => {
  for (const socket of sockets) socket.destroy()
  for (const server of servers) server.close()
}
