// How every part of the Kafka adapter reaches the brokers: one client, its log lines, admin calls that hold.
import { connect, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import {
  type Admin,
  type ISocketFactory,
  Kafka,
  type KafkaConfig,
  type logCreator,
  logLevel,
} from 'kafkajs'
import type { Logger } from 'pino'
import { Fault } from '../fault.ts'
import { orderAborted } from './kafka-aborted.ts'
import type { Topic } from './log.ts'

orderAborted()

export type KafkaConnection = {
  readonly brokers: readonly string[]
  readonly logger: Logger
  /** Put before every topic and group, where several installations share a cluster. */
  readonly prefix?: string
}

export type Timing = Pick<KafkaConfig, 'connectionTimeout' | 'requestTimeout' | 'retry'>

export const topicName = (connection: KafkaConnection, topic: Topic): string =>
  `${connection.prefix ?? ''}${topic}`

type ClientOptions = Timing & { readonly socketFactory?: ISocketFactory }

/**
 * A client of its own for each consumer and producer: kafkajs keeps a group's committed offsets in
 * the client, where two members of one group would overwrite each other's.
 */
export const openClient = (connection: KafkaConnection, options: ClientOptions): Kafka =>
  new Kafka({
    brokers: [...connection.brokers],
    clientId: 'millrace',
    logLevel: connection.logger.isLevelEnabled('debug') ? logLevel.INFO : logLevel.WARN,
    logCreator: logInto(connection.logger),
    ...options,
  })

/** kafkajs calls what it is about to retry an error: here nothing is one until a call of ours fails. */
const logInto =
  (logger: Logger): logCreator =>
  () =>
  ({ namespace, level, log }) => {
    const { message, error, broker, groupId } = log
    const line = { part: namespace, message, error, broker, groupId }
    if (level === logLevel.ERROR) logger.warn(line, 'kafka.complained')
    else if (level === logLevel.WARN) logger.info(line, 'kafka.warned')
    else logger.debug(line, 'kafka.reported')
  }

export type Sockets = { readonly make: ISocketFactory; kill(): void }

/**
 * kafkajs reconnects and sends again by itself, also long after its caller gave up. A client whose
 * sockets are gone and cannot be made again is the only one that surely does no more.
 */
export const killableSockets = (): Sockets => {
  const open = new Set<Socket>()
  const dead = new AbortController()
  const gone = () => new Error('this connection was given up')
  return {
    make: ({ host, port, onConnect }) => {
      const socket = connect({ host, port }, onConnect)
      socket.setNoDelay(true)
      // kafkajs adds one for each time it disconnects a socket that is still connecting.
      socket.setMaxListeners(0)
      // kafkajs listens too; this one is for the moment after it stopped.
      socket.on('error', () => undefined)
      open.add(socket)
      socket.once('close', () => open.delete(socket))
      if (dead.signal.aborted) socket.destroy(gone())
      return socket
    },
    kill: () => {
      dead.abort()
      for (const socket of open) socket.destroy(gone())
    },
  }
}

export type AdminCalls = {
  /** Runs the calls on a connected admin, anew with a fresh one when they fail, for up to 10 s. */
  run<T>(calls: (admin: Admin) => Promise<T>): Promise<T>
  close(): Promise<void>
}

const adminMs = 10_000
const adminTiming = {
  connectionTimeout: 2_000,
  requestTimeout: 5_000,
  retry: { retries: 1, initialRetryTime: 100, maxRetryTime: 500, factor: 0.2, multiplier: 2 },
}

/**
 * New topics and partitions have no leader for a moment, coordinators load, brokers go away: each
 * makes an admin call fail that succeeds a moment later, and an admin whose broker went away may
 * never find it again, so that a failed one is replaced.
 */
export const openAdmin = (connection: KafkaConnection): AdminCalls => {
  const client = openClient(connection, adminTiming)
  let current: Promise<Admin> | null = null
  let closed = false
  const connected = async () => {
    const admin = client.admin()
    await admin.connect()
    return admin
  }
  const discard = async (admin: Promise<Admin>) => {
    if (current === admin) current = null
    await admin.then((open) => open.disconnect()).catch(() => undefined)
  }
  return {
    run: async (calls) => {
      const until = performance.now() + adminMs
      for (;;) {
        if (closed) throw new Fault('log_closed', 'the log was closed')
        current ??= connected()
        const admin = current
        try {
          return await calls(await admin)
        } catch (error) {
          await discard(admin)
          if (error instanceof Fault) throw error
          if (performance.now() > until) throw unavailable('Kafka does not answer', error)
          await sleep(200)
        }
      }
    },
    close: async () => {
      closed = true
      if (current !== null) await discard(current)
    },
  }
}

export const unavailable = (message: string, cause: unknown): Fault =>
  new Fault('log_unavailable', `${message}: ${causeOf(cause)}`, { cause, retriable: true })

const causeOf = (error: unknown): string =>
  error instanceof Error
    ? `${error.message}${error.cause instanceof Error ? ` (${error.cause.message})` : ''}`
    : String(error)
