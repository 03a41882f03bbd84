// Keeps the Postgres log's days: makes the coming one in time, drops those past retention.
import type { Logger } from 'pino'
import { type Pool, sqlState } from '../postgres/sql.ts'
import type { Clock, Running } from '../running.ts'
import type { Topic } from './log.ts'
import {
  dropDay,
  ensureDays,
  isBefore,
  listDays,
  type Need,
  nameOf,
  needsOf,
} from './postgres-days.ts'

export const maintenanceLimits = {
  retentionDays: 7,
  /** By the clock given: under virtual time, virtual. */
  everyMs: 600_000,
} as const

type Deps = {
  readonly pool: Pool
  readonly clock: Clock
  readonly logger?: Logger
  readonly retentionDays?: number
  /** Topics that wait for the archive, whether or not one of its processes lives. */
  readonly archived?: readonly Topic[]
  /** A day past retention that a reader still needs: kept, and somebody has to know. */
  readonly onHeld?: (held: HeldDay) => void
}

export type HeldDay = { readonly day: string; readonly needs: readonly Need[] }

/** One round: what was dropped, and what was kept past retention because a reader needs it. */
export const tidyDays = async (
  pool: Pool,
  {
    at,
    retentionDays,
    archived = [],
  }: {
    readonly at: Date
    readonly retentionDays: number
    readonly archived?: readonly Topic[]
  },
): Promise<{ readonly dropped: readonly string[]; readonly held: readonly HeldDay[] }> => {
  await ensureDays(pool, at)
  const horizon = new Date(at.getTime() - retentionDays * 86_400_000)
  const dropped: string[] = []
  const held: HeldDay[] = []
  for (const day of await listDays(pool)) {
    if (!isBefore(day, horizon)) continue
    const needs = await needsOf(pool, { day, at, archived })
    if (needs.length > 0) {
      // Later days are not dropped over its head: the log would have a hole at its start.
      held.push({ day: nameOf(day), needs })
      break
    }
    await pool.transaction((tx) => dropDay(tx, day))
    dropped.push(nameOf(day))
  }
  return { dropped, held }
}

/** undefined_table: another process dropped the day first; lock_not_available: next round. */
const passing = new Set(['42P01', '55P03'])

const pollMs = 250

export const maintainPostgresLog = (deps: Deps): Running => {
  const { pool, clock, logger, archived = [] } = deps
  const { retentionDays = maintenanceLimits.retentionDays } = deps
  let stopped = false
  let wake: () => void = () => undefined
  const round = async (at: Date) => {
    try {
      const { dropped, held } = await tidyDays(pool, { at, retentionDays, archived })
      if (dropped.length > 0) logger?.info({ days: dropped }, 'log_day.dropped')
      for (const { day, needs } of held) {
        logger?.warn({ day, needs: needs.map(plain) }, 'log_day.held')
        deps.onHeld?.({ day, needs })
      }
    } catch (error) {
      const state = sqlState(error)
      if (state === null || !passing.has(state))
        logger?.error({ err: error }, 'log_maintenance.failed')
    }
  }
  const run = async () => {
    let due = Number.NEGATIVE_INFINITY
    while (!stopped) {
      const at = clock()
      if (at.getTime() >= due) {
        await round(at)
        due = at.getTime() + maintenanceLimits.everyMs
      }
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, pollMs)
        wake = () => {
          clearTimeout(timer)
          resolve()
        }
        if (stopped) wake()
      })
    }
  }
  const done = run()
  return {
    stop: () => {
      stopped = true
      wake()
      return done
    },
    done,
  }
}

/** JSON has no bigint. */
const plain = (need: Need) => ({ ...need, next: String(need.next), end: String(need.end) })
