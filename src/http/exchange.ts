// One POST over one undici client: its clock, what is read of the answer, and which result that makes.
import type { Client, Dispatcher } from 'undici'
import manifest from '../../package.json' with { type: 'json' }
import type { Answer } from '../domain/round.ts'
import { classifyError, classifyStatus, codedError, codeOf, retryAfterMs } from './classify.ts'
import type { OpeningPhases } from './connect.ts'
import type { PostRequest, PostResult } from './post.ts'
import type { Target } from './targets.ts'

export const userAgent = `Millrace/${manifest.version}`

/** One socket at a time, one request at a time; made once, used for many requests. */
export type Connection = {
  readonly key: string
  readonly client: Client
  readonly handler: Dispatcher.DispatchHandler
  /** Whether the next request opens its own socket rather than reusing one the peer may have closed. */
  fresh: boolean
  /** Of the socket it has. */
  phases: OpeningPhases | null
  job: Job | null
  controller: Dispatcher.DispatchController | null
  /** Set anew when it is due, for what is left to the request then under way: cheaper than a timer each. */
  timer: NodeJS.Timeout | null
  /** For a request that has less time than most. */
  exactTimer: NodeJS.Timeout | null
}

export type Job = {
  readonly request: PostRequest
  readonly target: Target
  readonly resolve: (result: PostResult) => void
  readonly reject: (error: unknown) => void
  /** When its turn came. */
  started: number
  /** On its connection; `null`: not yet. */
  writtenAt: number | null
  firstByteAt: number | null
  reused: boolean
  retried: boolean
  /** A byte of an answer came, if only of an informational one. */
  heard: boolean
  status: number | null
  retryAfterMs: number | null
  chunks: Buffer[]
  bytes: number
  done: boolean
}

/** What the port does with a connection and a job whose fate is known. */
export type Ends = {
  readonly limits: {
    readonly answerMs: number
    readonly totalMs: number
    readonly headBytesMax: number
  }
  readonly decided: (job: Job, result: PostResult) => void
  readonly linger: (connection: Connection) => void
  readonly giveBack: (connection: Connection) => void
  readonly destroy: (connection: Connection) => void
  readonly again: (job: Job) => void
}

export const aJob = (fixed: Pick<Job, 'request' | 'target' | 'resolve' | 'reject'>): Job => ({
  request: fixed.request,
  target: fixed.target,
  resolve: fixed.resolve,
  reject: fixed.reject,
  started: 0,
  writtenAt: null,
  firstByteAt: null,
  reused: false,
  retried: false,
  heard: false,
  status: null,
  retryAfterMs: null,
  chunks: [],
  bytes: 0,
  done: false,
})

export const dispatch = (ends: Ends, connection: Connection, job: Job): void => {
  connection.job = job
  const { request, target } = job
  const { path } = target
  const headers = headersOf(request.headers)
  const body = request.body as Buffer
  try {
    connection.client.dispatch({ path, method: 'POST', headers, body }, connection.handler)
  } catch (error) {
    failed(ends, connection, error)
  }
}

/** The form undici reads fastest. */
const headersOf = (given: PostRequest['headers']): string[] => {
  const headers: string[] = Array.isArray(given) ? given.slice() : []
  if (!Array.isArray(given)) pushAll(headers, given as Readonly<Record<string, string>>)
  headers.push('User-Agent', userAgent)
  return headers
}

const pushAll = (headers: string[], given: Readonly<Record<string, string>>): void => {
  for (const name of Object.keys(given)) headers.push(name, given[name] as string)
}

export const handlerOf = (
  ends: Ends,
  connectionOf: () => Connection,
): Dispatcher.DispatchHandler & { onResponseStarted(): void } => ({
  onRequestStart: (controller) => {
    const connection = connectionOf()
    const { job } = connection
    connection.controller = controller
    if (!job) return
    job.writtenAt = performance.now()
    job.reused = !connection.fresh
    connection.fresh = false
    startTimer(ends, connection, job)
  },
  onResponseStarted: () => {
    const { job } = connectionOf()
    if (job) job.heard = true
  },
  onResponseStart: (_controller, status, headers) => {
    // Informational answers come before the real one.
    if (status >= 200) answerStarted(ends, connectionOf(), { status, headers })
  },
  onResponseData: (controller, chunk) => {
    const { job } = connectionOf()
    if (!job) return
    job.bytes += chunk.length
    if (!job.done) job.chunks.push(chunk)
    if (job.bytes > ends.limits.headBytesMax)
      controller.abort(codedError('MILLRACE_HEAD_READ', 'enough of the answer was read'))
  },
  onResponseEnd: () => {
    const connection = connectionOf()
    const { job } = connection
    release(connection)
    ends.giveBack(connection)
    if (job) answered(ends, connection, job)
  },
  onResponseError: (_controller, error) => failed(ends, connectionOf(), error),
})

type Started = {
  readonly status: number
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
}

const answerStarted = (ends: Ends, connection: Connection, { status, headers }: Started): void => {
  const { job } = connection
  if (!job) return
  job.firstByteAt = performance.now()
  job.status = status
  if (status <= 299) {
    // The rest of the body has what is left of the answer's time, then the connection goes.
    ends.linger(connection)
    answered(ends, connection, job)
    return
  }
  const asked = headers['retry-after']
  job.retryAfterMs = retryAfterMs(Array.isArray(asked) ? asked[0] : asked, Date.now())
}

const startTimer = (ends: Ends, connection: Connection, job: Job): void => {
  const { answerMs, totalMs } = ends.limits
  const leftMs = totalMs - ((job.writtenAt ?? job.started) - job.started)
  if (leftMs < answerMs) {
    connection.exactTimer = setTimeout(() => timedOut(ends, connection), Math.max(leftMs, 1))
    return
  }
  if (!connection.timer) setTimer(ends, connection, answerMs)
}

const setTimer = (ends: Ends, connection: Connection, ms: number): void => {
  const { answerMs } = ends.limits
  const due = () => {
    connection.timer = null
    const { job, exactTimer } = connection
    // Idle, or its request has a timer of its own: the next one sets it again.
    if (!job || job.writtenAt === null || exactTimer) return
    const leftMs = answerMs - (performance.now() - job.writtenAt)
    if (leftMs <= earlyMs) timedOut(ends, connection)
    else setTimer(ends, connection, leftMs)
  }
  connection.timer = setTimeout(due, ms)
  connection.timer.unref()
}

/** Timers may come so much before their time. */
const earlyMs = 5

/** What came meanwhile is read first: that this process was held up is no fault of the receiver's. */
const timedOut = (ends: Ends, connection: Connection): void => {
  const { job } = connection
  setImmediate(() => {
    if (job === null || connection.job !== job) return
    const error = codedError('MILLRACE_TIMEOUT', 'no answer in time')
    connection.controller?.abort(error)
    // Where the abort found nobody to tell.
    failed(ends, connection, error)
  })
}

/** The request on it is over, whatever came of it. */
const release = (connection: Connection): void => {
  connection.job = null
  connection.controller = null
  if (connection.exactTimer) clearTimeout(connection.exactTimer)
  connection.exactTimer = null
}

const failed = (ends: Ends, connection: Connection, error: unknown): void => {
  const { job } = connection
  if (!job) return
  release(connection)
  ends.destroy(connection)
  if (job.done) return
  if (job.status !== null) answered(ends, connection, job)
  else if (isStale(job, error)) {
    job.retried = true
    job.writtenAt = null
    ends.again(job)
  } else ends.decided(job, resultOf(job, connection, { answer: classifyError(error), head: '' }))
}

/** The peer closed a kept connection as we wrote on it: said nothing, so the same try goes out once more. */
const isStale = (job: Job, error: unknown): boolean =>
  !job.retried &&
  job.reused &&
  !job.heard &&
  job.writtenAt !== null &&
  ['UND_ERR_SOCKET', 'ECONNRESET', 'EPIPE'].includes(codeOf(error))

const answered = (ends: Ends, connection: Connection, job: Job): void => {
  if (job.done || job.status === null) return
  job.done = true
  const answer = classifyStatus(job.status, job.retryAfterMs)
  const { chunks } = job
  const head =
    chunks.length === 0
      ? ''
      : Buffer.concat(chunks).subarray(0, ends.limits.headBytesMax).toString('utf8')
  job.chunks = []
  ends.decided(job, resultOf(job, connection, { answer, head }))
}

type Decided = Pick<PostResult, 'answer' | 'head'>

const resultOf = (job: Job, { phases }: Connection, { answer, head }: Decided): PostResult => {
  const { started, writtenAt, firstByteAt, reused, status } = job
  const totalMs = performance.now() - started
  const opening = reused || writtenAt === null ? null : phases
  return {
    answer,
    status,
    durationMs: totalMs,
    head,
    reused,
    phases: {
      dnsMs: opening?.dnsMs ?? null,
      connectMs: opening?.connectMs ?? null,
      tlsMs: opening?.tlsMs ?? null,
      firstByteMs: writtenAt === null || firstByteAt === null ? null : firstByteAt - writtenAt,
      totalMs,
    },
  }
}

/** What a job that never reached a connection comes to. */
export const refused = (answer: Answer): PostResult => ({
  answer,
  status: null,
  durationMs: 0,
  head: '',
  reused: false,
  phases: { dnsMs: null, connectMs: null, tlsMs: null, firstByteMs: null, totalMs: 0 },
})
