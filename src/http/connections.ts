// Kept connections by origin: each carries one request at a time, so nothing ever queues behind another.
import { Client } from 'undici'

export type Connection = {
  readonly client: Client
  readonly origin: string
  /** Whether the next request opens its own socket rather than reusing one the peer may have closed. */
  fresh: boolean
}

export type Connections = {
  take(origin: string): Connection
  /** Reusable: its last answer was read to the end. */
  giveBack(connection: Connection): void
  destroy(connection: Connection): void
  /** Connections in use, those included that only read the rest of an answer. */
  busy(): number
  close(): Promise<void>
}

type Options = {
  /** Idle connections kept in all; beyond it the one idle longest is closed. */
  readonly idleMax: number
  readonly keepAliveMs: number
  readonly connect: Client.Options['connect']
}

export const openConnections = (options: Options): Connections => {
  const idle = new Map<string, Connection[]>()
  const busy = new Set<Connection>()
  let idleCount = 0
  const drop = (connection: Connection) => {
    busy.delete(connection)
    connection.client.destroy().catch(() => undefined)
  }
  return {
    take: (origin) => {
      const kept = idle.get(origin)
      const reused = kept?.pop()
      if (reused) idleCount -= 1
      if (kept?.length === 0) idle.delete(origin)
      const connection = reused ?? open(origin, options)
      busy.add(connection)
      return connection
    },
    giveBack: (connection) => {
      busy.delete(connection)
      const kept = idle.get(connection.origin)
      if (kept) kept.push(connection)
      else idle.set(connection.origin, [connection])
      idleCount += 1
      if (idleCount > options.idleMax) idleCount -= closeOldest(idle, drop)
    },
    destroy: drop,
    busy: () => busy.size,
    close: async () => {
      const all = [...busy, ...[...idle.values()].flat()]
      idle.clear()
      busy.clear()
      idleCount = 0
      await Promise.all(all.map(({ client }) => client.destroy()))
    },
  }
}

const open = (origin: string, options: Options): Connection => {
  const client = new Client(origin, {
    pipelining: 1,
    allowH2: false,
    headersTimeout: 0,
    bodyTimeout: 0,
    keepAliveTimeout: options.keepAliveMs,
    keepAliveMaxTimeout: 60_000,
    ...(options.connect ? { connect: options.connect } : {}),
  })
  const connection = { client, origin, fresh: true }
  client.on('connect', () => {
    connection.fresh = true
  })
  return connection
}

/** The origin longest without a return stands first in the map. */
const closeOldest = (
  idle: Map<string, Connection[]>,
  drop: (connection: Connection) => void,
): number => {
  for (const [origin, kept] of idle) {
    const oldest = kept.shift()
    if (kept.length === 0) idle.delete(origin)
    if (oldest) drop(oldest)
    return oldest ? 1 : 0
  }
  return 0
}
