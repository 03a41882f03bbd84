// Building audiences: of all projectors one brings new and edited ones in, while all go on folding.
import { setTimeout as sleep } from 'node:timers/promises'
import type { Logger } from 'pino'
import { assess, type Flip } from '../audience/assess.ts'
import { unpackUser } from '../audience/pack.ts'
import { openPlans } from '../audience/plan.ts'
import type { UserState } from '../audience/state.ts'
import { lockUsersAfter, prepareSession, saveFlips, saveUsers } from '../audience/store.ts'
import { visitUsers } from '../audience/ties.ts'
import type { Live } from '../domain/configuration.ts'
import { deleteHoursBefore } from '../duplicate/store.ts'
import { Fault } from '../fault.ts'
import { isAway } from '../postgres/away.ts'
import { leadOnce } from '../postgres/lead.ts'
import { type Connection, isReplayable, type Sql } from '../postgres/sql.ts'
import type { Clock } from '../running.ts'
import {
  type Build,
  buildAudiences,
  bumpPlan,
  finishBuild,
  highestFolded,
  lockAllPositions,
  moveEvaluated,
  pinPlan,
  readBuild,
  readPartitions,
  readPlanRow,
  startEvaluating,
} from './build-store.ts'
import { foldHistory, type HistoryDeps, historyReader } from './history.ts'
import { reconcile } from './reconcile.ts'

export type BuildDeps = HistoryDeps & {
  readonly live: Live
  readonly clock: Clock
  readonly logger: Logger
}

/** 'MILLBILD' read as a number: held by the session of the one that builds. */
const lockKey = '5567930484642467908'

/** Returns when the stage stops. A database that is away is waited for. */
export const runBuilds = async (deps: BuildDeps): Promise<void> => {
  const { pool, stopping, limits, logger } = deps
  while (!stopping.aborted) {
    try {
      await leadOnce(pool, { key: lockKey, term: (seat) => buildWhileHeld(deps, seat) })
    } catch (error) {
      const isArchive = isOfArchive(error)
      if (!isArchive && !isAway(error) && !isReplayable(error)) throw error
      if (isArchive) logger.error({ err: error }, 'build.waits_for_archive')
      else logger.warn({ err: error }, 'build.interrupted')
      // Somebody has to bring it back.
      if (isArchive) await pause(limits.buildPollMs * archivePolls, stopping)
    }
    await pause(limits.buildPollMs, stopping)
  }
}

/** With the pause of every round: ten seconds. */
const archivePolls = 40

/** The past cannot be read: that holds up what is built from it, and nothing else of the process. */
const isOfArchive = (error: unknown): boolean =>
  error instanceof Fault &&
  (error.code === 'archive_damaged' || error.code === 'archive_unavailable')

/** The session's end gives the lock back: a killed process leaves its build to the next. */
const buildWhileHeld = async (deps: BuildDeps, seat: Connection): Promise<void> => {
  while (!deps.stopping.aborted) {
    const changed = await reconcile(deps, deps.live.now())
    if (changed !== null) deps.logger.info(changed, 'audiences.reconciled')
    const build = await readBuild(seat)
    if (build === null) await waitForChange(deps)
    else await step(deps, build)
  }
}

const pause = (ms: number, signal: AbortSignal) =>
  sleep(ms, undefined, { signal }).catch(() => undefined)

const waitForChange = async ({ live, limits, stopping }: BuildDeps): Promise<void> => {
  const woken = new AbortController()
  const unsubscribe = live.onChange(() => woken.abort())
  await pause(limits.buildPollMs, AbortSignal.any([stopping, woken.signal]))
  unsubscribe()
}

const step = async (deps: BuildDeps, build: Build): Promise<void> => {
  switch (build.phase) {
    case 'folding':
      await foldHistory(deps, build)
      if (deps.stopping.aborted) return
      return deps.turns(() => deps.pool.transaction((tx) => turnToEvaluating(tx, build)))
    case 'evaluating':
      return evaluateUsers(deps, build)
  }
}

/** Under all positions: every user made before is stored by now, every later one is evaluated when made. */
const turnToEvaluating = async (tx: Connection, build: Build): Promise<void> => {
  await lockAllPositions(tx)
  await bumpPlan(tx, await readPlanRow(tx))
  await startEvaluating(tx, build)
}

const evaluateUsers = async (deps: BuildDeps, start: Build): Promise<void> => {
  const { pool, turns, clock, logger, stopping } = deps
  const chunk = { plans: openPlans(), limit: deps.limits.evaluateUsersMax }
  let build = start
  while (!stopping.aborted) {
    const evaluated = await turns(() => pool.transaction((tx) => evaluateChunk(tx, build, chunk)))
    if (evaluated === null) {
      const live = await pool.transaction(async (tx) => {
        await forgetHistory(tx, build)
        return finishBuild(tx, { build, at: clock() })
      })
      logger.info({ buildId: build.id, audienceIds: live }, 'build.finished')
      return
    }
    build = { ...build, evaluated }
  }
}

type Chunk = { readonly plans: ReturnType<typeof openPlans>; readonly limit: number }

/** Returns the last user evaluated, `null` when there was none left. */
const evaluateChunk = async (
  tx: Connection,
  build: Build,
  { plans, limit }: Chunk,
): Promise<number | null> => {
  await prepareSession(tx)
  await pinPlan(tx)
  const rows = await lockUsersAfter(tx, { after: build.evaluated, limit })
  const last = rows.at(-1)
  if (last === undefined) return null
  await moveEvaluated(tx, { build, evaluated: last.key })
  const plan = await plans(tx)
  const ids = new Set(await buildAudiences(tx, build))
  const at = await highestFolded(tx)
  const flips: Flip[] = []
  const changed: UserState[] = []
  const visited: number[] = []
  for (const row of rows) {
    const user = unpackUser(row)
    const all = plan.workspaces.get(user.workspaceId)?.audiences ?? []
    const audiences = all.filter(({ id }) => ids.has(id))
    const { due } = user
    const flipped = assess(user, { audiences, at, whole: false })
    flips.push(...flipped)
    if (flipped.length > 0 || user.due !== due) changed.push(user)
    // What their accounts pass may be another thing now though nobody's mark changed.
    if (audiences.some(({ yields }) => yields.type === 'mark')) visited.push(user.key)
  }
  await saveUsers(tx, changed, plan)
  await saveFlips(tx, { flips, at: new Date(at) })
  await visitUsers(tx, visited)
  return last.key
}

/** The digests that the build's reading of history was judged by. */
const forgetHistory = async (tx: Sql, build: Build): Promise<void> => {
  const reader = historyReader(build)
  for (const { topic, partition } of await readPartitions(tx, build.id))
    await deleteHoursBefore(tx, { reader, topic, partition }, lastHour)
}

const lastHour = 2_147_483_647
