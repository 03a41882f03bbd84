// Folds the ids that batches have seen into pages that hold each once, beside the line: what is counted
// is the same before and after, only reading it gets cheaper.
import { setTimeout as sleep } from 'node:timers/promises'
import type { Logger } from 'pino'
import { byPage, monthOf, unite } from '../domain/usage.ts'
import { isAway } from '../postgres/away.ts'
import { type Connection, isReplayable, type Pool } from '../postgres/sql.ts'
import type { Clock } from '../running.ts'
import type { ProjectLimits } from './limits.ts'
import { pauser } from './pauser.ts'
import {
  insertSighting,
  loadPages,
  loadUnfolded,
  type Month,
  type Page,
  savePages,
  takeSightings,
  tryFoldLock,
  type Unfolded,
} from './usage-store.ts'

type FoldDeps = {
  readonly pool: Pool
  readonly clock: Clock
  readonly logger: Logger
  readonly limits: ProjectLimits
}

/** Until the stage stops. */
export const foldUsageForever = async (deps: FoldDeps, stopping: AbortSignal): Promise<void> => {
  const wait = () =>
    sleep(deps.limits.usageFoldMs, undefined, { signal: stopping }).catch(() => undefined)
  for (await wait(); !stopping.aborted; await wait()) {
    try {
      await foldUsage(deps, stopping)
    } catch (error) {
      if (!isAway(error) && !isReplayable(error)) throw error
      deps.logger.warn({ err: error }, 'usage.not_folded')
    }
  }
}

const foldUsage = async (deps: FoldDeps, stopping: AbortSignal): Promise<void> => {
  for (;;) {
    const thisMonth = monthOf(deps.clock().getTime())
    const work = (await loadUnfolded(deps.pool)).flatMap((month) => {
      const into = intoWhat(month, { isOver: month.month < thisMonth })
      return into === 'nothing' ? [] : [{ month, into }]
    })
    if (work.length === 0) return
    for (const { month, into } of work) {
      const isDone = await deps.pool.transaction(async (tx) => {
        if (!(await tryFoldLock(tx))) return false
        await (into === 'pages' ? foldIntoPages(tx, month, deps.limits) : gather(tx, month))
        return true
      })
      if (!isDone || stopping.aborted) return
    }
  }
}

const rowsMax = 128
const gatheredRowsMin = 64
const foldedBytesMin = 262_144

/**
 * Ids are spread over all pages, so that folding any rewrites them all: it waits until there are an
 * eighth of what is there. Many small rows are made one meanwhile.
 */
export const intoWhat = (
  { rows, bytes, foldedBytes }: Omit<Unfolded, keyof Month>,
  { isOver }: { readonly isOver: boolean },
): 'pages' | 'one' | 'nothing' => {
  if (bytes >= Math.max(foldedBytesMin, foldedBytes / 8) || (isOver && rows > 0)) return 'pages'
  return rows >= gatheredRowsMin ? 'one' : 'nothing'
}

const gather = async (tx: Connection, { workspaceId, month }: Month): Promise<void> => {
  const taken = await takeSightings(tx, { workspaceId, month, limit: rowsMax })
  if (taken.length === 0) return
  await insertSighting(tx, { workspaceId, month, entries: unite(taken).entries })
}

const pagesAtOnce = 16

const foldIntoPages = async (
  tx: Connection,
  { workspaceId, month }: Month,
  { yieldMs }: ProjectLimits,
): Promise<void> => {
  const pause = pauser(yieldMs)
  const taken = await takeSightings(tx, { workspaceId, month, limit: rowsMax })
  const added = [...byPage(Buffer.concat(taken))]
  for (let start = 0; start < added.length; start += pagesAtOnce) {
    const part = added.slice(start, start + pagesAtOnce)
    const wanted = part.map(([page]) => page)
    const held = await loadPages(tx, { workspaceId, month, pages: wanted })
    const pages: Page[] = []
    for (const [page, entries] of part) {
      pages.push({ page, ...unite([held.get(page) ?? Buffer.alloc(0), ...entries]) })
      if (pause.due()) await pause.take()
    }
    await savePages(tx, { workspaceId, month, pages })
  }
}
