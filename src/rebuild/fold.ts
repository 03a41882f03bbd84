// Folding the past into a rebuild's schema: the projector's own batches, many of them written at once, fed from the log
// instead of a group.
import { openDuplicates } from '../duplicate/duplicates.ts'
import { type Place, placeOf } from '../log/log.ts'
import { gainPosition } from '../postgres/position.ts'
import type { Pool } from '../postgres/sql.ts'
import { type Desk, nobodyInHand } from '../project/desk.ts'
import type { Lane, Piece } from '../project/lanes.ts'
import { type Prepared, prepareBatch } from '../project/prepare.ts'
import { openDesk } from '../project/project.ts'
import { readFoldedState } from '../project/store.ts'
import { openWriteBack, type WriteBack } from '../project/write-back.ts'
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
}

type FoldOptions = {
  readonly signal: AbortSignal
  /** Resolves when the next calls may be folded. */
  readonly pace: () => Promise<void>
}

export const openFold = async (deps: RebuildDeps, pool: Pool): Promise<Fold> => {
  const desk: Desk = {
    ...(await openDesk(pool, deps.limits.project, deps.suppressions)),
    // What was metered stays metered.
    sightings: null,
  }
  const lanes = new Map<string, Lane>()
  const laneOf = async (place: Place): Promise<Lane> => {
    const held = lanes.get(placeOf(place))
    if (held !== undefined) return held
    const lane = await openLane(deps, desk, place)
    lanes.set(placeOf(place), lane)
    return lane
  }
  return {
    pool,
    positions: () => new Map([...lanes].map(([place, { next }]) => [place, next])),
    folded: () => Math.max(0, ...[...lanes.values()].map(({ folded }) => folded)),
    foldUntil: async (targets, { signal, pace }) => {
      for (const place of targets.keys()) await laneOf(placeNamed(place))
      const tracks = [...targets].flatMap(([place, target]) => {
        const lane = lanes.get(place) as Lane
        return lane.next < target ? [openTrack(deps, lane, target)] : []
      })
      try {
        await foldTracks(deps, { desk, tracks, signal, pace })
      } finally {
        await Promise.allSettled(tracks.map((track) => track.close()))
      }
    },
  }
}

type Folding = FoldOptions & { readonly desk: Desk; readonly tracks: readonly Track[] }

/** What a failure leaves in memory is thrown away with the fold: another goes on from what is stored. */
const foldTracks = async (
  { limits }: RebuildDeps,
  { desk, tracks, signal, pace }: Folding,
): Promise<void> => {
  const batches = batchesOf(piecesOf(tracks, limits), limits.project.batchCallsMax)
  const over = Promise.withResolvers<never>()
  over.promise.catch(() => undefined)
  const prepareNext = async (): Promise<Prepared | null> => {
    signal.throwIfAborted()
    // It may rest for as long as live is behind.
    await Promise.race([pace(), over.promise])
    const { value, done } = await batches.next()
    return done ? null : prepareBatch(desk, value, { fresh: false })
  }
  let writeBack: WriteBack | null = null
  let ahead = prepareNext()
  try {
    for (;;) {
      const prepared = await ahead
      if (prepared === null) break
      ahead = prepareNext()
      ahead.catch(() => undefined)
      writeBack ??= openWriteBack(desk)
      await writeBack.add(prepared)
      // What an order erases is what came before it.
      if (writeBack.bytes() < limits.writeBackBytesMax && !endsWithOrders(prepared.pieces)) continue
      await writeBack.write()
      writeBack = null
    }
    await writeBack?.write()
  } finally {
    over.reject(new Error('the fold is over'))
    await ahead.catch(() => undefined)
    Object.assign(desk, nobodyInHand)
  }
}

const endsWithOrders = (pieces: readonly Piece[]) => pieces.at(-1)?.orders === true

/** Orders are the last of theirs. */
async function* batchesOf(
  pieces: AsyncIterable<Piece>,
  callsMax: number,
): AsyncGenerator<readonly Piece[], void> {
  let batch: Piece[] = []
  let calls = 0
  for await (const piece of pieces) {
    const isFull = calls + piece.calls.length > callsMax
    if (batch.length > 0 && (isFull || (endsWithOrders(batch) && !piece.orders))) {
      yield batch
      batch = []
      calls = 0
    }
    batch.push(piece)
    calls += piece.calls.length
  }
  if (batch.length > 0) yield batch
}

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

/** Of all partitions, in the order they are folded in. */
async function* piecesOf(
  tracks: readonly Track[],
  { slackMs, runCallsMax: callsMax }: RebuildDeps['limits'],
): AsyncGenerator<Piece, void> {
  await Promise.all(tracks.map((track) => track.fill()))
  for (;;) {
    const heads = tracks.map((track) => track.head())
    const run = chooseRun(heads, { slackMs, callsMax })
    if (run === null) break
    const track = tracks[run.head] as Track
    yield* track.take(run.calls)
    await track.fill()
  }
  for (const track of tracks) {
    const piece = track.rest()
    if (piece !== null) yield piece
  }
}
