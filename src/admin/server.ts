// The HTTP server of the admin API: authenticates, hands over to the routes, answers every failure in one form.
import type { IncomingMessage } from 'node:http'
import { Readable } from 'node:stream'
import Fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify'
import { parseText } from '../control/file.ts'
import { Fault } from '../fault.ts'
import { isAway } from '../postgres/away.ts'
import { type Answer, failure, refusal } from './answer.ts'
import { authenticate } from './authenticate.ts'
import { type AdminDeps, adminLimits } from './deps.ts'
import { addPages } from './pages.ts'
import type { Actor, Route } from './route.ts'

declare module 'fastify' {
  // biome-ignore lint/style/useConsistentTypeDefinitions: merging into Fastify's type needs an interface
  interface FastifyRequest {
    actor: Actor | null
  }
}

export const buildServer = (
  deps: AdminDeps,
  routes: readonly Route[],
  stopping: AbortSignal,
): FastifyInstance => {
  const { bodyBytesMax } = limitsOf(deps)
  const app = Fastify({
    logger: false,
    bodyLimit: bodyBytesMax,
    exposeHeadRoutes: false,
    forceCloseConnections: 'idle',
    // Of its head; its body has `bodyMsMax`, unless it is a stream.
    http: { headersTimeout: headersMsMax },
    requestTimeout: 0,
    routerOptions: { maxParamLength: 1_024 },
  })
  app.decorateRequest('actor', null)
  // A connection kept alive would hold the server's close until it times out.
  app.addHook('onSend', async (_request, reply) => {
    if (stopping.aborted) reply.header('connection', 'close')
  })
  app.addHook('onResponse', async (request, reply) => logAnswer(deps, request, reply))
  app.setErrorHandler((error, request, reply) => send(reply, answerOf(deps, error, request)))
  app.setNotFoundHandler((request, reply) =>
    send(reply, failure('not_found', `there is no ${request.method} ${request.url.split('?')[0]}`)),
  )
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('application/json', { parseAs: 'string' }, readJson)
  const add = (scope: FastifyInstance, chosen: (route: Route) => boolean) => {
    for (const route of routes) if (chosen(route)) addRoute(scope, deps, { route, stopping })
  }
  addPages(app)
  add(app, ({ yaml, raw }) => yaml !== true && raw === undefined)
  app.register((scope, _options, done) => {
    const types = ['application/yaml', 'application/x-yaml', 'text/yaml']
    scope.addContentTypeParser(types, { parseAs: 'string' }, readYaml)
    add(scope, ({ yaml }) => yaml === true)
    done()
  })
  app.register((scope, _options, done) => {
    scope.removeAllContentTypeParsers()
    scope.addContentTypeParser('*', { parseAs: 'buffer' }, readWhole)
    add(scope, ({ raw }) => raw === 'bytes')
    done()
  })
  app.register((scope, _options, done) => {
    scope.removeAllContentTypeParsers()
    scope.addContentTypeParser('*', readStream)
    add(scope, ({ raw }) => raw === 'stream')
    done()
  })
  return app
}

const limitsOf = (deps: AdminDeps) => ({ ...adminLimits, ...deps.limits })

const headersMsMax = 30_000
const bodyMsMax = 30_000

/** A stream takes as long as it takes; any other body that does not come is not waited for. */
const cutLate = ({ raw: request }: FastifyRequest): void => {
  const late = setTimeout(() => {
    if (!request.complete) request.socket.destroy()
  }, bodyMsMax)
  request.once('close', () => clearTimeout(late))
}

type Added = { readonly route: Route; readonly stopping: AbortSignal }

const addRoute = (app: FastifyInstance, deps: AdminDeps, { route, stopping }: Added): void => {
  app.route({
    method: route.method,
    url: route.path,
    // Before the body is read: nobody unknown makes us parse.
    onRequest: async (request, reply) => {
      if (route.raw !== 'stream') cutLate(request)
      if (route.access === 'open') return
      const who = await authenticate(deps, request.headers.authorization, route.access)
      if ('refused' in who) return send(reply, who.refused)
      request.actor = who.actor
    },
    handler: async (request, reply) => {
      const gone = new AbortController()
      const leave = () => gone.abort()
      // Whichever is first: the client goes, or its answer ends.
      request.raw.socket.once('close', leave)
      reply.raw.once('close', leave)
      const answer = await route
        .answer({
          params: request.params,
          query: request.query,
          body: request.body,
          actor: request.actor,
          lastEventId: request.headers['last-event-id']?.toString() ?? null,
          idempotencyKey: request.headers['idempotency-key']?.toString() ?? null,
          signal: AbortSignal.any([gone.signal, stopping]),
        })
        .finally(() => request.raw.socket.off('close', leave))
      // What is answered as saved is in force in this process: its caller may rely on it at once.
      if (route.method !== 'GET' && route.raw === undefined && answer.status < 300)
        await deps.refresh?.()
      if (answer.stream) cutStalled(reply, limitsOf(deps), stopping)
      return send(reply, answer)
    },
  })
}

type StreamLimits = Pick<typeof adminLimits, 'stalledMsMax' | 'partingMsMax'>

/** Who does not read its stream holds up neither its place nor our end. */
const cutStalled = (
  { raw }: FastifyReply,
  { stalledMsMax, partingMsMax }: StreamLimits,
  stopping: AbortSignal,
): void => {
  raw.setTimeout(stalledMsMax, () => raw.destroy())
  const part = () => void setTimeout(() => raw.destroy(), partingMsMax).unref()
  stopping.addEventListener('abort', part, { once: true })
  raw.once('close', () => stopping.removeEventListener('abort', part))
}

const send = (reply: FastifyReply, answer: Answer): FastifyReply => {
  reply.code(answer.status).header('cache-control', 'no-store')
  if (answer.status === 401) reply.header('www-authenticate', 'Bearer')
  if (answer.contentType !== undefined) reply.header('content-type', answer.contentType)
  // A stream that ends while the process stops must not leave an open connection behind.
  if (answer.stream)
    return reply
      .header('connection', 'close')
      .send(Readable.from(answer.stream, { objectMode: false, highWaterMark: 1 }))
  if (answer.contentType !== undefined) return reply.send(answer.body)
  if (answer.body === undefined) return reply.send()
  return reply
    .header('content-type', 'application/json; charset=utf-8')
    .send(JSON.stringify(answer.body))
}

const readWhole = async (_request: FastifyRequest, body: Buffer): Promise<unknown> => body

const readStream = async (_request: FastifyRequest, payload: IncomingMessage): Promise<unknown> =>
  payload

const readJson = async (_request: FastifyRequest, text: string | Buffer): Promise<unknown> => {
  const body = String(text)
  if (body === '') return undefined
  try {
    return JSON.parse(body)
  } catch (error) {
    throw refusing(
      failure('json_invalid', `the body is no valid JSON: ${(error as Error).message}`),
    )
  }
}

const readYaml = async (_request: FastifyRequest, text: string | Buffer): Promise<unknown> => {
  const parsed = parseText(String(text))
  if ('problems' in parsed) throw refusing(refusal(parsed.problems))
  return parsed.value
}

/** A parser can only throw: the answer travels on the error. */
const refusing = (answer: Answer): Error => Object.assign(new Error('refused'), { answer })

const answerOf = (deps: AdminDeps, error: unknown, request: FastifyRequest): Answer => {
  const { answer, code, statusCode } = error as Partial<Record<string, unknown>>
  if (answer) return answer as Answer
  if (code === 'FST_ERR_CTP_BODY_TOO_LARGE')
    return failure('body_too_large', 'the body is larger than 4 MiB')
  if (code === 'FST_ERR_CTP_INVALID_MEDIA_TYPE')
    return failure('media_type_unsupported', 'send the body as application/json')
  if (isUnavailable(error)) {
    deps.logger.warn({ err: error, route: request.routeOptions.url }, 'request.failed')
    return failure('database_unavailable', 'Postgres does not answer: try again')
  }
  if (typeof statusCode === 'number' && statusCode >= 400 && statusCode < 500)
    return failure('request_invalid', (error as Error).message)
  deps.logger.error({ err: error, route: request.routeOptions.url }, 'request.failed')
  return failure('internal', 'this failed; the log says why')
}

/** What the log and the archive say of themselves is no word of Postgres. */
const isUnavailable = (error: unknown): boolean => !(error instanceof Fault) && isAway(error)

const logAnswer = (deps: AdminDeps, request: FastifyRequest, reply: FastifyReply): void => {
  const level = request.method === 'GET' ? 'debug' : 'info'
  deps.logger[level](
    {
      method: request.method,
      route: request.routeOptions.url ?? null,
      status: reply.statusCode,
      durationMs: Math.round(reply.elapsedTime),
      actor: request.actor?.name ?? null,
    },
    'request.answered',
  )
}
