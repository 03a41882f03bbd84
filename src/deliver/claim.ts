// Takes parked rows that are due, by share, in partitions that are ours; arrive.ts puts them into the lanes.
import type { Connection } from '../postgres/sql.ts'
import { type ClaimedRow, claimDue, type Place } from './chain-store.ts'
import { isBehind } from './desk.ts'
import { releaseHeld } from './hold-store.ts'
import { isServed } from './replays.ts'
import { roomOf } from './rooms.ts'
import { count, type Lane, type Partition, type Stage } from './stage.ts'

export type Claimed = ClaimedRow & { readonly leaseUntil: number }

export const mayClaim = (stage: Stage): boolean => {
  if (stage.stopping) return false
  for (const lane of stage.lanes.values()) if (lane.parked > 0) return true
  return false
}

/** When, and in which partitions: those whose epochs are ours until the transaction ends. */
export type Claiming = { readonly at: Date; readonly partitions: readonly Partition[] }

/** A claim by share; lanes take turns at being first, so that none starves when there are many. */
export const claim = async (
  tx: Connection,
  stage: Stage,
  { at, partitions }: Claiming,
): Promise<readonly Claimed[]> => {
  if (stage.stopping) return []
  if (isBehind(stage)) {
    stage.desk.more = true
    return []
  }
  const chosen = chooseLanes(stage, { at, partitions })
  if (chosen.length === 0) return []
  await releaseSome(tx, stage, { chosen, at, partitions })
  const lanes = chosen.filter(({ room }) => room > 0)
  const places = placesOf(stage, partitions, lanes)
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

/** Whether anything of it may be sent: a replay goes to one that is switched off, too. */
const isAsked = (stage: Stage, { destinationId, parked }: Lane, of: readonly Partition[]) => {
  if (parked === 0) return false
  const destination = stage.deps.live.now().destinations.get(destinationId)
  return (
    destination?.enabled === true ||
    of.some((each) => each.parked.has(destinationId) && isServed(destination, each))
  )
}

/** Lanes with room for parked rows, without those that are given up, from where the last claim ended, each with its share of this one. */
const chooseLanes = (stage: Stage, { at, partitions }: Claiming): readonly Part[] => {
  const { claimMax, claimShareMin } = stage.limits
  const inTurn = Math.floor(claimMax / claimShareMin)
  const lanes = [...stage.lanes.values()].filter((lane) => isAsked(stage, lane, partitions))
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

type Releasing = Claiming & { readonly chosen: readonly Part[] }

/** Of lanes that may go on, what was held becomes due, oldest first. */
const releaseSome = async (
  tx: Connection,
  stage: Stage,
  { chosen, at, partitions }: Releasing,
): Promise<void> => {
  const holding = chosen.filter(({ held }) => held > 0)
  const rooms = holding.map(({ destinationId, held }) => ({ destinationId, room: held }))
  const released = await releaseHeld(tx, { rooms, partitions, at })
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
const placesOf = (
  { deps }: Stage,
  held: readonly Partition[],
  lanes: readonly Part[],
): readonly Place[] => {
  const { destinations } = deps.live.now()
  const rooms = new Map(lanes.map(({ destinationId, room }) => [destinationId, room]))
  const places: Place[] = []
  for (const each of held) {
    const { topic, partition, parked } = each
    const until = firstTriesUntil(each)
    const few = parked.size < rooms.size ? parked.keys() : rooms.keys()
    for (const destinationId of few) {
      const look = Math.min(rooms.get(destinationId) ?? 0, parked.get(destinationId) ?? 0)
      if (look > 0 && isServed(destinations.get(destinationId), each))
        places.push({ topic, partition, destinationId, look, until })
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
