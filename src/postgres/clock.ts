// The production clock: the database's time, sampled each minute and carried on by a monotonic timer, so
// that every process agrees on what is due and a change of the machine's clock decides nothing.
import type { Clock } from '../running.ts'
import type { Sql } from './sql.ts'

export const clockLimits = { sampleEveryMs: 60_000 }

type Options = {
  readonly sql: Sql
  /** A sample failed; the clock goes on from the last one. */
  readonly onError: (error: unknown) => void
  readonly limits?: Partial<typeof clockLimits>
  /** Milliseconds that never go backwards. */
  readonly monotonic?: () => number
}

export type OpenClock = { readonly clock: Clock; stop(): void }

const uptime = () => Number(process.hrtime.bigint()) / 1e6

/** Rejects when the first sample fails: without it there is no time to tell. */
export const openClock = async (options: Options): Promise<OpenClock> => {
  const { sql, onError, monotonic = uptime } = options
  const { sampleEveryMs } = { ...clockLimits, ...options.limits }
  const { read, adjust } = steadyClock(await sample(sql, monotonic))
  const timer = setInterval(() => {
    sample(sql, monotonic).then((next) => adjust(next, monotonic()), onError)
  }, sampleEveryMs)
  timer.unref()
  return { clock: () => new Date(read(monotonic())), stop: () => clearInterval(timer) }
}

/** At `at` by the monotonic timer the database said `time`, both in milliseconds. */
export type Sample = { readonly at: number; readonly time: number }

const sample = async (sql: Sql, monotonic: () => number): Promise<Sample> => {
  const before = monotonic()
  const { rows } = await sql.query<{ time: number }>(
    'select (extract(epoch from clock_timestamp()) * 1000)::float8 as time',
  )
  const [row] = rows
  if (!row) throw new Error('the database told no time')
  return { at: (before + monotonic()) / 2, time: row.time }
}

/** A sample ahead of the clock is taken at once; behind it, the clock runs at half speed until they meet. */
export const steadyClock = (first: Sample) => {
  let target = first
  let shown = first
  const read = (at: number) =>
    Math.max(target.time + (at - target.at), shown.time + (at - shown.at) / 2)
  return {
    read,
    adjust: (next: Sample, at: number) => {
      shown = { at, time: read(at) }
      target = next
    },
  }
}
