// A TCP proxy in front of an S3 server that answers in its place, cuts connections, or says nothing at all.
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'

/**
 * `pass` forwards. `busy` answers 503 in the server's place. `silent` takes requests and never answers.
 * `cut-request` forwards the head of a request and breaks off; `cut-answer` lets the server do its work and
 * breaks off before the answer; `cut-body` breaks off in the midst of the answer.
 */
export type S3Fault = 'pass' | 'busy' | 'silent' | 'cut-request' | 'cut-answer' | 'cut-body'

export type S3Proxy = {
  readonly endpoint: string
  /** Asked for each piece that comes from a client. */
  fault(next: () => S3Fault): void
  readonly faults: () => number
  close(): Promise<void>
}

const busy =
  'HTTP/1.1 503 Slow Down\r\ncontent-type: application/xml\r\nconnection: close\r\n\r\n' +
  '<?xml version="1.0"?><Error><Code>SlowDown</Code></Error>'

export const openS3Proxy = async (target: string): Promise<S3Proxy> => {
  const { hostname, port } = new URL(target)
  const sockets = new Set<Socket>()
  let next: () => S3Fault = () => 'pass'
  let faults = 0
  const server = createServer((client) => {
    const upstream = connect(Number(port), hostname)
    let mode: S3Fault = 'pass'
    for (const socket of [client, upstream]) {
      sockets.add(socket)
      socket.on('error', () => undefined)
      socket.on('close', () => {
        sockets.delete(socket)
        client.destroy()
        upstream.destroy()
      })
    }
    client.on('data', (data: Buffer) => {
      mode = next()
      if (mode !== 'pass') faults += 1
      if (mode === 'silent') return
      if (mode === 'busy') {
        client.end(busy)
        return
      }
      if (mode === 'cut-request') {
        upstream.write(data.subarray(0, 40))
        client.destroy()
        return
      }
      upstream.write(data)
    })
    upstream.on('data', (data: Buffer) => {
      if (mode === 'cut-answer') client.destroy()
      else if (mode === 'cut-body')
        client.write(data.subarray(0, data.length - 1), () => client.destroy())
      else client.write(data)
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    fault: (asked) => {
      next = asked
    },
    faults: () => faults,
    close: async () => {
      for (const socket of sockets) socket.destroy()
      server.close()
      await once(server, 'close')
    },
  }
}
