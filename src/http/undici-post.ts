// The outgoing port over undici: one request per connection, own timers, success at the status line.
import type { Dispatcher } from 'undici'
import manifest from '../../package.json' with { type: 'json' }
import { Fault } from '../fault.ts'
import { classifyError, classifyStatus, codeOf, retryAfterMs } from './classify.ts'
import { codedError, connector } from './connect.ts'
import { type Connection, type Connections, openConnections } from './connections.ts'
import type { Post, PostRequest, PostResult } from './post.ts'

export const postLimits = {
  /** From the request written on a ready connection to the status line; the specification's five seconds. */
  answerMs: 5_000,
  /** Connect and TLS. */
  connectMs: 5_000,
  /** All of it, whatever happens. */
  totalMs: 10_000,
  /** Bytes of an answer's body that are read. */
  headBytesMax: 8_192,
  idleMax: 2_048,
  /** With more connections in use than this, a success does not wait for its body at all. */
  busyMax: 4_096,
  keepAliveMs: 15_000,
} as const

type Options = {
  /** Trusted beside the system's authorities. */
  readonly ca?: string
  readonly limits?: Partial<Record<keyof typeof postLimits, number>>
}

export type ClosablePost = Post & { close(): Promise<void> }

export const userAgent = `Millrace/${manifest.version}`

export const undiciPost = (options: Options = {}): ClosablePost => {
  const limits = { ...postLimits, ...options.limits }
  const connections = openConnections({
    idleMax: limits.idleMax,
    keepAliveMs: limits.keepAliveMs,
    connect: connector({
      timeoutMs: limits.connectMs,
      ...(options.ca === undefined ? {} : { ca: options.ca }),
    }),
  })
  let closed = false
  const targets = new Map<string, Target>()
  const post = (request: PostRequest) => {
    if (closed) throw new Fault('post_closed', 'the outgoing port is closed')
    const target = targetOf(targets, request.url)
    if (!target) return Promise.resolve(refused('invalid_url'))
    return new Promise<PostResult>((resolve) => {
      const job = {
        request,
        target,
        limits,
        connections,
        resolve,
        started: performance.now(),
        retried: false,
      }
      dispatch(job)
    })
  }
  const close = async () => {
    closed = true
    await connections.close()
  }
  return Object.assign(post, { close })
}

type Target = { readonly origin: string; readonly path: string }

const targetsMax = 10_000

/** Parsed once per URL; the cache is emptied when it is full, which costs a parse each. */
const targetOf = (targets: Map<string, Target>, url: string): Target | null => {
  const known = targets.get(url)
  if (known) return known
  const parsed = URL.parse(url)
  if (!parsed || (parsed.protocol !== 'http:' && parsed.protocol !== 'https:')) return null
  const target = { origin: parsed.origin, path: parsed.pathname + parsed.search }
  if (targets.size >= targetsMax) targets.clear()
  targets.set(url, target)
  return target
}

type Job = {
  readonly request: PostRequest
  readonly target: Target
  readonly limits: Record<keyof typeof postLimits, number>
  readonly connections: Connections
  readonly resolve: (result: PostResult) => void
  readonly started: number
  retried: boolean
}

/** One request on one connection; its fields change as the answer arrives. */
type Exchange = {
  readonly job: Job
  readonly connection: Connection
  reused: boolean
  written: boolean
  controller: Dispatcher.DispatchController | null
  timer: NodeJS.Timeout | undefined
  total: NodeJS.Timeout | undefined
  status: number | null
  retryAfterMs: number | null
  chunks: Buffer[]
  bytes: number
  ended: boolean
}

const dispatch = (job: Job): void => {
  const connection = job.connections.take(job.target.origin)
  const exchange: Exchange = {
    job,
    connection,
    reused: false,
    written: false,
    controller: null,
    timer: undefined,
    total: undefined,
    status: null,
    retryAfterMs: null,
    chunks: [],
    bytes: 0,
    ended: false,
  }
  const left = job.limits.totalMs - (performance.now() - job.started)
  exchange.total = setTimeout(() => abort(exchange, 'no answer in time'), Math.max(left, 1))
  const headers = { ...job.request.headers, 'User-Agent': userAgent }
  const body = job.request.body as Buffer
  const options = { path: job.target.path, method: 'POST' as const, headers, body }
  try {
    connection.client.dispatch(options, handlerOf(exchange))
  } catch (error) {
    failed(exchange, error)
  }
}

const handlerOf = (exchange: Exchange): Dispatcher.DispatchHandler => ({
  onRequestStart: (controller) => {
    exchange.controller = controller
    exchange.written = true
    exchange.reused = !exchange.connection.fresh
    exchange.connection.fresh = false
    exchange.timer = setTimeout(
      () => abort(exchange, 'no answer in time'),
      exchange.job.limits.answerMs,
    )
  },
  onResponseStart: (_controller, status, headers) => {
    // Informational answers come before the real one.
    if (status < 200) return
    exchange.status = status
    const asked = headers['retry-after']
    exchange.retryAfterMs = retryAfterMs(Array.isArray(asked) ? asked[0] : asked, Date.now())
    if (status <= 299) succeeded(exchange)
  },
  onResponseData: (controller, chunk) => {
    exchange.bytes += chunk.length
    if (exchange.status !== null && exchange.status > 299) exchange.chunks.push(chunk)
    if (exchange.bytes > exchange.job.limits.headBytesMax)
      controller.abort(codedError('MILLRACE_HEAD_READ', 'enough of the answer was read'))
  },
  onResponseEnd: () => {
    finish(exchange)
    exchange.job.connections.giveBack(exchange.connection)
    answered(exchange)
  },
  onResponseError: (_controller, error) => failed(exchange, error),
})

/** The rest of the body has what is left of the answer's time, then the connection goes. */
const succeeded = (exchange: Exchange): void => {
  const { limits, connections } = exchange.job
  answered(exchange)
  if (connections.busy() <= limits.busyMax) return
  clearTimeout(exchange.timer)
  exchange.timer = setTimeout(() => abort(exchange, 'the body did not end'), 0)
}

const abort = (exchange: Exchange, message: string): void => {
  const error = codedError('MILLRACE_TIMEOUT', message)
  if (exchange.controller) exchange.controller.abort(error)
  // No connection yet, or the abort found nobody to tell.
  failed(exchange, error)
}

const finish = (exchange: Exchange): void => {
  exchange.ended = true
  clearTimeout(exchange.timer)
  clearTimeout(exchange.total)
}

const answered = (exchange: Exchange): void => {
  const { status, job, chunks } = exchange
  if (status === null) return
  job.resolve({
    answer: classifyStatus(status, exchange.retryAfterMs),
    status,
    durationMs: performance.now() - job.started,
    head: chunks.length === 0 ? '' : headOf(chunks, job.limits.headBytesMax),
  })
}

const headOf = (chunks: readonly Buffer[], bytesMax: number): string =>
  Buffer.concat(chunks).subarray(0, bytesMax).toString('utf8')

const failed = (exchange: Exchange, error: unknown): void => {
  if (exchange.ended) return
  finish(exchange)
  const { job, connection } = exchange
  job.connections.destroy(connection)
  if (exchange.status !== null) {
    answered(exchange)
    return
  }
  if (isStale(exchange, error) && !job.retried) {
    job.retried = true
    dispatch(job)
    return
  }
  job.resolve({
    answer: classifyError(error),
    status: null,
    durationMs: performance.now() - job.started,
    head: '',
  })
}

/** The peer closed a kept connection as we wrote on it: said nothing, so the same try goes out once more. */
const isStale = (exchange: Exchange, error: unknown): boolean =>
  exchange.written &&
  exchange.reused &&
  ['UND_ERR_SOCKET', 'ECONNRESET', 'EPIPE'].includes(codeOf(error))

const refused = (reason: string): PostResult => ({
  answer: { type: 'final', reason, status: null },
  status: null,
  durationMs: 0,
  head: '',
})
