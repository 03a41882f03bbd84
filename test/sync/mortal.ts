// A process that dies at its nth await of Postgres or the log, just before or just after the other
// side has done what was asked; from then on nothing it does reaches anybody.
import type { Appender, Source } from '../../src/log/log.ts'
import type { Pool, Sql } from '../../src/postgres/sql.ts'

export type Death = { readonly at: number; readonly when: 'before' | 'after' }

/** Without a SQLSTATE, so that the pool throws the connection away as a dead process would. */
const died = () => new Error('the process died')

export const mortal = (world: { pool: Pool; source: Source; appender: Appender }, death: Death) => {
  let awaits = 0
  const step = async <R>(work: () => Promise<R>): Promise<R> => {
    awaits += 1
    if (awaits > death.at || (awaits === death.at && death.when === 'before')) throw died()
    const mine = awaits
    const result = await work()
    if (mine === death.at || awaits >= death.at) throw died()
    return result
  }
  const query =
    (sql: Sql): Sql['query'] =>
    (text, values) =>
      step(() => sql.query(text, values))
  const poolOf = (whole: Pool): Pool => {
    // A dead process's sessions end, whatever error was its last.
    const connect: Pool['connect'] = (use) =>
      whole.connect((real) =>
        use({
          ...real,
          query: query(real),
          copyOut: (text) => step(() => real.copyOut(text)),
        }).catch((error: unknown) => {
          throw awaits >= death.at ? died() : error
        }),
      )
    return {
      ...whole,
      query: query(whole),
      connect,
      transaction: (work, options) =>
        connect(async (connection) => {
          await connection.query(`begin isolation level ${options?.isolation ?? 'read committed'}`)
          try {
            const result = await work(connection)
            await connection.query('commit')
            return result
          } catch (error) {
            await connection.query('rollback').catch(() => undefined)
            throw error
          }
        }),
    }
  }
  const source: Source = {
    ...world.source,
    bounds: (topic) => step(() => world.source.bounds(topic)),
    read: async function* (range) {
      for await (const batch of world.source.read(range)) yield step(async () => batch)
    },
  }
  const appender: Appender = {
    ...world.appender,
    append: (topic, entries) => step(() => world.appender.append(topic, entries)),
  }
  /** `also`: another pool of the same process. */
  return { pool: poolOf(world.pool), also: poolOf, source, appender }
}
