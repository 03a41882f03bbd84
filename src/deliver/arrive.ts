// Where claimed rows go after the commit: into their chains, with bodies from the row or read from the log again.
import { hashOf } from '../domain/chain.ts'
import type { Message, Outbound } from '../domain/message.ts'
import { isLastTry } from '../domain/retry.ts'
import { placeOf } from '../log/log.ts'
import type { ChainKey } from './chain-store.ts'
import { dropIdle, findChain } from './chains.ts'
import type { Claimed } from './claim.ts'
import { putWork } from './desk.ts'
import { bufferOf, renderAgain } from './fan-out.ts'
import { hold } from './hold.ts'
import { enter, pump, unpark } from './lanes.ts'
import { placeAgain } from './order.ts'
import { putBack } from './park.ts'
import { startRound } from './round.ts'
import {
  type Chain,
  type Delivery,
  isMade,
  type Lane,
  type Partition,
  type Stage,
} from './stage.ts'
import { gateOf } from './urls.ts'

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
    // What is on its way may be written before this one's body is there.
    const arrival = { row, chain, parks: chain.parks - chain.parking }
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

type Arrival = {
  readonly row: Claimed
  readonly chain: Chain
  /** Of its chain, written when it was claimed. */
  readonly parks: number
}

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
    // It is asked about at each try.
    letThroughBy: 0n,
  }
  if (chain.partition.lost) {
    chain.lane.claimed -= 1
    return
  }
  if (chain.parks !== parks || stage.stopping) putBack(stage, delivery)
  else if (!delivery.row?.isLast && isShut(stage, chain.lane)) {
    chain.lane.claimed -= 1
    hold(stage, delivery)
  } else enter(stage, delivery)
  if (chain.stray) dropIdle(chain)
}

/** Partitions read at a time: within one, rows of a chain go in their order. */
const readsMax = 4

/** Rows parked by their coordinates alone are read from the log again, neighbours together; each goes once it is there. */
const fetchBodies = async (stage: Stage, arrivals: readonly Arrival[]): Promise<void> => {
  const partitions = [...Map.groupBy(arrivals, ({ chain }) => chain.partition)]
  const readOn = async (): Promise<void> => {
    for (let next = partitions.shift(); next !== undefined; next = partitions.shift()) {
      const [partition, all] = next
      for (const near of groupNear(all)) {
        await fetchNear(stage, partition, near)
        pump(stage, (delivery) => startRound(stage, delivery))
      }
    }
  }
  await Promise.all(Array.from({ length: readsMax }, readOn))
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
