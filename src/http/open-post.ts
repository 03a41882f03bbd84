// The outgoing port: one request at a time per connection, own timers, success at the status line.
import { Fault } from '../fault.ts'
import { type AddressRules, addressCheck } from './addresses.ts'
import { classifyError, codedError } from './classify.ts'
import type { Opening } from './connect.ts'
import { type Connections, openConnections } from './connections.ts'
import { aJob, begin, type Connection, type Ends, failed, type Job, refused } from './exchange.ts'
import { openLookup, type Resolve, systemResolve } from './lookup.ts'
import { closedConnection, destroyConnection, openConnection } from './open-connection.ts'
import type { Post, PostRequest, PostResult, Probe } from './post.ts'
import { probeOver } from './probe.ts'
import { headOf } from './request-head.ts'
import { openTargets } from './targets.ts'
import { openTrust } from './trust.ts'
import { openTurns, type Turns } from './turns.ts'

export { userAgent } from './request-head.ts'

export const postLimits = {
  /** From the request written on a ready connection to the status line; the specification's five seconds. */
  answerMs: 5_000,
  /** Name, connect and TLS. */
  connectMs: 5_000,
  /** All of it, whatever happens. */
  totalMs: 10_000,
  /** Name, connect and TLS of a probe. */
  probeMs: 5_000,
  /** Bytes of an answer's body that are read, and of its status line and headers. */
  headBytesMax: 8_192,
  headersBytesMax: 16_384,
  /** Requests in flight, in all and to one origin; more wait, which counts for nothing. */
  inFlightMax: 10_240,
  inFlightPerOriginMax: 2_048,
  /** Idle connections, in all and to one origin. */
  idleMax: 2_048,
  idlePerOriginMax: 512,
  /** Connections that only read the rest of an answer. */
  lingerMax: 1_024,
  keepAliveMs: 15_000,
} as const

type Options = {
  /** Trusted beside the system's authorities. */
  readonly ca?: string
  /** Public addresses only when absent. */
  readonly addresses?: AddressRules
  /** The system's resolver when absent. */
  readonly resolve?: Resolve
  readonly limits?: Partial<Record<keyof typeof postLimits, number>>
}

export type PostCounts = {
  readonly busy: number
  readonly lingering: number
  readonly idle: number
  readonly waiting: number
}

export type OutgoingPost = Post & {
  readonly probe: Probe
  /** Connections and waiting requests, as of now. */
  counts(): PostCounts
  close(): Promise<void>
}

export const openPost = (options: Options = {}): OutgoingPost => {
  const limits = { ...postLimits, ...options.limits }
  const trust = openTrust(options.ca)
  const isAllowed = addressCheck(options.addresses ?? { allowPrivate: false, allowed: [] })
  const resolve = openLookup(options.resolve ?? systemResolve)
  const targets = openTargets(trust, isAllowed)
  const port = openPort(limits, { timeoutMs: limits.connectMs, isAllowed, resolve })
  const post = (request: PostRequest): Promise<PostResult> => {
    if (port.isClosed()) throw closedFault()
    const target = targets.find(request.url, request.tls)
    if ('type' in target) return Promise.resolve(refused(target))
    const head = headOf(target.lead, request)
    if (head === null) return Promise.resolve(refused(unspeakable))
    return new Promise((resolve, reject) => {
      port.turns.enter(aJob({ request, target, head, resolve, reject }))
    })
  }
  return Object.assign(post, {
    probe: probeOver({ timeoutMs: limits.probeMs, isAllowed, resolve }, targets),
    counts: () => ({ ...port.connections.count(), waiting: port.turns.waiting() }),
    close: port.close,
  })
}

const unspeakable = classifyError(
  codedError('MILLRACE_INVALID_REQUEST', 'a header that cannot be sent'),
)

type Port = {
  readonly turns: Turns<Job>
  readonly connections: Connections<Connection>
  isClosed(): boolean
  close(): Promise<void>
}

const openPort = (limits: Record<keyof typeof postLimits, number>, opening: Opening): Port => {
  let isClosed = false
  const connections = openConnections<Connection>({
    idleMax: limits.idleMax,
    idlePerKeyMax: limits.idlePerOriginMax,
    lingerMax: limits.lingerMax,
    destroy: destroyConnection,
  })
  const open = ({ target }: Job) => openConnection({ ...limits, opening, ends }, target)
  const take = (job: Job): Connection => {
    for (;;) {
      const connection = connections.take(job.target.key, () => open(job))
      if (connection.socket === null || connection.keptUntil > job.started) return connection
      connections.destroy(connection)
    }
  }
  const writeLater = openTurnEnd<Connection>((connection) => begin(ends, connection))
  const turns = openTurns<Job>({
    inFlightMax: limits.inFlightMax,
    perKeyMax: limits.inFlightPerOriginMax,
    keyOf: ({ target }) => target.key,
    start: (job) => {
      job.started = performance.now()
      if (isClosed) {
        turns.leave(job)
        job.reject(closedFault())
        return
      }
      const connection = take(job)
      connection.job = job
      if (connection.socket) writeLater(connection)
    },
  })
  const ends: Ends = {
    limits,
    decided: (job, result) => {
      turns.leave(job)
      if (isClosed) job.reject(closedFault())
      else job.resolve(result)
    },
    linger: connections.linger,
    giveBack: connections.giveBack,
    gone: connections.gone,
    destroy: connections.destroy,
    again: (job) => {
      // The other kept connections are as old as the one that was closed.
      const connection = open(job)
      connection.job = job
      connections.add(connection)
    },
  }
  const close = async () => {
    isClosed = true
    const all = connections.clear()
    for (const connection of all)
      if (connection.job) failed(ends, connection, closedFault())
      else destroyConnection(connection)
    await Promise.all(all.map(closedConnection))
  }
  return { turns, connections, isClosed: () => isClosed, close }
}

/**
 * What is given waits until the sockets that have something to read are read: what a kept connection said
 * unasked, or that it was closed, is met before the next request is written on it.
 */
const openTurnEnd = <T>(act: (item: T) => void): ((item: T) => void) => {
  let waiting: T[] = []
  const flush = () => {
    const now = waiting
    waiting = []
    for (const item of now) act(item)
  }
  return (item) => {
    waiting.push(item)
    if (waiting.length === 1) setImmediate(flush)
  }
}

const closedFault = () => new Fault('post_closed', 'the outgoing port is closed')
