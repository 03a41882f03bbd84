// Folding the past into a rebuild's schema: the projector's own batches, fed from the log instead of a group.
import { setTimeout as sleep } from 'node:timers/promises'
import { unwatched } from '../debugger/debugger.ts'
import { openDuplicates } from '../duplicate/duplicates.ts'
import { type Place, placeOf } from '../log/log.ts'
import { gainPosition } from '../postgres/position.ts'
import type { Pool } from '../postgres/sql.ts'
import type { Desk } from '../project/batch.ts'
import { projectBatches } from '../project/batches.ts'
import { type Lane, laneQueue, type Piece } from '../project/lanes.ts'
import { openDesk } from '../project/project.ts'
import { readFoldedState } from '../project/store.ts'
import { turns } from '../project/turns.ts'
import type { RebuildDeps, Vector } from './deps.ts'
import { chooseRun } from './order.ts'
import { openTrack, type Track } from './tracks.ts'

export type Fold = {
  /** On the schema folded into. */
  readonly pool: Pool
  positions(): Vector
  /** The highest receivedAt folded. */
  folded(): number
  /** Folds up to exactly these positions; `signal` ends it between two runs of calls. */
  foldUntil(targets: Vector, options: FoldOptions): Promise<void>
  close(): Promise<void>
}

type FoldOptions = {
  readonly signal: AbortSignal
  /** Resolves when the next calls may be folded. */
  readonly pace: () => Promise<void>
}

export const openFold = async (deps: RebuildDeps, pool: Pool): Promise<Fold> => {
  const { logger } = deps
  const limits = deps.limits.project
  const desk = { ...(await openDesk(pool, limits, deps.suppressions)), isAgain: true }
  const queue = laneQueue({
    callsMax: limits.batchCallsMax,
    queueCallsMax: limits.queueCallsMax,
  })
  const lanes = new Map<string, Lane>()
  const broken = new AbortController()
  const batches = projectBatches({
    ...{ desk, queue, limits, logger },
    debugger: unwatched,
    turns: turns(),
    // Another process has taken the rebuild over.
    fenced: () => broken.abort(new Error('the rebuild was taken over')),
  })
  batches.catch((error: unknown) => broken.abort(error))
  const laneOf = async (place: Place): Promise<Lane> => {
    const held = lanes.get(placeOf(place))
    if (held !== undefined) return held
    const lane = await openLane(deps, desk, place)
    lanes.set(placeOf(place), lane)
    return lane
  }
  const ensure = async (targets: Vector) => {
    for (const place of targets.keys()) await laneOf(placeNamed(place))
  }
  return {
    pool,
    positions: () => new Map([...lanes].map(([place, { next }]) => [place, next])),
    folded: () => Math.max(0, ...[...lanes.values()].map(({ folded }) => folded)),
    foldUntil: async (targets, { signal, pace }) => {
      await ensure(targets)
      const either = AbortSignal.any([signal, broken.signal])
      const tracks = [...targets].flatMap(([place, target]) => {
        const lane = lanes.get(place) as Lane
        return lane.next < target ? [openTrack(deps, lane, target)] : []
      })
      const put = async (piece: Piece) => {
        either.throwIfAborted()
        await pace()
        await Promise.race([queue.put(piece), abortion(either)])
      }
      try {
        await feed(tracks, put, deps)
      } finally {
        await Promise.allSettled(tracks.map((track) => track.close()))
      }
      while (tracks.some(({ lane }) => lane.next < (targets.get(placeOf(lane.lease)) as bigint)))
        await sleep(2, undefined, { signal: either })
    },
    close: async () => {
      queue.close()
      await batches.catch(() => undefined)
    },
  }
}

const abortion = (signal: AbortSignal): Promise<never> =>
  new Promise((_, reject) => {
    if (signal.aborted) reject(signal.reason)
    signal.addEventListener('abort', () => reject(signal.reason), { once: true })
  })

const placeNamed = (name: string): Place => {
  const [topic, partition] = name.split('/') as [Place['topic'], string]
  return { topic, partition: Number(partition) }
}

/** A partition without a group: nobody takes it away but whoever takes over the rebuild. */
const openLane = async ({ limits }: RebuildDeps, { pool }: Desk, place: Place): Promise<Lane> => {
  const position = await gainPosition(pool, { reader: 'project', ...place })
  const duplicates = await openDuplicates({
    ...{ sql: pool, reader: 'project', ...place },
    bytesMax: limits.project.duplicateBytesMax,
  })
  let lost = false
  return {
    lease: {
      ...place,
      committed: null,
      lost: new AbortController().signal,
      commit: async () => 'committed',
    },
    epoch: position.epoch,
    duplicates,
    next: position.next,
    folded: readFoldedState(position.state),
    get lost() {
      return lost
    },
    lose: () => {
      lost = true
    },
    commit: () => undefined,
  }
}

type Put = (piece: Piece) => Promise<void>

const feed = async (tracks: readonly Track[], put: Put, { limits }: RebuildDeps): Promise<void> => {
  const { slackMs, runCallsMax: callsMax } = limits
  await Promise.all(tracks.map((track) => track.fill()))
  for (;;) {
    const heads = tracks.map((track) => track.head())
    const run = chooseRun(heads, { slackMs, callsMax })
    if (run === null) break
    const track = tracks[run.head] as Track
    for (const piece of track.take(run.calls)) await put(piece)
    await track.fill()
  }
  for (const track of tracks) {
    const piece = track.rest()
    if (piece !== null) await put(piece)
  }
}
