// The connections under the collect stage: how long they may take, and answers to what is no request.
import type { IncomingMessage, Server, ServerOptions, ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import { answerRefusal, type RefusalCode, refuse } from './answer/answer.ts'

/** After the last answer on a connection that cannot go on: time to read it, then the end. */
const lingerMsMax = 2_000
/** How late a request that takes too long may be found, as a share of what it may take. */
const lateness = 4

export const connectionOptions = (requestMsMax: number): ServerOptions => ({
  // A request that names no host is answered by `openApp`, in the shape of all our answers.
  requireHostHeader: false,
  // Node swaps the two where this one is longer, and would wait that long for a body.
  headersTimeout: requestMsMax,
  connectionsCheckingInterval: Math.ceil(requestMsMax / lateness),
})

export type ConnectionError = (error: NodeJS.ErrnoException, socket: Duplex) => void

type Response = ServerResponse<IncomingMessage>

/** The last two on a connection: only the last can be incomplete. */
type Turns = { readonly last: Response; readonly before: Response | null }

export type Connections = {
  readonly onError: ConnectionError
  watch(server: Server): void
}

/**
 * Answers come in the order of their requests, here too: calls that came before something unreadable
 * are appended, and their sender must hear so.
 */
export const openConnections = (): Connections => {
  const turns = new WeakMap<Duplex, Turns>()
  return {
    onError: (error, socket) => {
      if (error.code === 'ECONNRESET' || !socket.writable) return void socket.destroy()
      const { last = null, before = null } = turns.get(socket) ?? {}
      const isAsked = last !== null && !last.req.complete
      // The request that broke off has its answer already, and may not get two.
      if (isAsked && last.headersSent) return endSoon(socket, '')
      const owed = isAsked ? before : last
      const answer = () => endSoon(socket, answerTo(error))
      if (owed === null || owed.writableFinished || owed.closed) answer()
      else owed.once('close', answer)
    },
    watch: (server) => {
      server.on('request', (request, response) => {
        const before = turns.get(request.socket)?.last ?? null
        turns.set(request.socket, {
          last: response,
          before: before?.writableFinished ? null : before,
        })
      })
      // A server may pass over what it does not know; without this, Node answers 417 and no body.
      server.on('checkExpectation', (request, response) =>
        server.emit('request', request, response),
      )
      server.on('connect', (_request, socket) => {
        // Node hands the socket over with nobody listening: its end by a reset would end the process.
        socket.on('error', () => socket.destroy())
        endSoon(socket, textOf('malformed_request'))
      })
    },
  }
}

const endSoon = (socket: Duplex, text: string) => {
  socket.end(text)
  const timer = setTimeout(() => socket.destroy(), lingerMsMax)
  socket.once('close', () => clearTimeout(timer))
}

const answerTo = (error: NodeJS.ErrnoException) =>
  textOf(error.code === 'ERR_HTTP_REQUEST_TIMEOUT' ? 'request_timeout' : 'malformed_request')

/** There is no request to answer, so that this is written by hand. */
const textOf = (code: RefusalCode) => {
  const { status, body } = answerRefusal(refuse(code, 'the request cannot be understood'))
  const reason = status === 400 ? 'Bad Request' : 'Service Unavailable'
  // Its headers may never have been read, so that there is no origin to name.
  return `HTTP/1.1 ${status} ${reason}\r\nconnection: close\r\naccess-control-allow-origin: *\r\ncontent-type: application/json; charset=utf-8\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`
}
