// The HTTP face of the collect stage: routes, headers, and an answer of our own shape to everything.
import Fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify'
import type { CallType } from '../domain/message.ts'
import { type Answer, answerRefusal, type RefusalCode, refuse } from './answer.ts'
import { type Deps, receive } from './receive.ts'

export type AppOptions = {
  /** Addresses and networks whose X-Forwarded-For is believed. */
  readonly trustedProxies: readonly string[]
  readonly isReady: () => Promise<boolean>
  readonly isStopping: () => boolean
}

/** By path: the type it gives its call, or `null` for a batch. */
const routes: Readonly<Record<string, CallType | null>> = {
  '/v1/identify': 'identify',
  '/v1/track': 'track',
  '/v1/page': 'page',
  '/v1/screen': 'screen',
  '/v1/group': 'group',
  '/v1/alias': 'alias',
  '/v1/batch': null,
  '/v1/import': null,
}

const healthPaths = ['/health/live', '/health/ready']

export const openApp = (deps: Deps, options: AppOptions): FastifyInstance => {
  const app = Fastify({
    logger: false,
    routerOptions: { ignoreTrailingSlash: true },
    trustProxy: options.trustedProxies.length > 0 ? [...options.trustedProxies] : false,
    requestTimeout: deps.limits.requestMsMax,
    // A request that arrives on an open connection while we drain is still a request to answer.
    return503OnClosing: false,
    frameworkErrors: (_error, _request, reply) => {
      send(reply, answerRefusal(refuse('malformed_request', 'the request cannot be understood')))
    },
    clientErrorHandler: answerClientError,
  })
  // The body is read in `receive`, whatever its type is called.
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('*', (_request, _payload, done) => done(null))
  app.addHook('onRequest', (request, _reply, done) => {
    request.raw.headers['content-type'] = 'application/json'
    done()
  })
  app.addHook('onSend', async (_request, reply) => {
    if (options.isStopping()) reply.header('connection', 'close')
  })
  app.setNotFoundHandler((request, reply) => answerUnknown(request, reply))
  app.setErrorHandler((error, _request, reply) => {
    deps.logger.error({ err: error }, 'request.failed')
    send(reply, answerRefusal(refuse('internal_error', 'the request failed; send it again')))
  })
  for (const [path, type] of Object.entries(routes))
    app.post(path, (request, reply) => answerCalls(deps, type, { request, reply }))
  app.get('/health/live', (_request, reply) => send(reply, { status: 200, body: '{"live":true}' }))
  app.get('/health/ready', async (_request, reply) => {
    const ready = !options.isStopping() && (await options.isReady())
    return send(reply, { status: ready ? 200 : 503, body: JSON.stringify({ ready }) })
  })
  return app
}

type Exchange = { readonly request: FastifyRequest; readonly reply: FastifyReply }

const answerCalls = async (deps: Deps, type: CallType | null, { request, reply }: Exchange) => {
  const { headers } = request
  const answer = await receive(deps, {
    type,
    stream: request.raw,
    authorization: headers.authorization,
    encoding: headers['content-encoding'],
    retryCount: Number.parseInt(String(headers['x-retry-count'] ?? ''), 10) || 0,
    ip: addressOf(request.ip),
    userAgent: headers['user-agent']?.slice(0, deps.limits.userAgentLengthMax) || null,
  })
  if (answer) return send(reply, answer)
  request.raw.destroy()
  return reply.hijack()
}

/** An IPv4 client on an IPv6 socket is an IPv4 client. */
const addressOf = (ip: string | undefined) => ip?.replace(/^::ffff:(?=\d+\.)/i, '') || null

const send = (reply: FastifyReply, answer: Answer) =>
  reply
    .code(answer.status)
    .headers({ ...answer.headers, 'content-type': 'application/json; charset=utf-8' })
    .send(answer.body)

const answerUnknown = (request: FastifyRequest, reply: FastifyReply) => {
  const path = (request.url.split('?', 1)[0] as string).replace(/\/$/, '')
  const allowed = path in routes ? 'POST' : healthPaths.includes(path) ? 'GET, HEAD' : null
  if (allowed === null)
    return send(reply, answerRefusal(refuse('not_found', 'there is nothing at this path')))
  const answer = answerRefusal(refuse('method_not_allowed', `this path takes ${allowed}`))
  return send(reply, { ...answer, headers: { allow: allowed } })
}

/** Node found the request unreadable before there was one: the answer is written by hand. */
const answerClientError = (
  error: NodeJS.ErrnoException,
  socket: { writable: boolean; end(text: string): void; destroy(): void },
) => {
  if (error.code === 'ECONNRESET' || !socket.writable) return socket.destroy()
  const code: RefusalCode =
    error.code === 'ERR_HTTP_REQUEST_TIMEOUT' ? 'request_timeout' : 'malformed_request'
  const { status, body } = answerRefusal(refuse(code, 'the request cannot be understood'))
  const reason = status === 400 ? 'Bad Request' : 'Service Unavailable'
  socket.end(
    `HTTP/1.1 ${status} ${reason}\r\nconnection: close\r\ncontent-type: application/json; charset=utf-8\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
  )
}
