// Who waits for news on the Postgres log is woken by a notification, or after a while without one.
import type { Logger } from 'pino'
import type { Pool } from '../postgres/sql.ts'

/** Something that may be woken while nobody waits: the next wait then ends at once. */
export type Signal = { wake(): void; wait(ms: number): Promise<'woken' | 'waited'> }

export const signal = (): Signal => {
  let woken = false
  let end: (() => void) | null = null
  return {
    wake: () => {
      woken = true
      end?.()
    },
    wait: (ms) =>
      new Promise((resolve) => {
        const timer = setTimeout(() => end?.(), ms)
        end = () => {
          clearTimeout(timer)
          end = null
          resolve(woken ? 'woken' : 'waited')
          woken = false
        }
        if (woken) end()
      }),
  }
}

export type Wakes = {
  /** Calls back with the name of a topic that was appended to, or of a group that changed. */
  on(listener: (name: string | null) => void): () => void
  close(): Promise<void>
}

const retryMs = 1_000

/** One listening connection for all readers of a source, opened with the first of them. */
export const openWakes = (pool: Pool, logger: Logger | undefined): Wakes => {
  const listeners = new Set<(name: string | null) => void>()
  const tell = (name: string | null) => {
    for (const listener of [...listeners]) listener(name)
  }
  let listening: Promise<void> | null = null
  let unlisten: (() => Promise<void>) | null = null
  let closed = false
  let retry: NodeJS.Timeout | undefined
  const listen = async () => {
    try {
      unlisten = await pool.listen('log', { notified: tell, reconnected: () => tell(null) })
      tell(null)
    } catch (error) {
      // Readers poll meanwhile.
      logger?.warn({ err: error }, 'log_listener.failed')
      if (!closed) retry = setTimeout(() => (listening = listen()), retryMs)
    }
  }
  return {
    on: (listener) => {
      listeners.add(listener)
      listening ??= listen()
      return () => listeners.delete(listener)
    },
    close: async () => {
      closed = true
      clearTimeout(retry)
      await listening
      await unlisten?.()
    },
  }
}
