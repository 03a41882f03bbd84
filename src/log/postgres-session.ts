// A connection of one's own for as long as it lives.
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
