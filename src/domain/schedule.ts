// When an audience is synced next: its interval, spread so that audiences do not all come at once.
import { createHash } from 'node:crypto'

/** The interval is `everyMs` give or take this share: 2 h 30 min becomes 2 h to 3 h. */
const spread = 0.2

type Slot = {
  readonly audienceId: number
  /** How many syncs came before: every slot draws its own interval. */
  readonly slot: number
  readonly everyMs: number
}

/** Always the same for an audience and slot, so that any process computes the same plan. */
export const syncIntervalMs = ({ audienceId, slot, everyMs }: Slot): number =>
  Math.round(everyMs * (1 - spread)) + Math.floor(everyMs * 2 * spread * draw(audienceId, slot))

export const nextSyncAt = (slot: Slot & { readonly startedAt: Date }): Date =>
  new Date(slot.startedAt.getTime() + syncIntervalMs(slot))

const draw = (audienceId: number, slot: number): number =>
  createHash('sha256').update(`${audienceId}:${slot}`).digest().readUInt32BE(0) / 2 ** 32

export type Candidate = {
  readonly id: number
  readonly syncEveryMs: number
  /** Of the definition whose membership is complete; `null` while it is back-filled. */
  readonly version: string | null
  /** The last sync, if there was one. */
  readonly last: {
    readonly version: string
    readonly slot: number
    readonly startedAt: Date
  } | null
}

/** A definition is first synced as soon as its membership is complete, then at its slots. */
export const isDue = (candidate: Candidate, now: Date): boolean => {
  const { id, syncEveryMs, version, last } = candidate
  if (version === null) return false
  if (last === null || last.version !== version) return true
  return nextSyncAt({ audienceId: id, everyMs: syncEveryMs, ...last }) <= now
}
