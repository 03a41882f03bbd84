// Works one replay from where it stood: read, decide, append, and only then remember how far it came.
//
// Appended and remembered are two steps, and whoever dies between them appends the same again. Each record has
// its number in the replay's shard, made of its place in the log: delivery drops what does not stand above the
// last one of its partition. So nothing is lost, and nothing is sent twice.
import { setTimeout as sleep } from 'node:timers/promises'
import type { Destination } from '../domain/configuration.ts'
import type { Outbound } from '../domain/message.ts'
import { lengthOf, readAt, type Span } from '../domain/replay-span.ts'
import type { Verdict } from '../duplicate/duplicates.ts'
import { Fault } from '../fault.ts'
import type { At, Entry } from '../log/log.ts'
import { dyingOf, markSentAgain, siftDead, stillDead } from './dead.ts'
import { type Decided, decide, portionOf } from './decide.ts'
import type { ReplayDeps } from './deps.ts'
import { openJudges } from './duplicates.ts'
import type { Outstanding } from './outstanding.ts'
import { openPace, paceOf } from './pace.ts'
import { oneAhead, readSlices, type Sift, type Slice } from './read.ts'
import { cancelReplay, type Replay, saveProgress, type Tally, tallies } from './store.ts'

export type Run = {
  readonly deps: ReplayDeps
  readonly replay: Replay & { readonly spans: readonly Span[] }
  readonly signal: AbortSignal
  /** Calls that may be outstanding beside those that are. */
  readonly outstanding: Outstanding
}

type State = {
  tally: Tally
  read: number
  tails: readonly bigint[]
  pace: number | null
  /** When progress was last saved. */
  at: number
  /** Until progress was not where it was saved last: then another process goes on with it. */
  isOurs: boolean
}

/** Returns when it is over, or no longer running, or no longer ours; rejects when it cannot go on. */
export const runReplay = async (run: Run): Promise<void> => {
  const { deps, replay, signal } = run
  const { clock, limits } = deps
  const state: State = { ...stateOf(replay), at: clock().getTime(), isOurs: true }
  const pace = openPace({ clock, ratePerSecond: replay.ratePerSecond, creditMs: limits.creditMs })
  const judges = openJudges(deps, replay)
  const { spans, selection } = replay
  const dying = dyingOf(replay)
  const sift = dying && siftDead(deps.pool, dying)
  const reading = {
    history: deps.history,
    codec: deps.codecs.call,
    selection,
    sift,
    sliceMax: limits.sliceMax,
  }
  const nothing = Promise.resolve(true)
  const work: Work = {
    run,
    state,
    pace,
    sift,
    appended: nothing,
    saved: nothing,
    finishing: nothing,
  }
  try {
    for await (const slice of oneAhead(readSlices(reading, { spans, read: state.read }))) {
      if (signal.aborted) return
      const verdict = await judges.judge(slice)
      if (!(await workSlice(work, slice, verdict))) return
      // Before it is saved: were that to fail, all this would be done again from what is stored.
      verdict.accept()
    }
  } finally {
    await work.finishing
  }
  if (await work.finishing) await save(work, { read: lengthOf(spans), verdict: null, dead: [] })
}

const stateOf = (replay: Replay): Omit<State, 'at' | 'isOurs'> => {
  const tally = Object.fromEntries(tallies.map((name) => [name, replay[name]])) as Tally
  return { tally, read: replay.read, tails: replay.tails, pace: replay.pace }
}

type Work = {
  readonly run: Run
  readonly state: State
  readonly pace: ReturnType<typeof openPace>
  readonly sift: Sift | null
  /** Of the portion before, which is saved while the next one is appended. `false`: it stops there. */
  appended: Promise<boolean>
  /** Of the portion before that one: no more than two are in the log and not saved. */
  saved: Promise<boolean>
  /** All of both. */
  finishing: Promise<boolean>
}

/** `false`: it stops here. */
const workSlice = async (work: Work, slice: Slice, verdict: Verdict): Promise<boolean> => {
  const { deps, signal } = work.run
  const destination = await findDestination(work.run)
  if (destination === null) return false
  const { suppressions } = deps
  const { duplicate } = verdict
  let rest = decide(slice.found, { destination, suppressions, duplicate })
  let unsaved: Verdict | null = verdict
  let { expired } = slice
  do {
    const room = rest.some(({ body }) => body !== null) ? await roomFor(work) : 0
    if (room === null) return false
    const due = portionOf(rest, room)
    rest = rest.slice(due.length)
    const portion = work.sift === null ? due : await stillDead(work.sift, slice.span, due)
    const entries = entriesOf(work, slice, portion)
    if (!(await work.appended) || !(await work.saved) || signal.aborted) return false
    const read = readAt(slice.span, rest[0]?.offset ?? slice.next)
    finish(work, { portion, entries, read, expired, verdict: unsaved })
    unsaved = null
    expired = 0
  } while (rest.length > 0)
  return true
}

/** `null`: it is gone, and the replay with it. */
const findDestination = async ({ deps, replay }: Run): Promise<Destination | null> => {
  const found = deps.live.now().destinations.get(replay.destinationId) ?? null
  if (found === null) await cancelReplay(deps.pool, replay.id, deps.clock())
  return found
}

type Finishing = {
  readonly portion: readonly Decided[]
  readonly entries: readonly Entry[]
  readonly read: number
  readonly expired: number
  readonly verdict: Verdict | null
}

/** Appends in order, and saves in order: whatever is in the log, all before it is too. */
const finish = (work: Work, finishing: Finishing): void => {
  const { entries } = finishing
  const before = work.finishing
  const appended = entries.length > 0 ? append(work, entries) : Promise.resolve(true)
  work.appended = appended
  work.saved = before
  work.finishing = saveNext(work, finishing, { appended, before })
  for (const ending of [appended, work.finishing]) ending.catch(() => undefined)
}

type Both = { readonly appended: Promise<boolean>; readonly before: Promise<boolean> }

/** What the log has taken is counted, also of a replay that was cancelled meanwhile. */
const saveNext = async (
  work: Work,
  { portion, entries, read, expired, verdict }: Finishing,
  { appended, before }: Both,
): Promise<boolean> => {
  // Both are over before this is: nothing goes on behind a replay that was given up.
  await Promise.allSettled([appended, before])
  const goesOn = await before
  if (!(await appended) || !work.state.isOurs) return false
  count(work.state.tally, portion)
  work.run.deps.meter.sent += entries.length
  work.state.tally.expired += expired
  const dead = portion.flatMap(({ body, dead = [] }) => (body === null ? [] : dead))
  const isRunning = await save(work, { read, verdict, dead })
  work.run.outstanding.save(entries.length)
  return isRunning && goesOn
}

/** At least one; `null`: it is to stop. */
const roomFor = async ({ run, pace }: Work): Promise<number | null> => {
  const { deps, signal, outstanding } = run
  for (;;) {
    if (signal.aborted || (await findDestination(run)) === null) return null
    const room = Math.min(pace.room(), outstanding.room())
    if (room >= 1) return room
    await sleep(deps.limits.paceMs, undefined, { signal }).catch(() => undefined)
  }
}

const entriesOf = (
  { run, pace }: Work,
  slice: Slice,
  portion: readonly Decided[],
): readonly Entry[] => {
  const entries = portion.flatMap((decided) =>
    decided.body === null ? [] : [entryOf(run, slice, { ...decided, body: decided.body })],
  )
  // Spent whether or not the log takes them: a rejected append may be in it all the same.
  pace.spend(entries.length)
  run.outstanding.add(entries.length)
  return entries
}

/** `false`: it is to stop, and what of it is in the topic nobody knows. */
const append = async ({ run, state }: Work, entries: readonly Entry[]): Promise<boolean> => {
  const { deps, signal } = run
  for (;;) {
    try {
      state.tails = behind(state.tails, await deps.appender.append('outbound.replay', entries))
      return true
    } catch (error) {
      if (!(error instanceof Fault && error.retriable)) throw error
      deps.logger.warn({ err: error, replayId: run.replay.id }, 'append.rejected')
      await sleep(deps.limits.pollMs, undefined, { signal }).catch(() => undefined)
      if (signal.aborted) return false
    }
  }
}

type Sendable = Decided & { readonly body: Buffer }

const entryOf = (
  { deps, replay }: Run,
  { span }: Slice,
  { message, key, offset, body }: Sendable,
) => {
  const { messageId, type, workspaceId, userId, timestamp, receivedAt } = message
  const record: Outbound = {
    messageId,
    origin: 'replay',
    type,
    workspaceId,
    destinationId: replay.destinationId,
    userId,
    timestamp,
    receivedAt,
    shard: replay.slot,
    seq: replay.seqFrom + readAt(span, offset),
    body,
  }
  // As in the log: what one visitor did stays in order, and visitors do not wait for each other.
  return { key: `${replay.destinationId}:${key}`, value: deps.codecs.outbound.encode(record) }
}

const behind = (tails: readonly bigint[], placed: readonly At[]): readonly bigint[] => {
  const next = [...tails]
  for (const { partition, offset } of placed)
    if (offset >= (next[partition] ?? 0n)) next[partition] = offset + 1n
  return next.map((tail) => tail ?? 0n)
}

const count = (tally: Tally, portion: readonly Decided[]): void => {
  tally.selected += portion.length
  for (const { why } of portion) tally[why ?? 'sent'] += 1
}

type Saving = {
  readonly read: number
  readonly verdict: Verdict | null
  /** What was sent now, where it had been given up. */
  readonly dead: readonly bigint[]
}

/** Whether it is still ours and running. */
const save = async ({ run, state }: Work, { read, verdict, dead }: Saving): Promise<boolean> => {
  const { deps, replay } = run
  const at = deps.clock()
  const now = at.getTime()
  const before = state.read
  state.pace = paceOf(state.pace, { offsets: read - before, ms: now - state.at })
  state.at = now
  const { id, spans } = replay
  const { tally, tails, pace } = state
  const isOver = read >= lengthOf(spans)
  const progress = { ...tally, id, before, read, tails, pace, isOver }
  // Duplicates judged are known before the position passes them.
  const isAlone = (verdict === null || verdict.chunks.length === 0) && dead.length === 0
  const then = isAlone
    ? await saveProgress(deps.pool, progress)
    : await deps.pool.transaction(async (tx) => {
        await verdict?.save(tx)
        const saved = await saveProgress(tx, progress)
        if (saved !== null && dead.length > 0) await markSentAgain(tx, { ids: dead, at })
        return saved
      })
  state.read = read
  state.isOurs = then !== null
  deps.meter.read += read - before
  if (then === 'draining') deps.logger.info({ replayId: id, sent: tally.sent }, 'replay.read')
  return then === 'running'
}
