// Gains partitions: where the last owner stood, what it had settled, and what it had parked.
import { openTracker } from '../domain/tracker.ts'
import { openDuplicates } from '../duplicate/duplicates.ts'
import { type Lease, placeOf, type Reader } from '../log/log.ts'
import { gainPosition } from '../postgres/position.ts'
import { countParked, loadChains, loadSettled } from './chain-store.ts'
import { hashOf } from './desk.ts'
import { takeBatch } from './intake.ts'
import { abandon, chainOf, laneOf } from './lanes.ts'
import { decodeState } from './position-state.ts'
import type { Partition, Stage } from './stage.ts'

export const gain = async (stage: Stage, lease: Lease): Promise<Reader> => {
  await forget(stage, placeOf(lease))
  const { pool } = stage.deps
  const { topic, partition: number } = lease
  const position = await gainPosition(pool, { reader: 'deliver', topic, partition: number })
  const committed = lease.committed ?? 0n
  const from = position.next > committed ? position.next : committed
  const { settled, marks, counters } = decodeState(position.state, Number(position.next))
  const partition: Partition = {
    topic,
    partition: number,
    epoch: position.epoch,
    lease,
    tracker: openTracker(Number(from), settled),
    chains: new Map(),
    already: new Map(),
    marks: new Map(marks),
    counters,
    duplicates: topic === 'outbound' ? null : await openDuplicatesOf(stage, lease),
    parked: new Map(),
    spilled: new Set(),
    written: -1,
    committed: lease.committed,
    lost: false,
    rounds: 0,
  }
  for (const { offset, destinationId } of await loadSettled(pool, lease, from)) {
    const ids = partition.already.get(Number(offset)) ?? new Set()
    partition.already.set(Number(offset), ids.add(destinationId))
  }
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

const openDuplicatesOf = (stage: Stage, { topic, partition }: Lease) =>
  openDuplicates({
    sql: stage.deps.pool,
    reader: 'deliver',
    topic,
    partition,
    bytesMax: stage.limits.duplicateBytesMax,
  })

/** One round at a time per chain also across two ownerships in one process: the old rounds end first. */
const forget = async (stage: Stage, key: string): Promise<void> => {
  const old = stage.partitions.get(key)
  if (!old) return
  if (!old.lost) {
    old.lost = true
    abandon(stage, old)
  }
  stage.partitions.delete(key)
  while (old.rounds > 0) await stage.room.wait(50)
}

const loadParked = async (stage: Stage, partition: Partition): Promise<void> => {
  const { pool } = stage.deps
  const counts = await countParked(pool, partition)
  for (const { destinationId, parked } of counts) {
    partition.parked.set(destinationId, parked)
    laneOf(stage, destinationId).parked += parked
  }
  if (counts.length === 0) return
  const room = Math.max(0, stage.limits.chainsMax - stage.parkedChains)
  const chains = await loadChains(pool, partition, room + 1)
  if (chains.length > room) {
    for (const { destinationId } of counts) partition.spilled.add(destinationId)
    return
  }
  for (const { destinationId, chain, parked } of chains) {
    chainOf(stage, partition, { destinationId, hash: hashOf(chain) }).parked = parked
    stage.parkedChains += 1
  }
}
