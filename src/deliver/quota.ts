// How much may be parked for one destination: above its quota rows keep coordinates only, far above it intake waits.
import { loadUsage } from './ledger-store.ts'
import { count, type Lane, type Stage } from './stage.ts'

type Parked = { readonly rows: number; readonly bytes: number }

/** `spilling`: bodies are no longer kept; `braked`: nothing more is parked, so the log is held back. */
export type QuotaState = 'free' | 'spilling' | 'braked'

export type QuotaChange = { readonly destinationId: number; readonly state: QuotaState } & Parked

type Added = { readonly rows: Map<number, number>; readonly bytes: Map<number, number> }

export type Quota = {
  /** What the ledger said last of all processes' rows, where it is worth remembering. */
  known: ReadonlyMap<number, Parked>
  /** Parked here since that was read, and since the time before. */
  added: Added
  addedBefore: Added
  states: Map<number, QuotaState>
}

const nothingAdded = (): Added => ({ rows: new Map(), bytes: new Map() })

export const openQuota = (): Quota => ({
  known: new Map(),
  added: nothingAdded(),
  addedBefore: nothingAdded(),
  states: new Map(),
})

export const addParked = ({ quota }: Stage, destinationId: number, bytes: number): void => {
  count(quota.added.rows, destinationId, 1)
  if (bytes > 0) count(quota.added.bytes, destinationId, bytes)
}

const parkedOf = ({ quota, lanes }: Stage, destinationId: number): Parked => {
  const { known, added, addedBefore } = quota
  const sum = (of: keyof Added) =>
    (known.get(destinationId)?.[of] ?? 0) +
    (added[of].get(destinationId) ?? 0) +
    (addedBefore[of].get(destinationId) ?? 0)
  // The lane knows of rows that have been on their way for longer than the ledger is looked at.
  const own = lanes.get(destinationId)?.parked ?? 0
  return { rows: Math.max(own, sum('rows')), bytes: sum('bytes') }
}

/** It ends where half of what began it is gone again: a quota that comes and goes tells nobody anything. */
export const quotaOf = (stage: Stage, destinationId: number): QuotaState => {
  const { parkedRowsMax, parkedBytesMax, parkedRowsHardMax } = stage.limits
  const { rows, bytes } = parkedOf(stage, destinationId)
  const { states } = stage.quota
  const before = states.get(destinationId) ?? 'free'
  const share = (state: QuotaState) => (before === state ? resumeShare : 1)
  const isBraked = rows >= parkedRowsHardMax * share('braked')
  const spillShare = before === 'free' ? 1 : resumeShare
  const isSpilling = rows >= parkedRowsMax * spillShare || bytes >= parkedBytesMax * spillShare
  const state = isBraked ? 'braked' : isSpilling ? 'spilling' : 'free'
  if (state === before) return state
  if (state === 'free') states.delete(destinationId)
  else states.set(destinationId, state)
  tell(stage, { destinationId, state, rows, bytes })
  return state
}

const resumeShare = 0.5

const tell = (stage: Stage, change: QuotaChange): void => {
  const { logger, alerts } = stage.deps
  logger.warn(change, 'quota.changed')
  alerts?.quotaChanged(change)
}

/** The bytes to store with a row, or `null` where the log keeps them. */
export const keptBody = (stage: Stage, { destinationId }: Lane, body: Buffer): Buffer | null =>
  quotaOf(stage, destinationId) === 'free' ? body : null

/** Reads what all processes have parked; those far below their quota are not worth remembering. */
export const refreshQuota = async (stage: Stage): Promise<void> => {
  const { quota, limits } = stage
  const isNeeded = quota.added.rows.size + quota.addedBefore.rows.size + quota.known.size > 0
  if (!isNeeded && !hasParked(stage)) return
  const fresh = nothingAdded()
  const before = quota.added
  quota.added = fresh
  const from = {
    rows: Math.ceil(limits.parkedRowsMax * nearShare),
    bytes: Math.ceil(limits.parkedBytesMax * nearShare),
  }
  const usage = await loadUsage(stage.deps.pool, from).catch((error) => {
    stage.deps.logger.error({ err: error }, 'quota.failed')
    return null
  })
  if (usage === null) return restore(quota, before)
  quota.known = new Map(
    usage.map(({ destinationId, rows, bytes }) => [
      destinationId,
      { rows: Number(rows), bytes: Number(bytes) },
    ]),
  )
  // What was on its way while the ledger was read may be in it or not: it counts once more.
  quota.addedBefore = before
  for (const destinationId of [...quota.states.keys()]) quotaOf(stage, destinationId)
  stage.room.ring()
}

const nearShare = 0.25

const hasParked = ({ lanes }: Stage): boolean => {
  for (const lane of lanes.values()) if (lane.parked > 0) return true
  return false
}

const restore = ({ added }: Quota, before: Added): void => {
  for (const kind of ['rows', 'bytes'] as const)
    for (const [destinationId, amount] of before[kind]) count(added[kind], destinationId, amount)
}
