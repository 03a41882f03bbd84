// Takes parked rows that are due back into the lanes, by share; their bodies come from the row or the log.
import type { Message, Outbound } from '../domain/message.ts'
import { isLastTry } from '../domain/retry.ts'
import { placeOf } from '../log/log.ts'
import type { Connection } from '../postgres/sql.ts'
import { type ChainKey, type ClaimedRow, claimDue, type Place } from './chain-store.ts'
import { dropIdle, findChain } from './chains.ts'
import { hashOf, isBehind, putWork } from './desk.ts'
import { bufferOf, renderAgain } from './fan-out.ts'
import { hold } from './hold.ts'
import { releaseHeld } from './hold-store.ts'
import { enter, pump, unpark } from './lanes.ts'
import { placeAgain } from './order.ts'
import { putBack } from './park.ts'
import { roomOf } from './rooms.ts'
import { startRound } from './round.ts'
import {
  type Chain,
  count,
  type Delivery,
  isMade,
  type Lane,
  type Partition,
  type Stage,
} from './stage.ts'
import { gateOf } from './urls.ts'

export type Claimed = ClaimedRow & { readonly leaseUntil: number }

export const mayClaim = (stage: Stage): boolean => {
  if (stage.stopping) return false
  for (const lane of stage.lanes.values()) if (lane.parked > 0) return true
  return false
}

export const heldPartitions = (stage: Stage): readonly Partition[] =>
  [...stage.partitions.values()].filter(({ lost }) => !lost)

/** A claim by share; lanes take turns at being first, so that none starves when there are many. */
export const claim = async (
  tx: Connection,
  stage: Stage,
  at: Date,
): Promise<readonly Claimed[]> => {
  if (stage.stopping) return []
  if (isBehind(stage)) {
    stage.desk.more = true
    return []
  }
  const chosen = chooseLanes(stage, at)
  if (chosen.length === 0) return []
  await releaseSome(tx, stage, { chosen, at })
  const lanes = chosen.filter(({ room }) => room > 0)
  const places = placesOf(stage, lanes)
  const until = new Date(at.getTime() + stage.limits.leaseMs)
  const rows = await claimDue(tx, { lanes, places, owner: stage.owner, at, until })
  noteMore(stage, lanes, rows)
  const claimed = rows.map((row) => ({ ...row, leaseUntil: until.getTime() }))
  return claimed.sort((a, b) => Number(a.offset - b.offset))
}

/** A lane's part in a claim: how many rows that are due, and how many of those held. */
type Part = {
  readonly lane: Lane
  readonly destinationId: number
  readonly room: number
  readonly held: number
}

/** Lanes with room for parked rows, from where the last claim ended, each with its share of this one. */
const chooseLanes = (stage: Stage, at: Date): readonly Part[] => {
  const { claimMax, claimShareMin } = stage.limits
  const inTurn = Math.floor(claimMax / claimShareMin)
  const lanes = [...stage.lanes.values()].filter(({ parked }) => parked > 0)
  const start = lanes.length > inTurn ? stage.desk.claimTurn % lanes.length : 0
  const chosen: Part[] = []
  let asked = 0
  for (; asked < lanes.length && chosen.length < inTurn; asked += 1) {
    const lane = lanes[(start + asked) % lanes.length] as Lane
    const { due, held } = roomOf(stage, lane, at.getTime())
    if (due > 0 || held > 0)
      chosen.push({ lane, destinationId: lane.destinationId, room: due, held })
  }
  stage.desk.claimTurn = start + asked
  const share = Math.floor(claimMax / Math.max(1, chosen.length))
  return chosen.map((part) => ({
    ...part,
    room: Math.min(part.room, share),
    held: Math.min(part.held, share),
  }))
}

type Releasing = { readonly chosen: readonly Part[]; readonly at: Date }

/** Of lanes that may go on, what was held becomes due, oldest first. */
const releaseSome = async (
  tx: Connection,
  stage: Stage,
  { chosen, at }: Releasing,
): Promise<void> => {
  const holding = chosen.filter(({ held }) => held > 0)
  const rooms = holding.map(({ destinationId, held }) => ({ destinationId, room: held }))
  const released = await releaseHeld(tx, { rooms, partitions: heldPartitions(stage), at })
  const counts = new Map(released.map((row) => [row.destinationId, row.released]))
  stage.desk.emptied = holding
    .filter(({ destinationId, held }) => (counts.get(destinationId) ?? 0) < held)
    .map(({ lane }) => lane)
}

/** A share that was used up says that there is more. */
const noteMore = (stage: Stage, parts: readonly Part[], rows: readonly ClaimedRow[]): void => {
  const counts = new Map<number, number>()
  for (const { destinationId } of rows) count(counts, destinationId, 1)
  const again = performance.now() + stage.limits.shutEveryMs * (0.5 + stage.random())
  for (const { lane, destinationId, room } of parts) {
    lane.more = (counts.get(destinationId) ?? 0) >= room
    lane.askAt = lane.more ? 0 : again
  }
  const { claimMax, claimShareMin } = stage.limits
  stage.desk.more = parts.length * claimShareMin >= claimMax && rows.length > 0
}

/** Where the chosen lanes have rows. The longest due of a lane are found, however its rows are spread. */
const placesOf = (stage: Stage, lanes: readonly Part[]): readonly Place[] => {
  const rooms = new Map(lanes.map(({ destinationId, room }) => [destinationId, room]))
  const held = heldPartitions(stage)
  const places: Place[] = []
  for (const each of held) {
    const { topic, partition, parked } = each
    const until = firstTriesUntil(each)
    const few = parked.size < rooms.size ? parked.keys() : rooms.keys()
    for (const destinationId of few) {
      const look = Math.min(rooms.get(destinationId) ?? 0, parked.get(destinationId) ?? 0)
      if (look > 0) places.push({ topic, partition, destinationId, look, until })
    }
  }
  return places
}

/**
 * Before what the last owner parked there may stand messages that it had not settled: until they are read again
 * nobody knows of them. Where reading waits for fewer parked rows, the order is not worth waiting for ever.
 */
const firstTriesUntil = ({ tracker, paused }: Partition): number =>
  paused === 'quota' ? Number.MAX_SAFE_INTEGER : tracker.seen()

/** After the claim's commit: each row takes its place in its chain, unless an earlier one was parked since. */
export const arrive = (stage: Stage, rows: readonly Claimed[]): void => {
  for (const lane of stage.desk.emptied.splice(0)) lane.mayHold = false
  const bodiless: Arrival[] = []
  for (const row of rows) {
    const partition = stage.partitions.get(placeOf(row))
    if (!partition || partition.lost) continue
    const { attempts, firstTryAt } = row
    const at = { ...chainAt(row), offset: Number(row.offset), attempts, firstTryAt }
    const chain = placeAgain(stage, partition, at)
    chain.lane.claimed += 1
    const arrival = { row, chain, parks: chain.parks }
    if (row.body === null) bodiless.push(arrival)
    else take(stage, arrival, row.body)
  }
  pump(stage, (delivery) => startRound(stage, delivery))
  if (bodiless.length > 0) fetchBodies(stage, bodiless).catch(stage.fail)
}

/** Also behind the one that finds out: when that fails, nothing would ever take the others out of the lane. */
const isShut = (stage: Stage, lane: Lane): boolean => {
  const gate = gateOf(stage, lane, stage.deps.clock().getTime())
  return gate === 'shut' || (gate === 'probe' && lane.waiting > 0)
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
      isKept: row.body !== null,
      parkedAt: row.parkedAt.getTime(),
      isLast: isLastTry((row.firstTryAt ?? row.parkedAt).getTime(), stage.deps.clock().getTime()),
      recoveryId: row.recoveryId,
    },
    offset: Number(row.offset),
    messageId: row.messageId,
    type: row.type,
    body,
    receivedAt: row.parkedAt.getTime(),
  }
  if (chain.partition.lost) {
    chain.lane.claimed -= 1
    return
  }
  if (chain.parking > 0 || chain.parks !== parks || stage.stopping) putBack(stage, delivery)
  else if (!delivery.row?.isLast && isShut(stage, chain.lane)) {
    chain.lane.claimed -= 1
    hold(stage, delivery)
  } else enter(stage, delivery)
  if (chain.stray) dropIdle(chain)
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
    const records: readonly (Message | Outbound)[] = isMade(partition)
      ? await codecs.outbound.decode(values)
      : await codecs.call.decode(values)
    entries.forEach(({ offset }, index) => {
      for (const arrival of wanted.get(offset) ?? []) {
        const body = bodyOf(stage, records[index] as Message | Outbound, arrival)
        if (body === null) buryUntried(stage, arrival, 'internal')
        else take(stage, arrival, body)
      }
      wanted.delete(offset)
    })
  }
  // The topic's retention is the age limit of what was parked by coordinates.
  for (const arrival of [...wanted.values()].flat()) buryUntried(stage, arrival, 'log_expired')
}

const bodyOf = (stage: Stage, record: Message | Outbound, { chain }: Arrival): Buffer | null => {
  if ('destinationId' in record) return bufferOf(record.body)
  return renderAgain(record, stage.deps.live.now().destinations.get(chain.lane.destinationId))
}

const buryUntried = (
  stage: Stage,
  { row, chain }: Arrival,
  reason: 'log_expired' | 'internal',
): void => {
  chain.lane.claimed -= 1
  const { id, attempts, firstTryAt } = row
  const burial = { id, reason, status: null, attempts, firstTryAt }
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
