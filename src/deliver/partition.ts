// Gains partitions: where the last owner stood, what it had settled, and what it had parked.
import { openTracker, type Settled } from '../domain/tracker.ts'
import { openDuplicates } from '../duplicate/duplicates.ts'
import { type Lease, placeOf, type Reader } from '../log/log.ts'
import { gainPosition } from '../postgres/position.ts'
import type { Sql } from '../postgres/sql.ts'
import { loadSettled } from './chain-store.ts'
import { takeBatch } from './intake.ts'
import { abandon } from './lanes.ts'
import { reconcile } from './ledger.ts'
import { resume } from './memory.ts'
import { openPairs } from './pairs.ts'
import { loadParked } from './parked.ts'
import { persist } from './persist.ts'
import { isMade, type Partition, type Stage } from './stage.ts'
import { urlsReady } from './url-loop.ts'

export const gain = (stage: Stage, lease: Lease): Promise<Reader> => {
  const isOver = () => stage.stopping || lease.lost.aborted
  return persist(stage, { what: 'gain', isOver }, () => gainOnce(stage, lease))
}

/** Failing half-way leaves nothing but an epoch that is higher: it is done from the start again. */
const gainOnce = async (stage: Stage, lease: Lease): Promise<Reader> => {
  const [old] = await Promise.all([forget(stage, placeOf(lease)), urlsReady(stage)])
  // Lost while it waited: the epoch is for whoever gains it now.
  lease.lost.throwIfAborted()
  const { pool } = stage.deps
  const { topic, partition: number } = lease
  const position = await gainPosition(pool, { reader: 'deliver', topic, partition: number })
  const state = resume(position, stage.partitions.get(placeOf(lease)) === old ? old : undefined)
  const { settled, marks, counters } = state
  const next = BigInt(settled.next)
  const committed = lease.committed ?? 0n
  const from = next > committed ? next : committed
  const already = await loadAlready(pool, lease, from)
  const partition: Partition = {
    topic,
    partition: number,
    epoch: position.epoch,
    regained: position.epoch,
    lease,
    tracker: openTracker(Number(from), settled),
    chains: new Map(),
    already,
    alreadyTo: [...already.keys()].reduce((most, offset) => Math.max(most, offset), -1),
    marks: new Map(marks),
    withheld: new Map(),
    counters,
    pairs: openPairs(state.consumed, Math.max(Number(from), settled.next + settled.length)),
    paused: null,
    duplicates: isMade(lease) ? null : await openDuplicatesOf(stage, lease),
    parked: new Map(),
    spilled: new Set(),
    isRecording: isMade(lease),
    written: -1,
    watermark: from,
    committed: lease.committed,
    telling: null,
    toldAt: Number.NEGATIVE_INFINITY,
    lost: false,
    rounds: 0,
    saving: 0,
  }
  const resumed = { counters, rough: state.rough, unheard: countUnheard(partition, settled) }
  await reconcile(pool, { topic, partition: number }, resumed)
  await loadParked(stage, partition)
  const lose = () => {
    partition.lost = true
    abandon(stage, partition)
  }
  if (lease.lost.aborted) lose()
  else {
    lease.lost.addEventListener('abort', lose, { once: true })
    stage.partitions.set(placeOf(lease), partition)
  }
  return { from, handle: (batch) => takeBatch(stage, partition, batch) }
}

const loadAlready = async (sql: Sql, lease: Lease, from: bigint) => {
  const already = new Map<number, Set<number>>()
  for (const { offset, destinationId } of await loadSettled(sql, lease, from)) {
    const ids = already.get(Number(offset)) ?? new Set()
    already.set(Number(offset), ids.add(destinationId))
  }
  return already
}

/** Parked or dead, and not settled for the position. */
const countUnheard = ({ already, tracker }: Partition, { done }: Settled): number => {
  let unheard = 0
  for (const [offset, ids] of already)
    if (!tracker.isSettled(offset))
      for (const id of ids) if (!done.get(offset)?.includes(id)) unheard += 1
  return unheard
}

const openDuplicatesOf = (stage: Stage, { topic, partition }: Lease) =>
  openDuplicates({
    sql: stage.deps.pool,
    reader: 'deliver',
    topic,
    partition,
    bytesMax: stage.limits.duplicateBytesMax,
  })

/**
 * One round at a time per chain also across two ownerships in one process: the old rounds end first. So do its
 * saves: where partitions come and go faster than Postgres takes them, they would pile up.
 */
const forget = async (stage: Stage, key: string): Promise<Partition | undefined> => {
  const old = stage.partitions.get(key)
  if (!old) return undefined
  if (!old.lost) {
    old.lost = true
    abandon(stage, old)
  }
  while (old.rounds + old.saving > 0) await stage.room.wait(50)
  // It stays until the next one takes its place: gaining may fail half-way, and the lease be lost meanwhile.
  return old
}
