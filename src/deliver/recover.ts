// Recoveries: dead messages go out again through `parked`, at their rate, each once, in the desk's transaction.

import { createHash } from 'node:crypto'
import { hashOf, hashToInt } from '../domain/chain.ts'
import { placeOf } from '../log/log.ts'
import type { Connection } from '../postgres/sql.ts'
import type { ChainKey } from './chain-store.ts'
import { chainOf } from './chains.ts'
import { countParked } from './lanes.ts'
import type { Entry } from './ledger-store.ts'
import { untried } from './park.ts'
import {
  cancelRecovery,
  closeWithdrawn,
  type DeadAgain,
  insertHealing,
  isExhausted,
  isRecovering,
  lockRecoveries,
  markRecovered,
  type Recovery,
  saveProgress,
  takeDead,
  withdrawParked,
} from './recover-store.ts'
import type { Partition, Stage } from './stage.ts'
import { insertParked } from './store.ts'

export type Recovered = {
  /** Rows parked again, and rows of cancelled recoveries that are dead again. */
  readonly parked: readonly ChainKey[]
  readonly withdrawn: readonly ChainKey[]
  /** What the rows withdrawn are in the ledger. */
  readonly entries: readonly Entry[]
}

export const nothingRecovered: Recovered = { parked: [], withdrawn: [], entries: [] }

/** Looks whether anybody wants dead messages back; the desk does the rest. */
export const lookForRecoveries = async (stage: Stage): Promise<void> => {
  if (stage.stopping) return
  try {
    if (!(await isRecovering(stage.deps.pool))) return
    stage.desk.recovers = true
    stage.desk.bell.ring()
  } catch (error) {
    stage.deps.logger.error({ err: error }, 'recoveries.failed')
  }
}

/** The partitions are held by the transaction: nobody else parks for them. */
export const recover = async (
  tx: Connection,
  stage: Stage,
  { partitions, at }: { readonly partitions: readonly Partition[]; readonly at: Date },
): Promise<Recovered> => {
  if (partitions.length === 0 || stage.stopping) return nothingRecovered
  const parked: ChainKey[] = []
  const withdrawn: ChainKey[] = []
  const entries: Entry[] = []
  const { recoveriesMax: limit } = stage.limits
  for (const recovery of await lockRecoveries(tx, { after: stage.desk.recoveryId, limit })) {
    stage.desk.recoveryId = recovery.id
    if (recovery.state === 'cancelled') {
      const { id } = recovery
      const withdrawal = { id, partitions, limit: stage.limits.recoverMax }
      const rows = await withdrawParked(tx, withdrawal)
      withdrawn.push(...rows)
      for (const row of rows) entries.push({ ...row, dead: 1, bytes: -row.bytes })
      await closeWithdrawn(tx, id)
    } else if (!stage.deps.live.now().destinations.has(recovery.destinationId))
      await cancelRecovery(tx, recovery.id, at)
    else parked.push(...(await sendAgain(tx, stage, { recovery, partitions, at })))
  }
  return { parked, withdrawn, entries }
}

type Sending = {
  readonly recovery: Recovery
  readonly partitions: readonly Partition[]
  readonly at: Date
}

const sendAgain = async (
  tx: Connection,
  stage: Stage,
  { recovery, partitions, at }: Sending,
): Promise<readonly ChainKey[]> => {
  const { destinationId, ratePerSecond } = recovery
  const credit = creditOf(recovery, at)
  const limit = Math.min(Math.floor(credit), roomFor(stage, destinationId))
  if (limit < 1) return []
  const taken = await takeDead(tx, { recovery, partitions, at, limit })
  const rows = taken.map((dead) => rowOf(recovery, dead))
  await insertParked(tx, rows, at)
  await markRecovered(tx, recovery.id, rows)
  const isOver = taken.length === 0 && (await isExhausted(tx, recovery))
  const left = Math.min(credit - taken.length, Math.max(1, ratePerSecond))
  await saveProgress(tx, {
    id: recovery.id,
    recovered: taken.length,
    creditedAt: new Date(at.getTime() - Math.floor((left / ratePerSecond) * 1_000)),
    endedAt: isOver ? at : null,
  })
  if (isOver)
    stage.deps.logger.info({ recoveryId: recovery.id, destinationId }, 'recovery.finished')
  return rows.map(({ topic, partition, chain }) => ({ topic, partition, destinationId, chain }))
}

/** What its rate has come to since it was used last: a second's worth at most. */
const creditOf = ({ ratePerSecond, creditedAt }: Recovery, at: Date): number =>
  Math.min(
    ((at.getTime() - creditedAt.getTime()) * ratePerSecond) / 1_000,
    Math.max(1, ratePerSecond),
  )

/** A destination that has a lot parked gets its own messages first; one that is off gets none. */
const roomFor = (stage: Stage, destinationId: number): number => {
  if (!stage.deps.live.now().destinations.get(destinationId)?.enabled) return 0
  const { recoverMax, recoverAheadMax } = stage.limits
  const parked = stage.lanes.get(destinationId)?.parked ?? 0
  return Math.min(recoverMax, recoverAheadMax - parked)
}

const rowOf = (recovery: Recovery, dead: DeadAgain) => ({
  ...untried('lane_full'),
  topic: dead.topic,
  partition: dead.partition,
  offset: Number(dead.offset),
  destinationId: recovery.destinationId,
  messageId: dead.messageId,
  type: dead.type,
  body: dead.body,
  reason: 'replay',
  nextAt: null,
  firstTryAt: null,
  chain: chainOfReplay(recovery.id, dead),
})

/**
 * Of its own: a message that failed for hours may fail again, and live ones of its visitor must not wait
 * for it. Within a recovery a visitor's messages keep their order.
 */
const chainOfReplay = (recoveryId: number, { chain, topic, partition, offset }: DeadAgain) => {
  const of = chain === null ? `${topic}/${partition}/${offset}` : String(chain)
  const hash = createHash('sha1').update(`replay ${recoveryId} ${of}`).digest('hex')
  return hashToInt(hash.slice(0, 16))
}

/** After the commit: lanes know how much is parked for them. */
export const countRecovered = (stage: Stage, keys: readonly ChainKey[]): void => {
  for (const key of keys) {
    const partition = stage.partitions.get(placeOf(key))
    if (!partition || partition.lost) continue
    const at = { destinationId: key.destinationId, hash: hashOf(key.chain) }
    const chain = chainOf(stage, partition, at)
    countParked(stage, chain)
    chain.parking -= 1
  }
}

const hourMs = 3_600_000
/** What died of a certificate within the window of a message. */
const healedWithinMs = 4 * hourMs
const healReasons = ['tls_self_signed', 'tls_private_root'] as const

/** The destination's URL can be trusted again: what it refused to send goes out, where that was asked for. */
export const recoverHealed = async (stage: Stage, destinationId: number): Promise<void> => {
  const destination = stage.deps.live.now().destinations.get(destinationId)
  if (!destination?.replayOnHeal) return
  const at = stage.deps.clock()
  const since = new Date(at.getTime() - healedWithinMs)
  const ratePerSecond = stage.limits.recoverPerSecond
  try {
    for (const reason of healReasons) {
      const healed = { destinationId, reason, since, at, ratePerSecond }
      const recoveryId = await insertHealing(stage.deps.pool, healed)
      if (recoveryId === null) continue
      stage.deps.logger.info({ recoveryId, destinationId, reason }, 'recovery.started')
    }
  } catch (error) {
    stage.deps.logger.error({ err: error, destinationId }, 'recoveries.failed')
  }
}
