// The desk: the one writer of parked and dead rows. Work that waits while a transaction commits goes into
// the next, claims included, so what a chain looks like in memory and in Postgres never disagrees.

import { setTimeout as sleep } from 'node:timers/promises'
import { nameTransaction, outcomeOf } from '../postgres/outcome.ts'
import { type Connection, holdsPositions } from '../postgres/sql.ts'
import type { Written } from './alert-store.ts'
import type { Died } from './alerts.ts'
import { arrive, unparkCancelled } from './arrive.ts'
import { cancelGone } from './cancel.ts'
import { type ChainKey, demoteFollowers, releaseHeads } from './chain-store.ts'
import { type Claimed, claim, mayClaim } from './claim.ts'
import { buryParked, type Cancelled, insertDead } from './dead-store.ts'
import { chainKeyOf, hasWork, mayGather, type Task, takeOff, takeWork, type Work } from './desk.ts'
import { cancelErased } from './erased-store.ts'
import { freeChains, holdRows } from './hold-store.ts'
import { keptOf } from './kept.ts'
import { addToLedger } from './ledger-store.ts'
import { isHopeless } from './persist.ts'
import { lose } from './positions.ts'
import { countRecovered, nothingRecovered, type Recovered, recover } from './recover.ts'
import { bodySpan, ensureSpans, spanOf } from './spans.ts'
import type { Chain, Partition, Stage } from './stage.ts'
import {
  deleteDelivered,
  giveBack,
  holdPartitions,
  insertParked,
  scheduleRetries,
} from './store.ts'

/** Works until the stage stops and nothing is left. */
export const runDesk = async (stage: Stage, ended: () => boolean): Promise<void> => {
  const { desk, limits } = stage
  let began = Number.NEGATIVE_INFINITY
  for (;;) {
    const early = began + limits.deskEveryMs - performance.now()
    if (early > 0 && mayGather(stage) && !ended()) {
      await desk.bell.wait(early)
      continue
    }
    const due = performance.now() >= desk.claimAt && mayClaim(stage)
    if (!hasWork(desk) && !due && !desk.recovers) {
      if (ended()) return
      const pauseMs = mayClaim(stage) ? desk.claimAt - performance.now() : limits.claimEveryMs
      await desk.bell.wait(Math.max(1, Math.min(pauseMs, limits.claimEveryMs)))
      continue
    }
    // Other work must not put off the look for due rows.
    if (due) desk.claimAt = performance.now() + limits.claimEveryMs
    const recovers = desk.recovers
    desk.recovers = false
    began = performance.now()
    await workOnce(stage, { works: takeWork(stage.desk, limits), due, recovers })
  }
}

/** Commits the work taken, trying for as long as Postgres is away: intake is held back meanwhile. */
const workOnce = async (stage: Stage, batch: Batch): Promise<void> => {
  const { works } = batch
  const done = await commit(stage, batch)
  works.forEach((work, at) => {
    takeOff(stage, work)
    work.settled(done.kept[at] ?? false)
  })
  const most = Math.max(done.claimed.length, done.cancelled.length)
  if (stage.desk.more || most >= stage.limits.claimMax) stage.desk.claimAt = 0
  stage.desk.more = false
  for (const partition of done.fenced) lose(stage, partition)
  unparkCancelled(stage, done.cancelled)
  unparkCancelled(stage, done.recovered.withdrawn)
  countRecovered(stage, done.recovered.parked)
  stage.deps.alerts?.written(done.told)
  arrive(stage, done.claimed)
  stage.room.ring()
}

type Done = {
  readonly kept: readonly boolean[]
  readonly cancelled: readonly ChainKey[]
  readonly claimed: readonly Claimed[]
  readonly recovered: Recovered
  /** What operators are told of the dead. */
  readonly told: readonly Written[]
  /** Whose epoch is no longer ours. */
  readonly fenced: readonly Partition[]
}

const nothingDone: Done = {
  kept: [],
  cancelled: [],
  claimed: [],
  recovered: nothingRecovered,
  told: [],
  fenced: [],
}

const commit = async (stage: Stage, batch: Batch): Promise<Done> => {
  const { desk, deps, limits } = stage
  const doubt: Doubt = { sent: null }
  for (;;) {
    try {
      const done = (await doneBefore(stage, doubt)) ?? (await commitOnce(stage, batch, doubt))
      desk.failingSince = null
      return done
    } catch (error) {
      if (isHopeless(error)) stage.fail(error)
      desk.failingSince ??= performance.now()
      deps.logger.error({ err: error, works: batch.works.length }, 'desk.failed')
      // What is not committed stays unsettled in the log, or leased until its lease ends.
      if (performance.now() > stage.giveUpAt) return nothingDone
      await sleep(limits.pauseMs)
    }
  }
}

/** What was sent to be committed, and no answer came. */
type Doubt = { sent: { readonly done: Done; readonly transaction: string } | null }

const commitOnce = (stage: Stage, batch: Batch, doubt: Doubt): Promise<Done> =>
  stage.deps.pool.transaction(async (tx) => {
    const done = await apply(tx, stage, batch)
    const transaction = await nameTransaction(tx)
    if (transaction !== null) doubt.sent = { done, transaction }
    return done
  }, holdsPositions)

/**
 * Doing it again would find nothing left to do, and what was claimed, given up or sent again in it would be
 * known to nobody here.
 */
const doneBefore = async ({ deps }: Stage, doubt: Doubt): Promise<Done | null> => {
  if (doubt.sent === null) return null
  const outcome = await outcomeOf(deps.pool, doubt.sent.transaction)
  if (outcome === 'committed') return doubt.sent.done
  if (outcome === 'in progress') throw new Error('the transaction before is not over')
  doubt.sent = null
  return null
}

type Batch = {
  readonly works: readonly Work[]
  readonly due: boolean
  readonly recovers: boolean
}

const apply = async (tx: Connection, stage: Stage, batch: Batch): Promise<Done> => {
  const owned = ownedOf(stage, batch)
  const held = await holdPartitions(tx, owned)
  const partitions = owned.filter((partition) => held.has(partition))
  const works = batch.works.filter(({ partition }) => held.has(partition))
  const at = stage.deps.clock()
  const leased = { owner: stage.owner, at }
  const tasks = works.map(({ task }) => task)
  const of = <T extends Task['type']>(type: T) =>
    tasks.filter((task): task is Extract<Task, { type: T }> => task.type === type)
  const [parks, backs] = [of('park'), of('back')]
  const [deliveries, burials] = [of('delivered'), of('bury')]
  await ensureHour(tx, stage, at)
  await insertParked(tx, pluck(parks, 'row'), at)
  const died = await insertDead(tx, pluck(of('die'), 'row'), at)
  const delivered = await deleteDelivered(tx, pluck(deliveries, 'id'), leased)
  const buried = await buryParked(tx, pluck(burials, 'burial'), leased)
  const stored = await scheduleRetries(tx, pluck(of('retry'), 'retry'), leased)
  await holdRows(tx, pluck(of('hold'), 'holding'), leased)
  await giveBack(tx, pluck(backs, 'id'), stage.owner)
  await freeChains(tx, keysOf(of('free')), at)
  const { keys: cancelled, entries: cancellations } = await cancelSome(tx, stage, {
    erasing: batch.recovers ? partitions : [],
    partitions,
    at,
  })
  const recovered = batch.recovers ? await recover(tx, stage, { partitions, at }) : nothingRecovered
  await addToLedger(tx, [
    ...died,
    ...delivered.entries,
    ...buried.entries,
    ...stored,
    ...cancellations,
    ...recovered.entries,
  ])
  const overtaken = parks.filter(
    ({ row, chain, overtakes }) => overtakes || (row.nextAt !== null && chain.parked > 1),
  )
  await demoteFollowers(tx, keysOf(overtaken), leased)
  const touched = [...parks, ...deliveries, ...burials, ...backs]
  const chains = [...keysOf(touched), ...cancelled, ...recovered.parked, ...recovered.withdrawn]
  const released = await releaseHeads(tx, chains, at)
  const claimed = batch.due || released > 0 ? await claim(tx, stage, { at, partitions }) : []
  const kept = keptOf(batch.works, { held, delivered: delivered.ids, buried: buried.ids })
  const fenced = owned.filter((partition) => !held.has(partition))
  // Last, as others who tell the same of theirs wait until this is committed.
  const buriedOf = burials.filter(({ burial }) => buried.ids.has(burial.id))
  const told = await tellDead(tx, stage, {
    died: [...died, ...buriedOf.map(diedOf)],
    at,
  })
  return { kept, cancelled, claimed, recovered, told, fenced }
}

type Cancelling = {
  readonly partitions: readonly Partition[]
  readonly erasing: readonly Partition[]
  readonly at: Date
}

/** What is for nobody any more, and what is of nobody any more. */
const cancelSome = async (
  tx: Connection,
  stage: Stage,
  { erasing, partitions, at }: Cancelling,
): Promise<Cancelled> => {
  const gone = await cancelGone(tx, stage, { at, partitions })
  if (erasing.length === 0) return gone
  const limit = stage.limits.claimMax
  const erased = await cancelErased(tx, { partitions: erasing, at, limit })
  return { keys: [...gone.keys, ...erased.keys], entries: [...gone.entries, ...erased.entries] }
}

type Telling = { readonly died: readonly Died[]; readonly at: Date }

const tellDead = async (tx: Connection, stage: Stage, { died, at }: Telling) => {
  const { alerts } = stage.deps
  if (!alerts || died.length === 0) return []
  const news = alerts.deathNews(died, at)
  return news.length === 0 ? [] : alerts.write(tx, news)
}

const diedOf = ({ burial, chain }: Extract<Task, { type: 'bury' }>): Died => ({
  destinationId: chain.lane.destinationId,
  reason: burial.reason,
})

/** Bodies need a table of their hour; it is there already, unless the clock jumped or this is the start. */
const ensureHour = async (tx: Connection, stage: Stage, at: Date): Promise<void> => {
  const hour = spanOf(bodySpan, at.getTime())
  if (!stage.hours.has(hour)) await ensureSpans(tx, bodySpan, [hour])
}

/**
 * The partitions of the works, and with rows to be claimed or given up all that are held: who lost one without
 * hearing of it must not take rows from its new owner. Without those known to be lost.
 */
const ownedOf = (stage: Stage, { works, recovers }: Batch): readonly Partition[] => {
  const owned = new Set(works.map(({ partition }) => partition))
  if (recovers || mayClaim(stage))
    for (const partition of stage.partitions.values()) owned.add(partition)
  return [...owned].filter(({ lost }) => !lost)
}

const pluck = <T, K extends keyof T>(all: readonly T[], key: K): readonly T[K][] =>
  all.map((one) => one[key])

const keysOf = (tasks: readonly { readonly chain: Chain }[]): readonly ChainKey[] => {
  const keys = new Map<Chain, ChainKey>()
  for (const { chain } of tasks) keys.set(chain, chainKeyOf(chain))
  return [...keys.values()]
}
