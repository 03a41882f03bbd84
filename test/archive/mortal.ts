// A process that dies at its nth step in Postgres or the store, just before or just after the step was done;
// from then on nothing it does reaches anybody.
import type { Store } from '../../src/archive/store.ts'
import type { Connection, Pool, Sql } from '../../src/postgres/sql.ts'

export type Death = { readonly at: number; readonly when: 'before' | 'after' }

/** Without a SQLSTATE, so that the pool throws the connection away as a dead process would. */
const died = () => new Error('the process died')

export const mortal = (world: { pool: Pool; store: Store }, death: Death) => {
  let steps = 0
  const dead = Promise.withResolvers<void>()
  const die = (): never => {
    dead.resolve()
    throw died()
  }
  const step = async <R>(work: () => Promise<R>): Promise<R> => {
    steps += 1
    const mine = steps
    if (mine > death.at || (mine === death.at && death.when === 'before')) die()
    const result = await work()
    if (steps >= death.at) die()
    return result
  }
  const query =
    (sql: Sql): Sql['query'] =>
    (text, values) =>
      step(() => sql.query(text, values))
  const connect: Pool['connect'] = (use) =>
    world.pool.connect((real) => use({ ...real, query: query(real) } as Connection))
  const pool: Pool = {
    ...world.pool,
    query: query(world.pool),
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
  const store: Store = {
    put: (...given) => step(() => world.store.put(...given)),
    get: (...given) => step(() => world.store.get(...given)),
    remove: (...given) => step(() => world.store.remove(...given)),
    list: async function* (folder, signal) {
      const found = []
      for await (const each of world.store.list(folder, signal)) found.push(each)
      await step(async () => undefined)
      yield* found
    },
  }
  return { pool, store, dead: dead.promise, steps: () => steps }
}
