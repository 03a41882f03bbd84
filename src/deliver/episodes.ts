// URLs that fail, and are well again: told once for each episode, whichever processes see it, live or die.
import { type Pool, type Sql, sqlState } from '../postgres/sql.ts'
import {
  endEpisodes,
  leaveSayings,
  readSayings,
  type TakenOver,
  takeOver,
  type UrlOf,
  unwatch,
  watch,
} from './episode-store.ts'
import {
  type Batch,
  type Level,
  type Outcome,
  type WriteDeps,
  writeLevels,
} from './episode-write.ts'

export type EpisodeDeps = WriteDeps & {
  readonly pool: Pool
  readonly now: () => Date
  /** Postgres does not take this one, and never will: nobody is told. */
  readonly refused: (level: Level, error: unknown) => void
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
  /** Whether there may be more of ours in Postgres than is known here: no answer came. */
  isUnsure: boolean
}

/** Once up all levels, and down; what is more at once is told as it ends. */
const levelsMax = 5
const atOnce = 100
const never = Number.NEGATIVE_INFINITY

const keyOf = ({ destinationId, url }: UrlOf): string => `${destinationId} ${url}`

export const openEpisodes = (deps: EpisodeDeps): Episodes => {
  const desk: Desk = {
    deps,
    waiting: new Map(),
    watchedAt: never,
    lookedAt: never,
    isUnsure: false,
  }
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
    const { isNew, later } = await writeSome(desk, { due, at })
    isSomeNew ||= isNew
    for (const level of due) forget(desk, level)
    // Where something newer waits, that is what is to be told.
    for (const { level, notBefore } of later)
      if (!waiting.has(keyOf(level))) waiting.set(keyOf(level), { levels: [level], notBefore })
  }
}

/** One that is refused must not hold up the others: each goes alone then, and what is refused alone is given up. */
const writeSome = async (desk: Desk, { due, at }: Batch): Promise<Outcome> => {
  try {
    return await inTransaction(desk, async (tx) => {
      if (isTimeToWatch(desk, desk.watchedAt, at)) await watchOn(desk, tx, at)
      return writeLevels(desk.deps, tx, { due, at })
    })
  } catch (error) {
    if (!isRefused(error)) throw error
    if (due.length > 1) return writeEach(desk, { due, at })
    for (const level of due) desk.deps.refused(level, error)
    return { isNew: false, later: [] }
  }
}

const writeEach = async (desk: Desk, { due, at }: Batch): Promise<Outcome> => {
  const outcomes: Outcome[] = []
  for (const level of due) outcomes.push(await writeSome(desk, { due: [level], at }))
  return {
    isNew: outcomes.some(({ isNew }) => isNew),
    later: outcomes.flatMap(({ later }) => later),
  }
}

/** For what it is, as a URL that is too long for an index; a table that is missing says nothing of what is written. */
const isRefused = (error: unknown): boolean => /^(21|22|23|54)/.test(sqlState(error) ?? '')

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
  const isUnsure = desk.isUnsure
  desk.isUnsure = true
  const ours = await inTransaction(desk, async (tx) => {
    await watchOn(desk, tx, at)
    const all = await takeOver(tx, owner, aliveSince)
    const [known, unknown] = [all.filter(isConfigured), all.filter((one) => !isConfigured(one))]
    await endEpisodes(tx, unknown)
    // What was not told was not heard of either: it is found anew, and others may know more of it.
    const untold = known.filter(({ toldAt }) => toldAt === null)
    await leaveSayings(tx, owner, untold)
    return isUnsure ? readSayings(tx, owner) : all
  })
  desk.isUnsure = false
  desk.lookedAt = at.getTime()
  return ours.filter((one) => one.toldAt !== null && isConfigured(one))
}
