// One POST over one connection: its clock, what is read of the answer, and which result that makes.
import type { Socket } from 'node:net'
import type { Answer } from '../domain/round.ts'
import type { AnswerReader, Told } from './answer-reader.ts'
import { classifyError, classifyStatus, codedError, codeOf, retryAfterMs } from './classify.ts'
import type { OpeningPhases } from './connect.ts'
import type { PostRequest, PostResult } from './post.ts'
import { writeRequest } from './request-head.ts'
import type { Target } from './targets.ts'

/** One socket, one request at a time; made once, used for many requests. */
export type Connection = {
  readonly key: string
  readonly answer: AnswerReader
  /** `null`: it is being opened. */
  socket: Socket | null
  /** Whether it carried no request before the one it has. */
  fresh: boolean
  isClosed: boolean
  phases: OpeningPhases | null
  job: Job | null
  /** While it is idle: when it is not used any more. */
  keptUntil: number
  /** Set anew when it is due, for what is left to the request then under way: cheaper than a timer each. */
  timer: NodeJS.Timeout | null
  /** For a request that has less time than most. */
  exactTimer: NodeJS.Timeout | null
}

export type Job = {
  readonly request: PostRequest
  readonly target: Target
  /** Of the request, as it is written. */
  readonly head: string
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
  done: boolean
}

/** What the port does with a connection and a job whose fate is known. */
export type Ends = {
  readonly limits: {
    readonly answerMs: number
    readonly totalMs: number
    readonly headBytesMax: number
    readonly keepAliveMs: number
  }
  readonly decided: (job: Job, result: PostResult) => void
  readonly linger: (connection: Connection) => void
  readonly giveBack: (connection: Connection) => void
  /** Its socket is closed, or nobody may use it any more, while it carries nothing. */
  readonly gone: (connection: Connection) => void
  readonly destroy: (connection: Connection) => void
  /** On a new connection. */
  readonly again: (job: Job) => void
}

type Asking = Pick<Job, 'request' | 'target' | 'head' | 'resolve' | 'reject'>

export const aJob = (fixed: Asking): Job => ({
  request: fixed.request,
  target: fixed.target,
  head: fixed.head,
  resolve: fixed.resolve,
  reject: fixed.reject,
  started: 0,
  writtenAt: null,
  firstByteAt: null,
  reused: false,
  retried: false,
  heard: false,
  status: null,
  done: false,
})

/** Writes the request of a connection that has its socket; where that is going, its close tells what follows. */
export const begin = (ends: Ends, connection: Connection): void => {
  const { job, socket } = connection
  if (!job || !socket || socket.destroyed || job.writtenAt !== null) return
  job.writtenAt = performance.now()
  job.reused = !connection.fresh
  connection.fresh = false
  startTimer(ends, connection, job)
  writeRequest(socket, job.head, job.request.body)
}

/** Bytes came. */
export const heard = (ends: Ends, connection: Connection, bytes: Buffer): void => {
  const { job, answer } = connection
  // Nobody asked: what it says next would be taken for the answer to another request.
  if (!job || job.writtenAt === null) {
    drop(ends, connection)
    return
  }
  job.heard = true
  go(ends, connection, answer.read(bytes))
}

/** The peer says nothing more. */
export const ended = (ends: Ends, connection: Connection): void => {
  const { job, answer } = connection
  if (job?.heard && answer.end() === 'complete') go(ends, connection, 'complete')
  else drop(ends, connection)
}

/** Its request, where it has one, hears of it as the socket closes. */
const drop = (ends: Ends, connection: Connection): void => {
  if (connection.job) connection.socket?.destroy()
  else ends.gone(connection)
}

export const closed = (ends: Ends, connection: Connection, error: unknown): void => {
  connection.isClosed = true
  const { job } = connection
  if (!job) ends.gone(connection)
  else if (job.writtenAt === null && !connection.fresh) {
    // It was to be written within this turn of the loop.
    release(connection)
    ends.destroy(connection)
    ends.again(job)
  } else failed(ends, connection, error ?? codedError('ECONNRESET', 'the connection was closed'))
}

const unreadable = {
  malformed: 'MILLRACE_BAD_ANSWER',
  head_too_large: 'MILLRACE_HEAD_TOO_LARGE',
} as const

const go = (ends: Ends, connection: Connection, told: Told): void => {
  const { job, answer } = connection
  const head = answer.head()
  if (!job) return
  if (head !== null && job.status === null) {
    job.firstByteAt = performance.now()
    job.status = head.status
  }
  if (told === 'complete' || told === 'excess') {
    release(connection)
    if (told === 'complete' && isReusable(connection)) keep(ends, connection)
    else ends.destroy(connection)
    answered(ends, connection, job)
    // It may be idle for long: nothing of this answer is held meanwhile.
    answer.begin()
  } else if (told !== 'more')
    failed(ends, connection, codedError(unreadable[told], 'no answer that can be read'))
  else if (answer.bodyBytes() > ends.limits.headBytesMax)
    failed(ends, connection, codedError('MILLRACE_HEAD_READ', 'enough of the answer was read'))
  else if (head !== null && head.status <= 299 && !job.done) {
    // The rest of the body has what is left of the answer's time, then the connection goes.
    ends.linger(connection)
    answered(ends, connection, job)
  }
}

/** Also not where it answered before it had the request. */
const isReusable = ({ answer, socket, isClosed }: Connection): boolean =>
  !isClosed && answer.head()?.isKept === true && socket?.writableLength === 0

/** So long before a receiver closes a connection it is not used any more. */
const keptMarginMs = 2_000
const keptMostMs = 60_000

const keep = (ends: Ends, connection: Connection): void => {
  const asked = connection.answer.head()?.keptMs ?? null
  const ms = asked === null ? ends.limits.keepAliveMs : Math.min(asked - keptMarginMs, keptMostMs)
  if (ms <= 0) {
    ends.destroy(connection)
    return
  }
  connection.keptUntil = performance.now() + ms
  if (!connection.timer) setTimer(ends, connection, ms)
  ends.giveBack(connection)
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

/** Never longer than a request may take: one may begin meanwhile. */
const setTimer = (ends: Ends, connection: Connection, ms: number): void => {
  const { answerMs } = ends.limits
  const due = () => {
    connection.timer = null
    const { job, exactTimer, keptUntil } = connection
    // Its request has a timer of its own, or is about to be written: the next one sets it again.
    if (exactTimer || (job && job.writtenAt === null)) return
    const leftMs = job
      ? answerMs - (performance.now() - (job.writtenAt ?? 0))
      : keptUntil - performance.now()
    if (leftMs > earlyMs) setTimer(ends, connection, leftMs)
    else if (job) timedOut(ends, connection)
    else ends.gone(connection)
  }
  connection.timer = setTimeout(due, Math.min(ms, answerMs))
  connection.timer.unref()
}

/** Timers may come so much before their time. */
const earlyMs = 5

/** What came meanwhile is read first: that this process was held up is no fault of the receiver's. */
const timedOut = (ends: Ends, connection: Connection): void => {
  const { job } = connection
  setImmediate(() => {
    if (job !== null && connection.job === job)
      failed(ends, connection, codedError('MILLRACE_TIMEOUT', 'no answer in time'))
  })
}

/** The request on it is over, whatever came of it. */
const release = (connection: Connection): void => {
  connection.job = null
  if (connection.exactTimer) clearTimeout(connection.exactTimer)
  connection.exactTimer = null
}

/** Nothing more is to be had from it. */
export const failed = (ends: Ends, connection: Connection, error: unknown): void => {
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
  ['ECONNRESET', 'EPIPE'].includes(codeOf(error))

const answered = (ends: Ends, connection: Connection, job: Job): void => {
  if (job.done || job.status === null) return
  job.done = true
  const asked = connection.answer.head()?.retryAfter ?? undefined
  const answer = classifyStatus(job.status, retryAfterMs(asked, Date.now()))
  // Of a success it holds nothing.
  const head = connection.answer.body().subarray(0, ends.limits.headBytesMax).toString('utf8')
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
