// The HTTP face of the collect stage: routes, headers, and an answer of our own shape to everything.
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import { Readable } from 'node:stream'
import Fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify'
import { clientAddress, type Trusts } from '../domain/ip.ts'
import { type Answer, answerRefusal, refuse } from './answer/answer.ts'
import { corsOf, originOf, preflightOf } from './answer/cors.ts'
import { callOfQuery, pixelAnswer } from './answer/pixel.ts'
import { type Place, placeAsked } from './answer/place.ts'
import { answerSettings, noSettings } from './answer/settings-document.ts'
import { answerSourceConfig } from './answer/source-config.ts'
import { receiveClientMetrics } from './client-metrics.ts'
import { connectionOptions, openConnections } from './connection.ts'
import type { Deps } from './deps.ts'
import { receive } from './receive.ts'
import { unknownKey } from './request/authenticate.ts'
import type { Request } from './request/request.ts'
import { keyOfHeader } from './request/write-key.ts'
import {
  allowedAt,
  type CallRoute,
  callRoutes,
  clientMetricsRoute,
  healthRoutes,
  pixelRoutes,
  pixelType,
  settingsRoute,
  sourceConfigRoutes,
} from './routes.ts'

export type AppOptions = {
  /** Whether a host's X-Forwarded headers are believed; `null`: nobody's. */
  readonly trusts: Trusts | null
  /** Where clients are told to send; `null`: to the host they asked. */
  readonly place: Place | null
  readonly isReady: () => Promise<boolean>
  readonly isStopping: () => boolean
}

export const openApp = (deps: Deps, options: AppOptions): FastifyInstance => {
  const connections = openConnections()
  const app = Fastify({
    logger: false,
    // Nothing of ours names a request by its number.
    genReqId: () => '',
    http: connectionOptions(deps.limits.requestMsMax),
    // A write key in a path may be as long as a path can be.
    routerOptions: { ignoreTrailingSlash: true, maxParamLength: 65_536 },
    trustProxy: options.trusts ?? false,
    requestTimeout: deps.limits.requestMsMax,
    // A request that arrives on an open connection while we drain is still a request to answer.
    return503OnClosing: false,
    frameworkErrors: (_error, request, reply) => {
      if (request.method === 'OPTIONS') return answerPreflight(request, reply)
      send(reply, malformed)
    },
    clientErrorHandler: connections.onError,
  })
  connections.watch(app.server)
  // The body is read in `receive`, whatever its type is called.
  app.removeAllContentTypeParsers()
  app.addContentTypeParser(['application/json', '*'], (_request, _payload, done) => done(null))
  app.addHook('onRequest', (request, reply, done) => {
    if (request.headers.host === undefined && request.raw.httpVersionMinor > 0)
      return send(reply, malformed)
    if (request.method === 'OPTIONS') return answerPreflight(request, reply)
    request.raw.headers['content-type'] = 'application/json'
    done()
  })
  // biome-ignore lint/complexity/useMaxParams: Fastify's; as a promise, it would cost more than all it does
  app.addHook('onSend', (_request, reply, payload, done) => {
    if (options.isStopping()) reply.header('connection', 'close')
    done(null, payload)
  })
  app.setNotFoundHandler((request, reply) => answerUnknown(request, reply))
  app.setErrorHandler((error, _request, reply) => {
    deps.logger.error({ err: error }, 'request.failed')
    send(reply, answerRefusal(refuse('internal_error', 'the request failed; send it again')))
  })
  addCallRoutes(app, { ...deps, trusts: options.trusts })
  addDocumentRoutes(app, deps, options)
  addHealthRoutes(app, options)
  return app
}

const malformed = answerRefusal(refuse('malformed_request', 'the request cannot be understood'))

type Exchange = { readonly request: FastifyRequest; readonly reply: FastifyReply }

type CallDeps = Deps & Pick<AppOptions, 'trusts'>

const addCallRoutes = (app: FastifyInstance, deps: CallDeps) => {
  for (const route of callRoutes)
    app.post(route.path, (request, reply) => answerCalls(deps, route, { request, reply }))
  for (const path of pixelRoutes)
    app.get(path, (request, reply) => answerPixel(deps, { request, reply }))
  app.post(clientMetricsRoute, async (request, reply) => {
    const { userAgent } = aboutClient(deps, request)
    const encoding = request.headers['content-encoding']
    const answer = await receiveClientMetrics(deps, { stream: request.raw, encoding, userAgent })
    return finish({ request, reply }, answer)
  })
}

const addDocumentRoutes = (app: FastifyInstance, deps: Deps, options: AppOptions) => {
  app.get(settingsRoute, (request, reply) => {
    const { writeKey } = request.params as { readonly writeKey: string }
    if (!deps.live.now().sourceByWriteKey.has(writeKey)) return send(reply, noSettings)
    const place = options.place ?? placeOfRequest(request)
    return send(reply, answerSettings(writeKey, place, request.headers['if-none-match']))
  })
  for (const path of sourceConfigRoutes)
    app.get(path, (request, reply) => {
      const key = keyOfHeader(request.headers.authorization) ?? queryOf(request).get('writeKey')
      const source = deps.live.now().sourceByWriteKey.get(key ?? '')
      return send(reply, source ? answerSourceConfig(source) : answerRefusal(unknownKey))
    })
}

const addHealthRoutes = (app: FastifyInstance, options: AppOptions) => {
  app.get(healthRoutes.live, (_request, reply) =>
    send(reply, { status: 200, body: '{"live":true}' }),
  )
  app.get(healthRoutes.ready, async (_request, reply) => {
    const ready = !options.isStopping() && (await options.isReady())
    return send(reply, { status: ready ? 200 : 503, body: JSON.stringify({ ready }) })
  })
}

const answerCalls = async (deps: CallDeps, route: CallRoute, exchange: Exchange) => {
  const { request } = exchange
  const answer = await receive(deps, {
    ...aboutClient(deps, request),
    type: route.type,
    stream: request.raw,
    encoding: request.headers['content-encoding'],
    queryKey: route.takesQueryKey ? queryOf(request).get('writeKey') || null : null,
    isPixel: false,
  })
  return finish(exchange, answer)
}

/** The image, always: nothing on the page that shows it could read anything else. */
const answerPixel = async (deps: CallDeps, { request, reply }: Exchange) => {
  const { type } = request.params as { readonly type: string }
  if (type === '') return answerUnknown(request, reply)
  if (request.method === 'HEAD') return send(reply, pixelAnswer)
  const query = queryOf(request)
  try {
    await receive(deps, {
      ...aboutClient(deps, request),
      type: pixelType(type),
      stream: Readable.from([callOfQuery(query, deps.limits.depthMax)], { objectMode: false }),
      encoding: undefined,
      queryKey: query.get('writeKey') || null,
      isPixel: true,
    })
  } catch (error) {
    deps.logger.error({ err: error }, 'request.failed')
  }
  return send(reply, pixelAnswer)
}

type AboutClient = Pick<Request, 'authorization' | 'origin' | 'retryCount' | 'ip' | 'userAgent'>

const aboutClient = (deps: CallDeps, { headers, raw }: FastifyRequest): AboutClient => ({
  authorization: headers.authorization,
  origin: headers.origin ?? null,
  retryCount: Number.parseInt(String(headers['x-retry-count'] ?? ''), 10) || 0,
  ip: addressOf(raw, deps.trusts),
  userAgent: headers['user-agent']?.slice(0, deps.limits.userAgentLengthMax) || null,
})

const addresses = new WeakMap<Socket, string | null>()

/** Without a proxy, a connection has one address for all its requests. */
const addressOf = ({ socket, headers }: IncomingMessage, trusts: Trusts | null): string | null => {
  if (trusts !== null) return clientAddress(socket.remoteAddress, forwardedFor(headers), trusts)
  const known = addresses.get(socket)
  if (known !== undefined) return known
  const address = clientAddress(socket.remoteAddress, undefined, null)
  addresses.set(socket, address)
  return address
}

/** `null`: the client is gone. */
const finish = ({ request, reply }: Exchange, answer: Answer | null) => {
  if (answer) return send(reply, answer)
  request.raw.destroy()
  return reply.hijack()
}

const queryOf = ({ url }: FastifyRequest) => {
  const at = url.indexOf('?')
  return new URLSearchParams(at < 0 ? '' : url.slice(at + 1))
}

const placeOfRequest = ({ protocol, host, socket }: FastifyRequest): Place =>
  placeAsked({ protocol, host, local: `${socket.localAddress}:${socket.localPort}` })

/** Node joins what came more than once. */
const forwardedFor = ({ 'x-forwarded-for': hops }: IncomingHttpHeaders) =>
  hops === undefined ? undefined : String(hops)

const send = (reply: FastifyReply, answer: Answer) => {
  const origin = originOf(reply.request.headers)
  if (origin !== null) reply.headers(corsOf(origin))
  return reply
    .code(answer.status)
    .headers({ 'content-type': 'application/json; charset=utf-8', ...answer.headers })
    .send(answer.body)
}

const answerPreflight = ({ headers }: FastifyRequest, reply: FastifyReply) => {
  const requested = headers['access-control-request-headers']
  reply
    .code(204)
    .headers(preflightOf(originOf(headers), requested))
    .send()
}

const answerUnknown = (request: FastifyRequest, reply: FastifyReply) => {
  const allowed = allowedAt(request.url.split('?', 1)[0] as string)
  if (allowed === null)
    return send(reply, answerRefusal(refuse('not_found', 'there is nothing at this path')))
  const answer = answerRefusal(refuse('method_not_allowed', `this path takes ${allowed}`))
  return send(reply, { ...answer, headers: { allow: allowed } })
}
