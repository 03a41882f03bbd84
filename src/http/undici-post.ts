// The outgoing port over undici: one request per connection, own timers, success at the status line.
import { Fault } from '../fault.ts'
import { type AddressRules, addressCheck } from './addresses.ts'
import type { Opening } from './connect.ts'
import { type Connections, openConnections } from './connections.ts'
import { aJob, type Connection, dispatch, type Ends, type Job, refused } from './exchange.ts'
import { openLookup, type Resolve, systemResolve } from './lookup.ts'
import { destroyConnection, openConnection } from './open-connection.ts'
import type { Post, PostRequest, PostResult, Probe } from './post.ts'
import { probeOver } from './probe.ts'
import { openTargets } from './targets.ts'
import { openTrust } from './trust.ts'
import { openTurns, type Turns } from './turns.ts'

export { userAgent } from './exchange.ts'

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

export type UndiciPost = Post & {
  readonly probe: Probe
  /** Connections and waiting requests, as of now. */
  counts(): PostCounts
  close(): Promise<void>
}

export const undiciPost = (options: Options = {}): UndiciPost => {
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
    return new Promise((resolve, reject) => {
      port.turns.enter(aJob({ request, target, resolve, reject }))
    })
  }
  return Object.assign(post, {
    probe: probeOver({ timeoutMs: limits.probeMs, isAllowed, resolve }, targets),
    counts: () => ({ ...port.connections.count(), waiting: port.turns.waiting() }),
    close: port.close,
  })
}

type Port = {
  readonly turns: Turns<Job>
  readonly connections: Connections<Connection>
  isClosed(): boolean
  close(): Promise<void>
}

const openPort = (limits: Record<keyof typeof postLimits, number>, opening: Opening): Port => {
  let closed = false
  const connections = openConnections<Connection>({
    idleMax: limits.idleMax,
    idlePerKeyMax: limits.idlePerOriginMax,
    lingerMax: limits.lingerMax,
    destroy: (connection) => void destroyConnection(connection),
  })
  const open = ({ target }: Job) =>
    openConnection({ ...limits, opening, ends, gone: connections.gone }, target)
  const turns = openTurns<Job>({
    inFlightMax: limits.inFlightMax,
    perKeyMax: limits.inFlightPerOriginMax,
    keyOf: ({ target }) => target.key,
    start: (job) => {
      job.started = performance.now()
      if (closed) {
        turns.leave(job)
        job.reject(closedFault())
        return
      }
      const connection = connections.take(job.target.key, () => open(job))
      dispatch(ends, connection, job)
    },
  })
  const ends: Ends = {
    limits,
    decided: (job, result) => {
      turns.leave(job)
      if (closed) job.reject(closedFault())
      else job.resolve(result)
    },
    linger: connections.linger,
    giveBack: connections.giveBack,
    destroy: connections.destroy,
    again: (job) => {
      // The other kept connections are as old as the one that was closed.
      const connection = open(job)
      connections.add(connection)
      dispatch(ends, connection, job)
    },
  }
  const close = async () => {
    closed = true
    await Promise.all(connections.clear().map(destroyConnection))
  }
  return { turns, connections, isClosed: () => closed, close }
}

const closedFault = () => new Fault('post_closed', 'the outgoing port is closed')
