// Kept connections by key: each carries one request at a time, so nothing ever queues behind another.

export type Connections<Connection> = {
  /** One that is kept, or else a new one. */
  take(key: string, open: () => Connection): Connection
  add(connection: Connection): void
  /** Its message is decided; the rest of the answer is being read. */
  linger(connection: Connection): void
  /** Reusable: its last answer was read to the end. */
  giveBack(connection: Connection): void
  /** Its socket is gone: nothing to keep if it carries no request. */
  gone(connection: Connection): void
  destroy(connection: Connection): void
  count(): { readonly busy: number; readonly lingering: number; readonly idle: number }
  /** Forgets all, which the caller then destroys. */
  clear(): readonly Connection[]
}

type Options<Connection> = {
  /** Idle connections kept in all, and of one key; beyond it the one idle longest goes. */
  readonly idleMax: number
  readonly idlePerKeyMax: number
  /** Connections that only read the rest of an answer; beyond it the oldest goes. */
  readonly lingerMax: number
  readonly destroy: (connection: Connection) => void
}

export const openConnections = <Connection extends { readonly key: string }>(
  options: Options<Connection>,
): Connections<Connection> => {
  const idle = new Map<string, Connection[]>()
  const busy = new Set<Connection>()
  const lingering = new Set<Connection>()
  let idleCount = 0
  const removeIdle = (kept: Connection[], connection: Connection) => {
    const at = kept.lastIndexOf(connection)
    if (at < 0) return false
    kept.splice(at, 1)
    if (kept.length === 0) idle.delete(connection.key)
    idleCount -= 1
    return true
  }
  const destroy = (connection: Connection) => {
    busy.delete(connection)
    lingering.delete(connection)
    options.destroy(connection)
  }
  const closeOldest = () => {
    // The key longest without a return stands first.
    for (const kept of idle.values()) {
      const [oldest] = kept
      if (oldest && removeIdle(kept, oldest)) return options.destroy(oldest)
    }
  }
  return {
    take: (key, open) => {
      const kept = idle.get(key)
      const connection = kept?.pop() ?? open()
      if (kept) idleCount -= 1
      if (kept?.length === 0) idle.delete(key)
      busy.add(connection)
      return connection
    },
    add: (connection) => {
      busy.add(connection)
    },
    linger: (connection) => {
      lingering.add(connection)
      if (lingering.size <= options.lingerMax) return
      for (const oldest of lingering) return destroy(oldest)
    },
    giveBack: (connection) => {
      lingering.delete(connection)
      if (!busy.delete(connection)) return
      const kept = idle.get(connection.key)
      if (kept) kept.push(connection)
      else idle.set(connection.key, [connection])
      idleCount += 1
      const [oldest] = kept ?? []
      if (kept && oldest && kept.length > options.idlePerKeyMax && removeIdle(kept, oldest))
        options.destroy(oldest)
      if (idleCount > options.idleMax) closeOldest()
    },
    gone: (connection) => {
      const kept = idle.get(connection.key)
      if (kept && removeIdle(kept, connection)) options.destroy(connection)
    },
    destroy,
    count: () => ({
      busy: busy.size - lingering.size,
      lingering: lingering.size,
      idle: idleCount,
    }),
    clear: () => {
      const all = [...busy, ...[...idle.values()].flat()]
      for (const set of [idle, busy, lingering]) set.clear()
      idleCount = 0
      return all
    },
  }
}
