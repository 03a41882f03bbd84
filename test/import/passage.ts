// One address for a server that comes back on another port each time it is killed.
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'

export type Passage = { readonly url: string; to(url: string): void; close(): Promise<void> }

export const openPassage = async (): Promise<Passage> => {
  let port = 0
  const sockets = new Set<Socket>()
  const server = createServer((client) => {
    const far = connect(port, '127.0.0.1')
    for (const [one, other] of [
      [client, far],
      [far, client],
    ] as const) {
      sockets.add(one)
      one.pipe(other)
      one.on('error', () => other.destroy())
      one.on('close', () => {
        sockets.delete(one)
        other.destroy()
      })
    }
  })
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', () => resolve()))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    to: (url) => {
      port = Number(new URL(url).port)
    },
    close: async () => {
      for (const socket of sockets) socket.destroy()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}
