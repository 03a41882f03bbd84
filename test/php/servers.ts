// Servers no page should suffer from, and one that stands before Millrace with a certificate.
import { readFileSync } from 'node:fs'
import {
  createServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type OutgoingHttpHeaders,
  request,
  type ServerResponse,
} from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import { type AddressInfo, createServer as createPlain, type Server } from 'node:net'
import { fileURLToPath } from 'node:url'
import { gunzipSync } from 'node:zlib'
import { onTestFinished } from 'vitest'

export type Seen = {
  readonly method: string
  readonly path: string
  readonly headers: IncomingHttpHeaders
  readonly body: Buffer
}

export type BadServer = {
  readonly url: string
  readonly port: number
  readonly seen: Seen[]
  /** The message ids of each request. */
  messageIds(): readonly (readonly string[])[]
  /** Of all requests. */
  calls(): readonly Readonly<Record<string, unknown>>[]
}

export type Answer = (response: ServerResponse, seen: Seen, index: number) => void

/** Answers each request as told; without telling it never does. */
export const openServer = async (
  answer: Answer = () => undefined,
  atPort = 0,
): Promise<BadServer> => {
  const seen: Seen[] = []
  const server = createServer((incoming, response) => {
    void read(incoming).then((each) => answer(response, each, seen.push(each) - 1))
  })
  const port = await listen(server, atPort)
  return {
    url: `http://127.0.0.1:${port}`,
    port,
    seen,
    messageIds: () => seen.map((each) => callsOf(each).map((call) => String(call['messageId']))),
    calls: () => seen.flatMap(callsOf),
  }
}

type Held = (index: number) => Promise<unknown> | null

const neverHeld: Held = () => null

/** Passes every request on to Millrace, and keeps what it was; `held`: until when an answer is kept back. */
export const openForward = (to: string, atPort = 0, held = neverHeld): Promise<BadServer> =>
  openServer((response, { method, path, headers, body }, index) => {
    const { host: _, connection: __, 'transfer-encoding': ___, ...passed } = headers
    const sent = { ...passed, 'content-encoding': undefined, 'content-length': body.byteLength }
    const onward = request(new URL(path, to), { method, headers: withoutAbsent(sent) })
    onward.on('error', () => response.destroy())
    onward.on('response', async (answer) => {
      await held(index)
      response.writeHead(answer.statusCode ?? 502, answer.headers)
      answer.pipe(response)
    })
    onward.end(body)
  }, atPort)

const withoutAbsent = (headers: Record<string, unknown>) =>
  Object.fromEntries(
    Object.entries(headers).filter(([, value]) => value !== undefined),
  ) as OutgoingHttpHeaders

export const answering =
  (status: number, headers: Record<string, string> = {}, body = '{"success":false}'): Answer =>
  (response) => {
    response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(body)
  }

/** A port where nobody listens. */
export const deadPort = async (): Promise<number> => {
  const server = createPlain()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  await new Promise((resolve) => server.close(resolve))
  return port
}

const certificates = new URL('../http/tls/', import.meta.url)
const pem = (name: string) => readFileSync(new URL(name, certificates), 'utf8')
export const authority = fileURLToPath(new URL('ca.crt', certificates))

export type TlsServer = { readonly url: string; requests: number }

/** Ends TLS before Millrace, for the name localhost. */
export const openTls = async (to: string, certificate: 'leaf' | 'self'): Promise<TlsServer> => {
  const { port: toPort, hostname } = new URL(to)
  const keys = { key: pem(`${certificate}.key`), cert: pem(`${certificate}.crt`) }
  const server = createTlsServer(keys, (incoming, response) => {
    seen.requests += 1
    const { method, url: path, headers } = incoming
    const onward = request({ hostname, port: toPort, method, path, headers }, (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers)
      answer.pipe(response)
    })
    onward.on('error', () => response.destroy())
    incoming.pipe(onward)
  })
  server.on('tlsClientError', () => undefined)
  const seen: TlsServer = { url: `https://localhost:${await listen(server)}`, requests: 0 }
  return seen
}

const listen = async (
  server: Server & { closeAllConnections?(): void },
  atPort = 0,
): Promise<number> => {
  await new Promise<void>((resolve) => server.listen(atPort, '127.0.0.1', resolve))
  onTestFinished(
    () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections?.()
      }),
  )
  return (server.address() as AddressInfo).port
}

const read = async (incoming: IncomingMessage): Promise<Seen> => {
  const chunks: Buffer[] = []
  for await (const chunk of incoming) chunks.push(chunk as Buffer)
  const { method = '', url: path = '', headers } = incoming
  const raw = Buffer.concat(chunks)
  return {
    method,
    path,
    headers,
    body: headers['content-encoding'] === 'gzip' ? gunzipSync(raw) : raw,
  }
}

const callsOf = ({ body }: Seen) =>
  (JSON.parse(body.toString('utf8')) as { readonly batch: readonly Record<string, unknown>[] })
    .batch
