// The replay stage: of all processes that deliver one leads, and works every replay that is open.
import { type Bell, hangBell } from '../bell.ts'
import { lengthOf } from '../domain/replay-span.ts'
import { Fault } from '../fault.ts'
import { isPassing } from '../postgres/away.ts'
import type { Sql } from '../postgres/sql.ts'
import type { Running } from '../running.ts'
import { dyingOf, narrowToDead } from './dead.ts'
import type { ReplayDeps } from './deps.ts'
import { keepLeading } from './lead.ts'
import { replayLimits } from './limits.ts'
import { noteOpen, nothingOpen, openReplayMeter } from './meter.ts'
import { type Outstanding, openOutstanding } from './outstanding.ts'
import { planSpans } from './plan.ts'
import { runReplay } from './run.ts'
import { type Cuts, settle } from './settle.ts'
import { loadOpen, loadStandings, pauseTroubled, type Replay, savePlan } from './store.ts'

/** Notified when a replay is made or steered. */
export const replayChannel = 'millrace_replay'

type StartDeps = Omit<ReplayDeps, 'limits' | 'meter'> & {
  readonly limits?: Partial<ReplayDeps['limits']>
  readonly meter?: ReplayDeps['meter']
}

export const startReplay = (start: StartDeps): Running => {
  const deps: ReplayDeps = {
    ...start,
    meter: start.meter ?? openReplayMeter(),
    limits: { ...replayLimits, ...start.limits },
  }
  const stopping = new AbortController()
  const done = serve(deps, hangBell(), stopping.signal)
  done.catch(() => undefined)
  return {
    stop: () => {
      stopping.abort()
      return done
    },
    done,
  }
}

const serve = async (deps: ReplayDeps, bell: Bell, stopping: AbortSignal): Promise<void> => {
  const ring = { notified: () => bell.ring(), reconnected: () => bell.ring() }
  let unlisten: (() => Promise<void>) | null = null
  const term = async (seat: Sql) => {
    unlisten ??= await deps.pool.listen(replayChannel, ring)
    await work({ deps, seat, bell, stopping })
  }
  try {
    await keepLeading(deps, { bell, stopping, term })
  } finally {
    await (unlisten as (() => Promise<void>) | null)?.()
  }
}

/** A replay that this process works on. */
type Task = {
  readonly abort: AbortController
  readonly outstanding: Outstanding
  readonly ended: Promise<void>
}

type Tasks = Map<number, Task>

type Term = {
  readonly deps: ReplayDeps
  readonly seat: Sql
  readonly bell: Bell
  readonly stopping: AbortSignal
}

const work = async (term: Term): Promise<void> => {
  const { deps, seat, bell, stopping } = term
  const tasks: Tasks = new Map()
  const cuts: Cuts = new Map()
  try {
    while (!stopping.aborted) {
      await seat.query('select 1')
      await look(term, tasks, cuts)
      await bell.wait(deps.limits.pollMs, stopping)
    }
  } finally {
    for (const { abort } of tasks.values()) abort.abort()
    await Promise.all([...tasks.values()].map(({ ended }) => ended))
    // Whoever leads next tells of them.
    noteOpen(deps.meter, nothingOpen)
  }
}

const look = async ({ deps, bell }: Term, tasks: Tasks, cuts: Cuts): Promise<void> => {
  const replays = await loadOpen(deps.pool)
  if (replays.length === 0) {
    noteOpen(deps.meter, nothingOpen)
    return
  }
  for (const replay of replays) {
    const { id, state } = replay
    const task = tasks.get(id)
    if (state !== 'running') task?.abort.abort()
    else if (!task) tasks.set(id, begin(deps, replay, { bell, over: () => tasks.delete(id) }))
  }
  for (const { outstanding } of tasks.values()) outstanding.look()
  let outstanding = 0
  for (const { id, waiting, parked } of await loadStandings(deps.pool)) {
    tasks.get(id)?.outstanding.see(waiting + parked)
    outstanding += waiting + parked
  }
  noteOpen(deps.meter, { replays, outstanding })
  for (const replay of replays) if (!tasks.has(replay.id)) await settle(deps, replay, cuts)
}

type Then = { readonly bell: Bell; readonly over: () => void }

const begin = (deps: ReplayDeps, replay: Replay, { bell, over }: Then): Task => {
  const abort = new AbortController()
  const outstanding = openOutstanding(deps.limits.outstandingMax)
  const { spans } = replay
  const { signal } = abort
  const running =
    spans === null
      ? plan(deps, replay)
      : runReplay({ deps, replay: { ...replay, spans }, outstanding, signal })
  const ended = running
    .then(() => bell.ring())
    .catch((error) => trouble(deps, replay, error))
    .finally(over)
  return { abort, outstanding, ended }
}

/** The next look finds it planned. */
const plan = async (
  { history, source, pool, limits }: ReplayDeps,
  replay: Replay,
): Promise<void> => {
  const all = await planSpans(history, replay.selection, limits.skewMs)
  const dying = dyingOf(replay)
  const spans = dying ? await narrowToDead(pool, all, dying) : all
  const ends = (await source.bounds('outbound.replay')).map(({ end }) => end)
  await savePlan(pool, { id: replay.id, spans, length: lengthOf(spans), ends })
}

/** What passes is tried again at the next look; anything else waits for somebody to look at it. */
const trouble = async ({ pool, logger }: ReplayDeps, replay: Replay, error: unknown) => {
  const replayId = replay.id
  if (isPassing(error)) return logger.warn({ err: error, replayId }, 'replay.interrupted')
  logger.error({ err: error, replayId }, 'replay.failed')
  const code = error instanceof Fault ? error.code : 'internal'
  await pauseTroubled(pool, replayId, code).catch((failed) =>
    logger.error({ err: failed, replayId }, 'replay.failed'),
  )
}
