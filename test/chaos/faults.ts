// Receivers with one fault each, over real sockets, that can be repaired in their place.
import { readFileSync } from 'node:fs'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import type { AddressInfo, Server, Socket } from 'node:net'
import type { Webhook } from '../../src/domain/configuration.ts'
import { isFixedPoint } from '../support/receiver.ts'

const pem = (name: string) => readFileSync(new URL(`../http/tls/${name}`, import.meta.url), 'utf8')

export type Faulty = {
  readonly url: string
  /** The authority its operator set for it. */
  readonly webhook: Partial<Webhook>
  /** Users of the messages that came, one for each request; those that came since the repair. */
  readonly users: string[]
  readonly repaired: string[]
  readonly seen: { connections: number; unstable: number; written: number }
  repair(): Promise<void>
  close(): Promise<void>
}

type Answer = (response: ServerResponse, faulty: Faulty) => void

type Tls = {
  readonly certificate: string
  readonly repairedBy: string
  readonly ca: string | null
  /** Sends this root along with it. */
  readonly root?: string
}

export type Fault = { readonly answer?: Answer; readonly tls?: Tls; readonly isDown?: boolean }

const after =
  (ms: number): Answer =>
  (response) => {
    setTimeout(() => response.writeHead(200).end(), ms)
  }

const status =
  (code: number, headers: Record<string, string> = {}): Answer =>
  (response) => {
    response.writeHead(code, headers).end()
  }

const endless: Answer = (response, { seen }) => {
  response.writeHead(200)
  const chunk = Buffer.alloc(16_384, 'x')
  const write = () => {
    while (!response.destroyed) {
      seen.written += chunk.length
      if (!response.write(chunk)) break
    }
  }
  response.on('drain', write)
  write()
}

const broken: Answer = (response) => {
  response.writeHead(200, { 'content-length': '1000' })
  response.write('half', () => response.destroy())
}

export const faults = {
  refused: { isDown: true },
  hang: { answer: () => undefined },
  'an answer after 4.9 s': { answer: after(4_900) },
  'an answer after 5.1 s': { answer: after(5_100) },
  '500': { answer: status(500) },
  '429 with Retry-After': { answer: status(429, { 'retry-after': '120' }) },
  '302': { answer: status(302, { location: '/elsewhere' }) },
  '410': { answer: status(410) },
  'a reset mid-body': { answer: broken },
  'an endless body': { answer: endless },
  'a self-signed certificate': {
    tls: { certificate: 'self', repairedBy: 'leaf', ca: 'ca.crt' },
  },
  'a private root': {
    tls: { certificate: 'leaf', repairedBy: 'other', ca: 'other-ca.crt', root: 'ca.crt' },
  },
  'an expired certificate': {
    tls: { certificate: 'expired', repairedBy: 'other', ca: 'other-ca.crt' },
  },
  // Reached by its address, which the leaf does not name.
  'a wrong name': { tls: { certificate: 'leaf', repairedBy: 'other', ca: 'both' } },
} as const satisfies Record<string, Fault>

export type FaultName = keyof typeof faults

export const openFaulty = async (name: FaultName): Promise<Faulty> => {
  const { answer, tls, isDown }: Fault = faults[name]
  let isRepaired = false
  const serve = (request: IncomingMessage, response: ServerResponse) => {
    response.on('error', () => undefined)
    read(request).then((body) => {
      if (!isFixedPoint(body)) faulty.seen.unstable += 1
      const { userId } = JSON.parse(body.toString()) as { userId: string }
      faulty.users.push(userId)
      if (isRepaired) faulty.repaired.push(userId)
      if (isRepaired || !answer) response.writeHead(200).end()
      else answer(response, faulty)
    }, response.destroy)
  }
  const server = tls
    ? createTlsServer(certified(tls.certificate, tls.root), serve)
    : createServer(serve)
  const sockets = track(server, () => {
    faulty.seen.connections += 1
  })
  const port = await listen(server, 0)
  const host = name === 'a wrong name' ? '127.0.0.1' : 'localhost'
  if (isDown) await shut(server, sockets)
  const faulty: Faulty = {
    url: `${tls ? 'https' : 'http'}://${host}:${port}/hook`,
    webhook: tls?.ca ? { ca: authority(tls.ca) } : {},
    users: [],
    repaired: [],
    seen: { connections: 0, unstable: 0, written: 0 },
    repair: async () => {
      isRepaired = true
      if (isDown) await listen(server, port)
      if (tls && 'setSecureContext' in server) server.setSecureContext(certified(tls.repairedBy))
    },
    close: () => shut(server, sockets),
  }
  return faulty
}

const authority = (ca: string) =>
  ca === 'both' ? `${pem('ca.crt')}\n${pem('other-ca.crt')}` : pem(ca)

const certified = (name: string, root?: string) => ({
  key: pem(`${name}.key`),
  cert: root ? `${pem(`${name}.crt`)}\n${pem(root)}` : pem(`${name}.crt`),
})

const read = async (request: IncomingMessage): Promise<Buffer> => {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks)
}

const track = (server: Server, onConnection: () => void): ReadonlySet<Socket> => {
  const sockets = new Set<Socket>()
  server.on('tlsClientError', () => undefined)
  server.on('connection', (socket: Socket) => {
    onConnection()
    sockets.add(socket)
    socket.on('error', () => undefined)
    socket.on('close', () => sockets.delete(socket))
  })
  return sockets
}

const listen = async (server: Server, port: number): Promise<number> => {
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve))
  return (server.address() as AddressInfo).port
}

const shut = async (server: Server, sockets: ReadonlySet<Socket>): Promise<void> => {
  await new Promise<void>((resolve) => {
    server.close(() => resolve())
    for (const socket of sockets) socket.destroy()
  })
}
