// A real HTTP receiver: keeps what arrives, checks every signature and every body, answers as scripted.
import { createHmac } from 'node:crypto'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

export type Received = {
  readonly path: string
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  readonly body: Buffer
  readonly json: Record<string, unknown>
  /** Clock time, when the receiver was given one; else real time. */
  readonly at: number
}

export type Reply =
  | number
  | { readonly status: number; readonly headers?: Record<string, string>; readonly body?: string }
  /** Never answers. */
  | 'hang'
  /** Destroys the connection without an answer. */
  | 'reset'
  | Promise<number>

export type Receiver = {
  readonly url: string
  readonly requests: Received[]
  /** Requests whose X-Signature is not the HMAC of the bytes that came. */
  readonly badSignatures: Received[]
  /** Bodies that are not, byte for byte, what parsing and stringifying them gives: `close` rejects when there are any. */
  readonly unstable: string[]
  /** Requests being answered at once, at most so far. */
  atOnceMax: number
  reply(script: (request: Received, index: number) => Reply): void
  close(): Promise<void>
}

type Options = { readonly secret?: string | null; readonly now?: () => number }

export const openReceiver = async (options: Options = {}): Promise<Receiver> => {
  const secret = options.secret === undefined ? 'secret' : options.secret
  let script: (request: Received, index: number) => Reply = () => 200
  let open = 0
  const server = createServer((request, response) => {
    open += 1
    receiver.atOnceMax = Math.max(receiver.atOnceMax, open)
    response.on('close', () => {
      open -= 1
    })
    read(request, options.now ?? Date.now).then(
      (received) => {
        const index = receiver.requests.push(received) - 1
        if (!isSigned(received, secret)) receiver.badSignatures.push(received)
        if (!isFixedPoint(received.body)) receiver.unstable.push(received.body.toString('utf8'))
        return answer(response, script(received, index))
      },
      (error: Error) => {
        if (error instanceof SyntaxError) receiver.unstable.push(error.message)
        response.destroy()
      },
    )
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const receiver: Receiver = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`,
    requests: [],
    badSignatures: [],
    unstable: [],
    atOnceMax: 0,
    reply: (next) => {
      script = next
    },
    close: async () => {
      await new Promise<void>((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      })
      const { unstable } = receiver
      if (unstable.length > 0)
        throw new Error(`${unstable.length} bodies are no fixed point, the first: ${unstable[0]}`)
    },
  }
  return receiver
}

const read = async (request: IncomingMessage, now: () => number): Promise<Received> => {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk as Buffer)
  const body = Buffer.concat(chunks)
  return {
    path: request.url ?? '',
    headers: request.headers,
    body,
    json: JSON.parse(body.toString('utf8')) as Record<string, unknown>,
    at: now(),
  }
}

/** What a receiver that hashes the body as it re-serialises it relies on. */
export const isFixedPoint = (body: Buffer): boolean =>
  Buffer.from(JSON.stringify(JSON.parse(body.toString('utf8')))).equals(body)

const isSigned = ({ headers, body }: Received, secret: string | null): boolean =>
  secret === null
    ? headers['x-signature'] === undefined
    : headers['x-signature'] === createHmac('sha1', secret).update(body).digest('hex')

const answer = async (response: ServerResponse, scripted: Reply): Promise<void> => {
  const reply = await scripted
  if (reply === 'hang') return
  if (reply === 'reset') {
    response.destroy()
    return
  }
  const { status, headers = {}, body = '' } = typeof reply === 'number' ? { status: reply } : reply
  response.writeHead(status, headers).end(body)
}
