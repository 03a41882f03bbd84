// What the benches of delivery under trouble stand on: a Postgres, a fresh database for each run, and processes.

import { readFileSync } from 'node:fs'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pino from 'pino'
import { parseConfig } from '../src/config.ts'
import { openLog } from '../src/open-log.ts'
import { startPostgres } from '../src/postgres/embedded.ts'
import { migrate } from '../src/postgres/migrate.ts'
import { openPool } from '../src/postgres/pool.ts'
import type { Pool } from '../src/postgres/sql.ts'
import type { Appended, Order as LoadOrder } from './deliver-load.ts'
import { openProcesses } from './deliver-processes.ts'
import type { Order as SendOrder, Usage } from './deliver-product.ts'
import type { Counts, Group, Question } from './deliver-troubled-receiver.ts'

/** A database and, on Kafka, topics that nobody used before. */
export type Place = { readonly url: string; readonly prefix: string }

/** The log as the product opens it: on Kafka where brokers are given, else on Postgres. */
export const openLogAt = async ({ url, prefix }: Place) => {
  const { KAFKA_BROKERS: brokers } = process.env
  const kafka = { MILLRACE_KAFKA_BROKERS: brokers, MILLRACE_KAFKA_PREFIX: prefix }
  const config = parseConfig({ MILLRACE_DATABASE_URL: url, ...(brokers ? kafka : {}) })
  const pool = openPool({ url, connectionsMax: 8, name: 'bench' })
  const logger = pino({ level: 'error' })
  const log = await openLog({ config, pool, clock: () => new Date(), logger })
  const close = async () => {
    await log.close()
    await pool.close()
  }
  return { ...log, pool, close }
}

export type Receivers = {
  /** By group. */
  readonly urls: readonly (readonly string[])[]
  ask(type: Question['type']): Promise<Counts>
}

export type Stand = {
  receivers(groups: readonly Group[]): Promise<Receivers>
  load(order: LoadOrder): Promise<Appended>
  send(order: SendOrder): Promise<Usage>
  /** A fresh place, for as long as `use` takes. */
  onPlace<R>(use: (place: Place, pool: Pool) => Promise<R>): Promise<R>
  /** CPU microseconds of Postgres, of its processes that ended too. */
  postgresCpuUs(): number
}

export const withStand = async <R>(use: (stand: Stand) => Promise<R>): Promise<R> => {
  const dataDir = await mkdtemp(join(tmpdir(), 'millrace-bench-'))
  const postgres = await startPostgres({ dataDir })
  const processes = openProcesses()
  try {
    const [loader] = await processes.start('deliver-load.ts')
    const [sender] = await processes.start('deliver-product.ts')
    const pid = await pidOf(postgres.url)
    return await use({
      receivers: async (groups) => {
        const [child, { urls }] = await processes.start<{ urls: string[][] }>(
          'deliver-troubled-receiver.ts',
          [JSON.stringify(groups)],
        )
        return { urls, ask: (type) => child.ask({ type }) }
      },
      load: (order) => loader.ask(order),
      send: (order) => sender.ask(order),
      onPlace: placesIn(postgres.url),
      postgresCpuUs: () => cpuUsOf(pid),
    })
  } finally {
    await processes.end()
    await postgres.stop()
    await rm(dataDir, { recursive: true, force: true })
  }
}

const placesIn = (url: string): Stand['onPlace'] => {
  let number = 0
  return async (use) => {
    number += 1
    const name = `bench_${number}`
    const server = openPool({ url, connectionsMax: 1, name: 'bench' })
    // A URL without a host, with its socket's folder as a parameter.
    const own = url.replace('/postgres?', `/${name}?`)
    try {
      await server.query(`create database ${name}`)
      const pool = openPool({ url: own, connectionsMax: 2, name: 'bench' })
      try {
        await migrate(pool)
        return await use({ url: own, prefix: `bench-${process.pid}-${number}-` }, pool)
      } finally {
        await pool.close()
      }
    } finally {
      await server.query(`drop database if exists ${name} with (force)`)
      await server.close()
    }
  }
}

/** Of the server's first process. */
export const pidOf = async (url: string): Promise<number> => {
  const pool = openPool({ url, connectionsMax: 1, name: 'bench' })
  try {
    const { rows } = await pool.query<{ at: string }>(
      "select current_setting('data_directory') || '/postmaster.pid' as at",
    )
    const [first = ''] = (await readFile(rows[0]?.at ?? '', 'utf8')).split('\n')
    return Number(first)
  } finally {
    await pool.close()
  }
}

const tickUs = 10_000

/** A server's time is its own, that of its children that ended, and that of those that have not. */
export const cpuUsOf = (pid: number): number => {
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ')
  const own = ticksOf(String(pid), [13, 14, 15, 16])
  const theirs = children.filter(Boolean).map((child) => ticksOf(child, [13, 14]))
  return theirs.reduce((sum, ticks) => sum + ticks, own) * tickUs
}

const ticksOf = (pid: string, fields: readonly number[]): number => {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    // The name before it may hold blanks.
    const all = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    return fields.reduce((sum, field) => sum + Number(all[field - 2]), 0)
  } catch {
    // It ended since it was listed: its parent counts it from now on.
    return 0
  }
}

/** A single role stays below it, whatever happens. */
export const rssMaxBytes = 512 * 1_024 * 1_024

/** Fails the bench; what it measured is printed all the same. */
export const demand = (holds: boolean, otherwise: string): void => {
  if (holds) return
  console.error(`FAILED: ${otherwise}`)
  process.exitCode = 1
}

export const megabytes = (bytes: number): string => `${(bytes / 1_048_576).toFixed(0)} MB`
