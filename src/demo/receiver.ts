// The demo's webhook endpoint: checks each signature over the very bytes, and hands on what arrived.
import { timingSafeEqual } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { sign } from '../domain/signature.ts'

export type Arrival = {
  readonly signed: boolean
  readonly at: number
  readonly message: Readonly<Record<string, unknown>>
}

export type Receiver = { readonly url: string; close(): Promise<void> }

const bodyBytesMax = 1_048_576

export const openReceiver = async (
  secret: string,
  arrived: (arrival: Arrival) => void,
): Promise<Receiver> => {
  const server = createServer((request, response) => {
    const chunks: Buffer[] = []
    let size = 0
    request.on('data', (chunk: Buffer) => {
      size += chunk.length
      if (size > bodyBytesMax) request.destroy()
      else chunks.push(chunk)
    })
    request.on('end', () => {
      const body = Buffer.concat(chunks)
      const signed = isSigned(secret, body, request.headers['x-signature'])
      response.writeHead(signed ? 200 : 401).end()
      arrived({ signed, at: Date.now(), message: JSON.parse(body.toString('utf8')) })
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}/hook`,
    close: async () => {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}

const isSigned = (secret: string, body: Buffer, header: string | string[] | undefined) => {
  const expected = Buffer.from(sign(secret, body))
  const given = Buffer.from(String(header))
  return given.length === expected.length && timingSafeEqual(given, expected)
}
