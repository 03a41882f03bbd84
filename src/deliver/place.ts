// Places one message from the log: in the lanes of the destinations that still lack it, or among the dead.
import { hashOfKey } from '../domain/chain.ts'
import type { Message, Outbound } from '../domain/message.ts'
import type { Open } from '../domain/tracker.ts'
import type { Recorded } from '../log/log.ts'
import { admit } from './admit.ts'
import type { Fanned } from './fan-out.ts'
import { suppressionVersion } from './forgotten.ts'
import { placeIn } from './order.ts'
import { owePairs } from './pairs.ts'
import { bury, settleOne } from './park.ts'
import type { Delivery, Partition, Stage } from './stage.ts'

type Placed = {
  readonly entry: Recorded
  readonly record: Message | Outbound
  readonly fanned: Fanned
}

/**
 * Finds room for one message in the lane of each destination that still lacks it: `true` at once in the usual
 * case, else a promise of `false` when the partition was lost or we stop.
 */
export const place = (
  stage: Stage,
  partition: Partition,
  placed: Placed,
): true | Promise<boolean> => {
  const { entry, fanned } = placed
  const offset = Number(entry.offset)
  const open = partition.tracker.open(offset, fanned.destinationIds)
  if (!open) return true
  owePairs(partition, open.left.length + fanned.withheld.length)
  if (fanned.withheld.length > 0) partition.withheld.set(offset, fanned.withheld.length)
  const already = partition.already.get(offset)
  if (already) partition.already.delete(offset)
  const hashed = hashOfKey(entry.key)
  const owing: Owing = { ...placed, open, hashed, already, letThroughBy: suppressionVersion(stage) }
  return placeEach(stage, partition, { owing, destinationIds: [...open.left] })
}

type Owing = Placed & {
  readonly open: Open
  readonly hashed: string
  /** Destinations it is parked or dead for already. */
  readonly already: ReadonlySet<number> | undefined
  readonly letThroughBy: bigint
}

type Rest = { readonly owing: Owing; readonly destinationIds: readonly number[] }

const placeEach = (
  stage: Stage,
  partition: Partition,
  { owing, destinationIds }: Rest,
): true | Promise<boolean> => {
  for (let at = 0; at < destinationIds.length; at += 1) {
    const destinationId = destinationIds[at] as number
    const placed = placeOne(stage, partition, { owing, destinationId })
    if (placed === true) continue
    const rest = { owing, destinationIds: destinationIds.slice(at + 1) }
    return placed.then((isPlaced) => isPlaced && placeEach(stage, partition, rest))
  }
  return true
}

type One = { readonly owing: Owing; readonly destinationId: number }

const placeOne = (
  stage: Stage,
  partition: Partition,
  { owing, destinationId }: One,
): true | Promise<boolean> => {
  const { open, hashed, already, fanned, record, letThroughBy } = owing
  const { offset } = open
  if (already?.has(destinationId)) {
    settleOne(partition, open, { destinationId, outcome: 'parked' })
    return true
  }
  const chain = placeIn(stage, partition, { destinationId, hash: hashed, offset })
  const { messageId, type, receivedAt } = record
  const body = fanned.own.get(destinationId) ?? fanned.body
  const said = { offset, messageId, type, body, receivedAt, letThroughBy }
  const delivery: Delivery = { chain, open, row: null, ...said }
  if (!fanned.poisoned.has(destinationId)) return admit(stage, delivery)
  bury(stage, delivery, { reason: 'internal', status: null, attempts: 0, firstTryAt: null })
  return true
}
