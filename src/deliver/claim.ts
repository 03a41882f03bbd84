// Takes parked rows that are due back into the lanes, by share; their bodies come from the row or the log.
import type { Message, Outbound } from '../domain/message.ts'
import { render } from '../domain/payload.ts'
import { placeOf } from '../log/log.ts'
import type { Connection } from '../postgres/sql.ts'
import { type ChainKey, type ClaimedRow, cancelParked, claimDue } from './chain-store.ts'
import { hashOf, putWork } from './desk.ts'
import { enter, findChain, pump, unpark } from './lanes.ts'
import { putBack } from './park.ts'
import { startRound } from './round.ts'
import type { Chain, Delivery, Partition, Stage } from './stage.ts'

export type Claimed = ClaimedRow & { readonly leaseUntil: number }

export const mayClaim = (stage: Stage): boolean => {
  if (stage.stopping) return false
  for (const lane of stage.lanes.values()) if (lane.parked > 0) return true
  return false
}

const heldPartitions = (stage: Stage): readonly Partition[] =>
  [...stage.partitions.values()].filter(({ lost }) => !lost)

export const claim = async (
  tx: Connection,
  stage: Stage,
  at: Date,
): Promise<readonly Claimed[]> => {
  const { claimPerLaneMax, claimMax, leaseMs } = stage.limits
  const rooms: { destinationId: number; room: number }[] = []
  let left = claimMax
  for (const lane of stage.lanes.values()) {
    const room = Math.min(claimPerLaneMax - lane.claimed, lane.parked - lane.claimed, left)
    if (room <= 0) continue
    rooms.push({ destinationId: lane.destinationId, room })
    left -= room
    if (left === 0) break
  }
  if (rooms.length === 0 || stage.stopping) return []
  const until = new Date(at.getTime() + leaseMs)
  const partitions = heldPartitions(stage)
  const rows = await claimDue(tx, { rooms, partitions, owner: stage.owner, at, until })
  const claimed = rows.map((row) => ({ ...row, leaseUntil: until.getTime() }))
  return claimed.sort((a, b) => Number(a.offset - b.offset))
}

/** Gives up what is parked for destinations that no longer exist or are switched off. */
export const cancelGone = async (
  tx: Connection,
  stage: Stage,
  at: Date,
): Promise<readonly ChainKey[]> => {
  const { destinations } = stage.deps.live.now()
  const gone = [...stage.lanes.values()].filter(
    (lane) => lane.parked > 0 && !destinations.get(lane.destinationId)?.enabled,
  )
  if (gone.length === 0) return []
  const partitions = heldPartitions(stage)
  const destinationIds = gone.map(({ destinationId }) => destinationId)
  return cancelParked(tx, { destinationIds, partitions, at, limit: stage.limits.claimMax })
}

/** After the claim's commit: each row takes its place in its chain, unless an earlier one was parked since. */
export const arrive = (stage: Stage, rows: readonly Claimed[]): void => {
  const bodiless: Arrival[] = []
  for (const row of rows) {
    const partition = stage.partitions.get(placeOf(row))
    if (!partition || partition.lost) continue
    const chain = findChain(stage, partition, chainAt(row))
    chain.lane.claimed += 1
    const arrival = { row, chain, parks: chain.parks }
    if (row.body === null) bodiless.push(arrival)
    else take(stage, arrival, row.body)
  }
  pump(stage, (delivery) => startRound(stage, delivery))
  if (bodiless.length > 0) fetchBodies(stage, bodiless).catch(stage.fail)
}

type Arrival = { readonly row: Claimed; readonly chain: Chain; readonly parks: number }

const take = (stage: Stage, { row, chain, parks }: Arrival, body: Buffer): void => {
  const delivery: Delivery = {
    chain,
    open: null,
    row: {
      id: row.id,
      attempts: row.attempts,
      firstTryAt: row.firstTryAt?.getTime() ?? null,
      finalUrls: row.finalUrls,
      leaseUntil: row.leaseUntil,
    },
    offset: Number(row.offset),
    messageId: row.messageId,
    type: row.type,
    body,
  }
  if (chain.partition.lost) {
    chain.lane.claimed -= 1
    return
  }
  if (chain.parking > 0 || chain.parks !== parks || stage.stopping) putBack(stage, delivery)
  else enter(stage, delivery)
}

/** Rows parked by their coordinates alone are read from the log again, neighbours together. */
const fetchBodies = async (stage: Stage, arrivals: readonly Arrival[]): Promise<void> => {
  const byPartition = Map.groupBy(arrivals, ({ chain }) => chain.partition)
  for (const [partition, all] of byPartition)
    for (const near of groupNear(all)) await fetchNear(stage, partition, near)
  pump(stage, (delivery) => startRound(stage, delivery))
}

const nearMax = 200n

const groupNear = (arrivals: readonly Arrival[]): readonly (readonly Arrival[])[] => {
  const groups: Arrival[][] = []
  for (const arrival of arrivals) {
    const group = groups.at(-1)
    const first = group?.[0]
    if (group && first && arrival.row.offset - first.row.offset < nearMax) group.push(arrival)
    else groups.push([arrival])
  }
  return groups
}

const fetchNear = async (
  stage: Stage,
  partition: Partition,
  arrivals: readonly Arrival[],
): Promise<void> => {
  const { source, codecs } = stage.deps
  const wanted = new Map<bigint, Arrival[]>()
  for (const arrival of arrivals)
    wanted.set(arrival.row.offset, [...(wanted.get(arrival.row.offset) ?? []), arrival])
  const offsets = [...wanted.keys()]
  const from = offsets[0] as bigint
  const until = (offsets.at(-1) as bigint) + 1n
  const at = { topic: partition.topic, partition: partition.partition }
  for await (const batch of source.read({ ...at, from, until })) {
    const entries = batch.entries.filter(({ offset }) => wanted.has(offset))
    const values = entries.map(({ value }) => value)
    const records: readonly (Message | Outbound)[] =
      partition.topic === 'outbound'
        ? await codecs.outbound.decode(values)
        : await codecs.call.decode(values)
    entries.forEach(({ offset }, index) => {
      const body = bodyOf(records[index] as Message | Outbound)
      for (const arrival of wanted.get(offset) ?? []) take(stage, arrival, body)
      wanted.delete(offset)
    })
  }
  for (const arrival of [...wanted.values()].flat()) buryMissing(stage, arrival)
}

const bodyOf = (record: Message | Outbound): Buffer => {
  const bytes = Buffer.from(record.body.buffer, record.body.byteOffset, record.body.byteLength)
  return 'destinationId' in record ? bytes : render(record, JSON.parse(bytes.toString('utf8')))
}

/** The topic's retention is the age limit of what was parked by coordinates. */
const buryMissing = (stage: Stage, { row, chain }: Arrival): void => {
  chain.lane.claimed -= 1
  const { id, attempts, firstTryAt } = row
  const burial = { id, reason: 'log_expired', status: null, attempts, firstTryAt }
  putWork(stage, {
    task: { type: 'bury', burial, chain },
    partition: chain.partition,
    settled: (kept) => {
      if (kept) unpark(stage, chain)
    },
  })
}

/** Rows given up in bulk are gone from Postgres too. */
export const unparkCancelled = (stage: Stage, keys: readonly ChainKey[]): void => {
  for (const key of keys) {
    const partition = stage.partitions.get(placeOf(key))
    if (partition) unpark(stage, findChain(stage, partition, chainAt(key)))
  }
}

const chainAt = (key: ChainKey) => ({ destinationId: key.destinationId, hash: hashOf(key.chain) })
