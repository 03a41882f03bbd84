// The log contract on the Postgres adapter, with a pool that can be cut off, killed and disturbed.
import { postgresAppender, postgresSource } from '../../src/log/postgres.ts'
import { openPool } from '../../src/postgres/pool.ts'
import type { Connection, Pool, Sql } from '../../src/postgres/sql.ts'
import { cloneDatabase } from '../support/database.ts'
import { logContract } from './log.contract.ts'
import { type LogHarness, type Opened, pause } from './log.harness.ts'

type Gate = {
  state: 'open' | 'hung' | 'dead'
  /** Runs in place of an append's statement. */
  disturb?: (connection: Connection, append: () => ReturnType<Sql['query']>) => Promise<unknown>
}

/** The pool as a process sees it whose network hangs, or which is dead. */
const gated = (pool: Pool, gate: Gate): Pool => {
  const through = <R>(work: () => Promise<R>): Promise<R> => {
    if (gate.state === 'hung') return new Promise(() => undefined)
    if (gate.state === 'dead') return Promise.reject(new Error('this process is dead'))
    return work()
  }
  const wrap = (connection: Connection): Connection => ({
    ...connection,
    query: ((text: string, values?: readonly unknown[]) =>
      through(() => {
        const query = () => connection.query(text, values)
        const isAppend = text.includes('insert into log_chunk')
        return isAppend && gate.disturb ? gate.disturb(connection, query) : query()
      })) as Sql['query'],
  })
  return {
    query: (text, values) => through(() => pool.query(text, values)),
    connect: (use) => through(() => pool.connect((connection) => use(wrap(connection)))),
    transaction: (work, options) =>
      through(() => pool.transaction((tx) => work(wrap(tx)), options)),
    listen: (channel, listener) => through(() => pool.listen(channel, listener)),
    close: () => pool.close(),
  }
}

const makeHarness = async (): Promise<LogHarness> => {
  const database = await cloneDatabase()
  const pools: Pool[] = []
  const gates = new Map<Opened, { readonly gate: Gate; readonly name: string }>()
  const crashed: Opened[] = []
  const clock = () => new Date()
  const openWith = async (gate: Gate) => {
    const name = `test-${pools.length}`
    const pool = openPool({ url: database.url, connectionsMax: 8, name })
    pools.push(pool)
    const deps = { pool: gated(pool, gate), clock }
    const opened = { appender: postgresAppender(deps), source: postgresSource(deps) }
    gates.set(opened, { gate, name })
    return opened
  }
  return {
    open: () => openWith({ state: 'open' }),
    openDisturbed: (random) =>
      openWith({
        state: 'open',
        disturb: async (connection, append) => {
          await connection.query('begin')
          const result = await append()
          if (random() < 0.3) await pause(random() * 20)
          if (random() < 0.05) throw new Error('rolled back')
          await connection.query('commit')
          return result
        },
      }),
    cut: async (opened) => {
      const found = gates.get(opened)
      if (found) found.gate.state = 'hung'
    },
    crash: async (opened) => {
      const found = gates.get(opened)
      if (!found) return
      found.gate.state = 'dead'
      crashed.push(opened)
      await database.pool.query(
        'select pg_terminate_backend(pid) from pg_stat_activity where application_name = $1',
        [found.name],
      )
    },
    hole: async ({ topic, partition }) => {
      await database.pool.query(
        'update log_partition set next_offset = next_offset + 1 where (topic, partition) = ($1, $2)',
        [topic, partition],
      )
    },
    truncate: async ({ topic, partition, before }) => {
      await database.pool.query(
        'update log_partition set start_offset = $3 where (topic, partition) = ($1, $2)',
        [topic, partition, before],
      )
    },
    close: async () => {
      for (const { source } of crashed) await source.close()
      await Promise.all(pools.map((pool) => pool.close()))
    },
  }
}

logContract('Postgres', makeHarness)
