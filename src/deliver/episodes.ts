// URLs that fail, and are well again: told once for each episode, whichever processes see it, live or die.
import type { Pool, Sql } from '../postgres/sql.ts'
import {
  endEpisodes,
  type TakenOver,
  takeOver,
  type UrlOf,
  unwatch,
  watch,
} from './episode-store.ts'
import { type Level, type WriteDeps, writeLevels } from './episode-write.ts'

export type EpisodeDeps = WriteDeps & {
  readonly pool: Pool
  readonly now: () => Date
  /** Who watches says so this often. */
  readonly limits: { readonly watchEveryMs: number }
}

export type Episodes = {
  /** To be told with the next `write`. */
  put(level: Level): void
  /** What is due; whether any of it is on its way now. Rejects where Postgres does not take it: it waits. */
  write(): Promise<boolean>
  /** What processes that are gone said, and this one says from now on. */
  inherit(isConfigured: (url: UrlOf) => boolean): Promise<readonly TakenOver[]>
  /** Others may take over at once. */
  end(): Promise<void>
}

type Waiting = { readonly levels: readonly Level[]; readonly notBefore: number }

type Desk = {
  readonly deps: EpisodeDeps
  /** By URL, at most `levelsMax` of each; URLs are bounded by those whose answers are remembered. */
  readonly waiting: Map<string, Waiting>
  watchedAt: number
  lookedAt: number
}

/** Once up all levels, and down; what is more at once is told as it ends. */
const levelsMax = 5
const atOnce = 100
const never = Number.NEGATIVE_INFINITY

const keyOf = ({ destinationId, url }: UrlOf): string => `${destinationId} ${url}`

export const openEpisodes = (deps: EpisodeDeps): Episodes => {
  const desk: Desk = { deps, waiting: new Map(), watchedAt: never, lookedAt: never }
  return {
    put: (level) => put(desk, level),
    write: () => write(desk),
    inherit: (isConfigured) => inherit(desk, isConfigured),
    end: async () => {
      if (desk.watchedAt !== never) await unwatch(deps.pool, deps.owner)
    },
  }
}

const put = ({ waiting }: Desk, level: Level): void => {
  const known = waiting.get(keyOf(level))
  // What waited for its hour is out of date.
  const before = known?.notBefore === never ? known.levels.slice(0, levelsMax - 1) : []
  waiting.set(keyOf(level), { levels: [...before, level], notBefore: never })
}

const write = async (desk: Desk): Promise<boolean> => {
  const { deps, waiting } = desk
  let isSomeNew = false
  for (;;) {
    const at = deps.now()
    const due = dueOf(desk, at.getTime())
    if (due.length === 0) return isSomeNew
    const { isNew, later } = await inTransaction(desk, async (tx) => {
      if (isTimeToWatch(desk, desk.watchedAt, at)) await watchOn(desk, tx, at)
      return writeLevels(deps, tx, { due, at })
    })
    isSomeNew ||= isNew
    for (const level of due) forget(desk, level)
    // Where something newer waits, that is what is to be told.
    for (const { level, notBefore } of later)
      if (!waiting.has(keyOf(level))) waiting.set(keyOf(level), { levels: [level], notBefore })
  }
}

/** The first of each of so many URLs. */
const dueOf = ({ waiting }: Desk, now: number): readonly Level[] => {
  const due: Level[] = []
  for (const { levels, notBefore } of waiting.values()) {
    if (due.length === atOnce) break
    const [first] = levels
    if (first && notBefore <= now) due.push(first)
  }
  return due
}

const forget = ({ waiting }: Desk, level: Level): void => {
  const known = waiting.get(keyOf(level))
  if (known?.levels[0] !== level) return
  if (known.levels.length === 1) waiting.delete(keyOf(level))
  else waiting.set(keyOf(level), { levels: known.levels.slice(1), notBefore: never })
}

const inTransaction = async <R>(desk: Desk, work: (tx: Sql) => Promise<R>): Promise<R> => {
  try {
    return await desk.deps.pool.transaction(work)
  } catch (error) {
    // Nor does Postgres know then that this process watches.
    desk.watchedAt = never
    throw error
  }
}

const isTimeToWatch = ({ deps }: Desk, since: number, at: Date): boolean =>
  Math.abs(at.getTime() - since) >= deps.limits.watchEveryMs

const watchOn = async (desk: Desk, tx: Sql, at: Date): Promise<void> => {
  await watch(tx, desk.deps.owner, at)
  desk.watchedAt = at.getTime()
}

/** Looked at now and then; costs nothing to speak of while nothing fails. */
const inherit = async (
  desk: Desk,
  isConfigured: (url: UrlOf) => boolean,
): Promise<readonly TakenOver[]> => {
  const { deps } = desk
  const { owner, limits } = deps
  const at = deps.now()
  if (!isTimeToWatch(desk, desk.lookedAt, at)) return []
  const aliveSince = new Date(at.getTime() - limits.watchDeadMs)
  // What was not told was not heard of either: it is found anew.
  const isKept = (one: TakenOver) => one.toldAt !== null && isConfigured(one)
  const kept = await inTransaction(desk, async (tx) => {
    await watchOn(desk, tx, at)
    const all = await takeOver(tx, owner, aliveSince)
    const gone = all.filter((one) => !isKept(one))
    await endEpisodes(tx, gone)
    return all.filter(isKept)
  })
  desk.lookedAt = at.getTime()
  return kept
}
