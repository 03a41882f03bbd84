// Counts what breaks tracking plans, beside the line: added up in memory, saved every few seconds.
import type { Logger } from 'pino'
import { ownKinds, type Violation, type Violations } from '../domain/tracking-plan.ts'
import { type Pool, replayed } from '../postgres/sql.ts'
import { repeat } from '../repeat.ts'
import type { Running } from '../running.ts'
import {
  asOther,
  deleteViolations,
  saveViolations,
  type ViolationCount,
} from './violations-store.ts'

export const violationLimits = {
  saveMs: 5_000,
  /** Of distinct violations by source and day; the rest goes to one row. */
  distinctMax: 1_000,
  /** Of all that wait to be saved, however long Postgres is away; the rest goes to one row by source and day. */
  waitingMax: 20_000,
  keptDays: 90,
  sweepMs: 3_600_000,
  replaysMax: 5,
}

type Deps = {
  readonly pool: Pool
  readonly logger: Logger
  readonly clock: () => Date
  readonly limits?: Partial<typeof violationLimits>
}

export type ViolationCounter = Violations &
  Running & {
    /** Resolves when what was added before is saved; rejects when it could not be, and keeps it. */
    save(): Promise<void>
  }

const dayMs = 86_400_000

export const startViolations = (deps: Deps): ViolationCounter => {
  const { pool, logger } = deps
  const limits = { ...violationLimits, ...deps.limits }
  let waiting = openWaiting(limits)
  let saving: Promise<void> = Promise.resolve()
  let sweptAt = Number.NEGATIVE_INFINITY
  const write = async () => {
    const counts = waiting.take()
    if (counts.length > 0) {
      const before = waiting
      try {
        await replayed(limits.replaysMax, () => saveViolations(pool, counts, limits.distinctMax))
      } catch (error) {
        // The older first, so that what is told as first stays it.
        const since = before.take()
        waiting = openWaiting(limits)
        for (const count of [...counts, ...since]) waiting.put(count)
        throw error
      }
    }
    const now = deps.clock().getTime()
    if (now - sweptAt < limits.sweepMs) return
    await deleteViolations(pool, new Date(now - limits.keptDays * dayMs))
    sweptAt = now
  }
  const save = () => {
    // One after another: a save that follows a failed one begins with what that one kept.
    saving = saving.catch(() => undefined).then(write)
    return saving
  }
  const trySave = () =>
    save().catch((error: unknown) => logger.warn({ err: error }, 'violations.not_saved'))
  const saves = repeat(limits.saveMs, trySave)
  const { promise: done, resolve } = Promise.withResolvers<void>()
  return {
    add: ({ id }, broken, at) => {
      for (const violation of broken) waiting.put(countOf(id, violation, at))
    },
    save,
    stop: async () => {
      await saves.stop()
      await trySave()
      resolve()
    },
    done,
  }
}

const countOf = (sourceId: number, { event, path, kind }: Violation, at: number) => {
  const day = new Date(at).toISOString().slice(0, 10)
  return { sourceId, day, event, path, kind, calls: 1, firstAt: at, lastAt: at }
}

type Waiting = { put(count: ViolationCount): void; take(): readonly ViolationCount[] }

const openWaiting = (limits: typeof violationLimits): Waiting => {
  let counts = new Map<string, ViolationCount>()
  /** Distinct ones by source and day. */
  let distinct = new Map<string, number>()
  const put = (count: ViolationCount): void => {
    const key = JSON.stringify([count.sourceId, count.day, count.event, count.path, count.kind])
    const found = counts.get(key)
    if (found) {
      counts.set(key, added(found, count))
      return
    }
    const group = `${count.sourceId} ${count.day}`
    const held = distinct.get(group) ?? 0
    const hasRoom = held < limits.distinctMax && counts.size < limits.waitingMax
    if (!hasRoom && count.kind !== ownKinds.other) {
      put(asOther(count))
      return
    }
    distinct.set(group, held + 1)
    counts.set(key, count)
  }
  return {
    put,
    take: () => {
      const taken = [...counts.values()]
      counts = new Map()
      distinct = new Map()
      return taken
    },
  }
}

const added = (one: ViolationCount, other: ViolationCount): ViolationCount => ({
  ...one,
  calls: one.calls + other.calls,
  firstAt: Math.min(one.firstAt, other.firstAt),
  lastAt: Math.max(one.lastAt, other.lastAt),
})
