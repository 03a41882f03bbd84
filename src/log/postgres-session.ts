// A connection of one's own for as long as it lives, and a limit on how long anything may take.
import { Fault } from '../fault.ts'
import type { Connection, Pool } from '../postgres/sql.ts'

export type Session = {
  readonly connection: Connection
  /** Closes the connection, a statement in hand or not: never back to the pool, its settings stay. */
  end(): Promise<void>
}

export const openSession = (pool: Pool): Promise<Session> => {
  const opened = Promise.withResolvers<Session>()
  const over = Promise.withResolvers<never>()
  const ended = pool
    .connect((connection) => {
      const end = () => {
        // An error without an SQLSTATE tells the pool to destroy the connection.
        over.reject(new Error('session ended'))
        return ended
      }
      opened.resolve({ connection, end })
      return over.promise
    })
    .catch((error: unknown) => opened.reject(error))
  return opened.promise
}

/** Rejects with `log_unavailable` when the work takes longer; the work itself goes on. */
export const within = async <R>(ms: number, what: string, work: Promise<R>): Promise<R> => {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    const fail = () =>
      reject(new Fault('log_unavailable', `${what} took longer than allowed`, { retriable: true }))
    timer = setTimeout(fail, Math.max(0, ms))
  })
  try {
    return await Promise.race([work, late])
  } finally {
    clearTimeout(timer)
    work.catch(() => undefined)
  }
}

export const pause = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms))
