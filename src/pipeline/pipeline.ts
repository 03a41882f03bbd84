// Counts what happens to calls on their way, in memory, and adds it to the hour's counters every few seconds.
import type { Logger } from 'pino'
import type { Counted, Pipeline } from '../domain/pipeline.ts'
import type { Sql } from '../postgres/sql.ts'
import { repeat } from '../repeat.ts'
import type { Clock, Running } from '../running.ts'
import { addCounts, deleteCountsBefore } from './store.ts'

export const pipelineLimits = {
  saveEveryMs: 5_000,
  /** Counters waiting to be saved; what needs another one beyond them is counted without its details. */
  countersMax: 20_000,
  keptMs: 30 * 86_400_000,
}

type Deps = {
  readonly sql: Sql
  readonly clock: Clock
  readonly logger: Logger
  /** Told everything once, some seconds late. */
  readonly tell?: (counted: Counted, amount: number) => void
  readonly limits?: Partial<typeof pipelineLimits>
}

type Counter = {
  readonly counted: Counted
  /** Epoch ms. */
  readonly hour: number
  unsaved: number
  untold: number
}

export type OpenPipeline = Pipeline &
  Running & {
    /** Tells what was not told yet. */
    tellAll(): void
  }

const hourMs = 3_600_000

export const openPipeline = (deps: Deps): OpenPipeline => {
  const { sql, clock, logger, tell } = deps
  const limits = { ...pipelineLimits, ...deps.limits }
  const counters = new Map<string, Counter>()
  const count = (counted: Counted, amount: number): void => {
    if (amount <= 0) return
    const hour = Math.floor(clock().getTime() / hourMs) * hourMs
    const counter =
      counters.get(nameOf(counted, hour)) ??
      add(counters, { counted, hour, max: limits.countersMax })
    counter.unsaved += amount
    counter.untold += amount
  }
  const tellAll = (): void => {
    for (const counter of counters.values()) {
      if (counter.untold > 0) tell?.(counter.counted, counter.untold)
      counter.untold = 0
    }
  }
  let cleanedAt = Number.NEGATIVE_INFINITY
  const save = async (): Promise<void> => {
    tellAll()
    await saveCounts(sql, counters)
    const now = clock().getTime()
    if (now - cleanedAt < hourMs) return
    cleanedAt = now
    await deleteCountsBefore(sql, new Date(now - limits.keptMs))
  }
  const trySave = () =>
    save().catch((error: unknown) => {
      // What was not saved is still counted: the next try brings it.
      logger.warn({ err: error, counters: counters.size }, 'pipeline.not_saved')
    })
  const saving = repeat(limits.saveEveryMs, trySave)
  const { promise: done, resolve } = Promise.withResolvers<void>()
  let ending: Promise<void> | null = null
  const end = async () => {
    await saving.stop()
    await trySave()
    resolve()
  }
  return {
    count,
    tellAll,
    done,
    stop: () => {
      ending ??= end()
      return ending
    },
  }
}

const nameOf = (counted: Counted, hour: number): string =>
  `${hour} ${counted.sourceId} ${counted.destinationId ?? 0} ${counted.step} ${counted.type} ${counted.reason ?? ''}`

/** What no source has: where counts go that found no room. */
const elsewhere = {
  sourceId: 0,
  destinationId: null,
  type: 'unknown',
  reason: 'not_listed',
} as const

type Added = { readonly counted: Counted; readonly hour: number; readonly max: number }

const add = (counters: Map<string, Counter>, { counted, hour, max }: Added): Counter => {
  const listed = counters.size < max ? counted : { ...elsewhere, step: counted.step }
  const name = nameOf(listed, hour)
  const held = counters.get(name)
  if (held !== undefined) return held
  const counter = { counted: listed, hour, unsaved: 0, untold: 0 }
  counters.set(name, counter)
  return counter
}

const saveCounts = async (sql: Sql, counters: Map<string, Counter>): Promise<void> => {
  const saving = [...counters].map(([name, counter]) => ({
    name,
    counter,
    amount: counter.unsaved,
  }))
  await addCounts(
    sql,
    saving.flatMap(({ counter: { counted, hour }, amount }) =>
      amount > 0 ? [{ ...counted, hour: new Date(hour), amount }] : [],
    ),
  )
  for (const { name, counter, amount } of saving) {
    counter.unsaved -= amount
    if (counter.unsaved === 0 && counter.untold === 0) counters.delete(name)
  }
}
