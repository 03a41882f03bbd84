// Makes a connection of the outgoing port: an undici client whose sockets are opened our way.
import { Client } from 'undici'
import { type Opening, openSocket } from './connect.ts'
import { bearContinue } from './continue.ts'
import { type Connection, type Ends, handlerOf } from './exchange.ts'
import type { Target } from './targets.ts'

type Options = {
  readonly opening: Opening
  readonly ends: Ends
  readonly keepAliveMs: number
  readonly headersBytesMax: number
  /** Its socket is closed. */
  readonly gone: (connection: Connection) => void
}

export const openConnection = (options: Options, target: Target): Connection => {
  const client = new Client(target.origin, {
    pipelining: 1,
    allowH2: false,
    headersTimeout: 0,
    bodyTimeout: 0,
    maxHeaderSize: options.headersBytesMax,
    keepAliveTimeout: options.keepAliveMs,
    keepAliveMaxTimeout: 60_000,
    connect: (_params, done) => {
      openSocket(options.opening, target.peer).then(
        ({ socket, phases }) => {
          connection.fresh = true
          connection.phases = phases
          bearContinue(socket, () => connection.job?.status === null)
          done(null, socket)
        },
        (error) => done(error, null),
      )
    },
  })
  const connection: Connection = {
    key: target.key,
    client,
    handler: handlerOf(options.ends, () => connection),
    fresh: true,
    phases: null,
    job: null,
    controller: null,
    timer: null,
    exactTimer: null,
  }
  client.on('disconnect', () => options.gone(connection))
  return connection
}

export const destroyConnection = ({ client, timer, exactTimer }: Connection): Promise<void> => {
  if (timer) clearTimeout(timer)
  if (exactTimer) clearTimeout(exactTimer)
  return client.destroy().catch(() => undefined)
}
