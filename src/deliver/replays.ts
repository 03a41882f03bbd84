// What delivery knows of replays: whose were cancelled, and up to where in the topic.
import type { Topic } from '../log/log.ts'
import type { Sql } from '../postgres/sql.ts'
import type { Delivery, Partition, Stage } from './stage.ts'

export type Replays = {
  /** Of open replays, by destination. */
  known: ReadonlyMap<number, Known>
  /** Real time of the last look. */
  lookedAt: number
}

type Known = {
  readonly isCancelled: boolean
  /** By partition: what stands below is the cancelled one's; `null`: it is still to be said. */
  readonly ends: readonly number[] | null
}

export const openReplays = (): Replays => ({ known: new Map(), lookedAt: Number.NEGATIVE_INFINITY })

/**
 * As long as its end is not known, all there is for the destination is the cancelled one's: no other replay of
 * it starts before two seconds after that. What was looked up longer ago than this may be about one of before.
 */
const freshMs = 1_500

export const lookForReplays = async (stage: Stage): Promise<void> => {
  if (stage.stopping) return
  try {
    const lookedAt = performance.now()
    stage.replays.known = await loadOpenReplays(stage.deps.pool)
    stage.replays.lookedAt = lookedAt
    if ([...stage.replays.known.values()].some(({ isCancelled }) => isCancelled))
      stage.desk.bell.ring()
  } catch (error) {
    stage.deps.logger.error({ err: error }, 'replays.failed')
  }
}

const loadOpenReplays = async (sql: Sql): Promise<Replays['known']> => {
  const { rows } = await sql.query<{
    id: number
    isCancelled: boolean
    ends: readonly string[] | null
  }>(
    `select destination_id as id, state = 'cancelled' as "isCancelled",
            case when cut then tails::text[] end as ends from replay where not settled`,
  )
  return new Map(
    rows.map(({ id, isCancelled, ends }) => [id, { isCancelled, ends: ends?.map(Number) ?? null }]),
  )
}

/** Below which offset of a partition everything for the destination was cancelled; 0: nothing. */
const endOf = ({ replays }: Stage, destinationId: number, partition: number): number => {
  const known = replays.known.get(destinationId)
  if (!known?.isCancelled) return 0
  if (known.ends) return known.ends[partition] ?? 0
  return performance.now() - replays.lookedAt < freshMs ? Number.MAX_SAFE_INTEGER : 0
}

export const isWithdrawn = (stage: Stage, { chain, offset }: Delivery): boolean =>
  chain.partition.topic === 'outbound.replay' &&
  offset < endOf(stage, chain.lane.destinationId, chain.partition.partition)

export type Stretch = {
  readonly topic: Topic
  readonly partition: number
  readonly destinationId: number
  /** Offsets below it. */
  readonly below: number
}

/** Where parked rows of cancelled replays may stand. */
export const withdrawnStretches = (
  stage: Stage,
  partitions: readonly Partition[],
): readonly Stretch[] => {
  const cancelled = [...stage.replays.known].filter(([, { isCancelled }]) => isCancelled)
  return partitions
    .filter(({ topic }) => topic === 'outbound.replay')
    .flatMap(({ topic, partition }) =>
      cancelled.map(([destinationId]) => {
        const below = endOf(stage, destinationId, partition)
        return { topic, partition, destinationId, below }
      }),
    )
    .filter(({ below }) => below > 0)
}

/** Whether messages from the log may still go to it: a replay goes to one that is switched off, too. */
export const isServed = (
  destination: { readonly enabled: boolean } | null | undefined,
  { topic }: Pick<Partition, 'topic'>,
): boolean => destination?.enabled === true || (!!destination && topic === 'outbound.replay')
