// The desk: the one writer of parked and dead rows. Work that waits while a transaction commits goes into
// the next, claims included, so what a chain looks like in memory and in Postgres never disagrees.

import { setTimeout as sleep } from 'node:timers/promises'
import { saveVerdicts } from '../duplicate/duplicates.ts'
import { placeOf } from '../log/log.ts'
import { type Connection, sqlState } from '../postgres/sql.ts'
import { type ChainKey, demoteFollowers, releaseHeads } from './chain-store.ts'
import { arrive, type Claimed, cancelGone, claim, mayClaim, unparkCancelled } from './claim.ts'
import { bytesOf, chainKeyOf, type Task, type Work } from './desk.ts'
import { lose } from './positions.ts'
import type { Chain, Partition, Stage } from './stage.ts'
import {
  buryParked,
  deleteDelivered,
  giveBack,
  holdPartitions,
  insertDead,
  insertParked,
  scheduleRetries,
} from './store.ts'

/** Works until the stage stops and nothing is left. */
export const runDesk = async (stage: Stage, ended: () => boolean): Promise<void> => {
  const { desk, limits } = stage
  for (;;) {
    const due = performance.now() >= desk.claimAt && mayClaim(stage)
    if (desk.queue.size() === 0 && !due) {
      if (ended()) return
      const pauseMs = mayClaim(stage) ? desk.claimAt - performance.now() : limits.claimEveryMs
      await desk.bell.wait(Math.max(1, Math.min(pauseMs, limits.claimEveryMs)))
      continue
    }
    desk.claimAt = performance.now() + limits.claimEveryMs
    await workOnce(stage, takeWork(stage), due)
  }
}

const takeWork = ({ desk, limits }: Stage): readonly Work[] => {
  const taken: Work[] = []
  while (taken.length < limits.deskBatchMax) {
    const work = desk.queue.shift()
    if (!work) break
    taken.push(work)
  }
  return taken
}

/** Commits the work taken, trying for as long as Postgres is away: intake is held back meanwhile. */
const workOnce = async (stage: Stage, works: readonly Work[], due: boolean): Promise<void> => {
  const done = await commit(stage, works, due)
  stage.desk.waiting -= works.length
  stage.desk.bytes -= works.reduce((sum, work) => sum + bytesOf(work), 0)
  works.forEach((work, at) => {
    work.settled(done.kept[at] ?? false)
  })
  // A full claim says that there is more.
  if (done.claimed.length >= stage.limits.claimMax) stage.desk.claimAt = 0
  for (const partition of done.fenced) lose(stage, partition)
  unparkCancelled(stage, done.cancelled)
  arrive(stage, done.claimed)
  stage.room.ring()
}

type Done = {
  readonly kept: readonly boolean[]
  readonly cancelled: readonly ChainKey[]
  readonly claimed: readonly Claimed[]
  /** Whose epoch is no longer ours. */
  readonly fenced: readonly Partition[]
}

const nothingDone: Done = { kept: [], cancelled: [], claimed: [], fenced: [] }

const commit = async (stage: Stage, works: readonly Work[], due: boolean): Promise<Done> => {
  const { pool, logger } = stage.deps
  for (;;) {
    try {
      return await pool.transaction((tx) => apply(tx, stage, { works, due }))
    } catch (error) {
      if (isHopeless(error)) stage.fail(error)
      logger.error({ err: error, works: works.length }, 'desk.failed')
      // What is not committed stays unsettled in the log, or leased until its lease ends.
      if (performance.now() > stage.giveUpAt) return nothingDone
      await sleep(stage.limits.pauseMs)
    }
  }
}

/** The data or the statement is wrong: the same again would fail again. */
const isHopeless = (error: unknown): boolean => /^(22|23|42)/.test(sqlState(error) ?? '')

type Batch = { readonly works: readonly Work[]; readonly due: boolean }

const apply = async (tx: Connection, stage: Stage, batch: Batch): Promise<Done> => {
  const owned = ownedOf(batch.works)
  const held = await holdPartitions(tx, owned)
  const works = batch.works.filter(({ partition }) => held.has(placeOf(partition)))
  const at = stage.deps.clock()
  const leased = { owner: stage.owner, at }
  const tasks = works.map(({ task }) => task)
  const of = <T extends Task['type']>(type: T) =>
    tasks.filter((task): task is Extract<Task, { type: T }> => task.type === type)
  const [parks, backs] = [of('park'), of('back')]
  await saveVerdicts(tx, pluck(of('save'), 'verdict'))
  await insertParked(tx, pluck(parks, 'row'), at)
  await insertDead(tx, pluck(of('die'), 'row'), at)
  const gone = new Set([
    ...(await deleteDelivered(tx, pluck(of('delivered'), 'id'), leased)),
    ...(await buryParked(tx, pluck(of('bury'), 'burial'), leased)),
  ])
  await scheduleRetries(tx, pluck(of('retry'), 'retry'), leased)
  await giveBack(tx, pluck(backs, 'id'), stage.owner)
  const cancelled = await cancelGone(tx, stage, at)
  const overtaken = parks.filter(({ row, chain }) => row.nextAt !== null && chain.parked > 1)
  await demoteFollowers(tx, keysOf(overtaken))
  const touched = [...parks, ...of('delivered'), ...of('bury'), ...backs]
  const released = await releaseHeads(tx, [...keysOf(touched), ...cancelled], at)
  const claimed = batch.due || released > 0 ? await claim(tx, stage, at) : []
  const kept = batch.works.map(({ task, partition }) => {
    if (!held.has(placeOf(partition))) return false
    if (task.type === 'delivered') return gone.has(task.id)
    return task.type === 'bury' ? gone.has(task.burial.id) : true
  })
  const fenced = owned.filter((partition) => !held.has(placeOf(partition)))
  return { kept, cancelled, claimed, fenced }
}

/** The partitions of the works, without those known to be lost. */
const ownedOf = (works: readonly Work[]): readonly Partition[] =>
  [...new Set(works.map(({ partition }) => partition))].filter(({ lost }) => !lost)

const pluck = <T, K extends keyof T>(all: readonly T[], key: K): readonly T[K][] =>
  all.map((one) => one[key])

const keysOf = (tasks: readonly { readonly chain: Chain }[]): readonly ChainKey[] => {
  const keys = new Map<Chain, ChainKey>()
  for (const { chain } of tasks) keys.set(chain, chainKeyOf(chain))
  return [...keys.values()]
}
