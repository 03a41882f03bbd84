// The deliver stage: posts each call to the webhook destinations of its source, straight from the log.
import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Topic } from '../log/log.ts'
import { type Holding, holdMembership } from '../membership.ts'
import type { Running } from '../running.ts'
import { flushAttempts, openAttemptLog, writeAttempts } from './attempts.ts'
import { openBreaths } from './breath.ts'
import { openDesk } from './desk.ts'
import { runDesk } from './desk-loop.ts'
import { readFigures } from './figures.ts'
import { keepHouse } from './housekeeping.ts'
import { offerPaced, pump, takeWaiting } from './lanes.ts'
import { deliverLimits } from './limits.ts'
import { openMeter } from './meter.ts'
import { putBack } from './park.ts'
import { gain } from './partition.ts'
import { logTold, writePositions } from './positions.ts'
import { openQueue } from './queue.ts'
import { openQuota, refreshQuota } from './quota.ts'
import { lookForRecoveries } from './recover.ts'
import { lookForReplays, openReplays } from './replays.ts'
import { startRound } from './round.ts'
import { openSaver } from './saver.ts'
import { openSignal } from './signal.ts'
import type { Chain, DeliverDeps, Stage } from './stage.ts'
import { readStanding, watchLag } from './standing.ts'
import { saveLast, tendUrls } from './url-loop.ts'
import { reportUrls } from './url-report.ts'
import { openUrls } from './urls.ts'

export type { DeliverDeps } from './stage.ts'

export const startDeliver = (deps: DeliverDeps): Running => {
  const end = Promise.withResolvers<void>()
  const drained = Promise.withResolvers<void>()
  const stage = openStage(deps, {
    drained: drained.promise,
    fail: end.reject,
    fenced: (lease) => membershipOf(lease.topic).fenced(lease),
  })
  // Imports and replays are memberships of their own: holding them back must not hold back live calls.
  const live = join(stage, 'deliver', ['calls', 'outbound'])
  const imports = join(stage, 'deliver.import', ['calls.import'])
  const replays = join(stage, 'deliver.replay', ['outbound.replay'])
  const membershipOf = (topic: Topic) =>
    topic === 'calls.import' ? imports : topic === 'outbound.replay' ? replays : live
  const memberships = [live, imports, replays]
  for (const { done } of memberships) done.catch(end.reject)
  const loops = startLoops(stage)
  stage.meter.standing = () => readStanding(stage)
  let stopped: Promise<void> | null = null
  const stop = async () => {
    await drain(stage)
    await loops.stop()
    stage.meter.standing = null
    stage.meter.figures = null
    drained.resolve()
    await Promise.all(memberships.map((membership) => membership.stop()))
    end.resolve()
  }
  end.promise.catch(() => undefined)
  return {
    stop: () => {
      stopped ??= stop()
      return stopped
    },
    done: end.promise,
  }
}

/** Room changes with every round; who waits for it need not hear of each. */
const roomGatherMs = 5

type Ends = Pick<Stage, 'drained' | 'fail' | 'fenced'>

const openStage = (deps: DeliverDeps, ends: Ends): Stage => ({
  deps,
  limits: { ...deliverLimits, ...deps.limits },
  meter: deps.meter ?? openMeter(),
  owner: randomUUID(),
  partitions: new Map(),
  lanes: new Map(),
  turn: openQueue(),
  paced: new Set(),
  starved: { firsts: new Set(), retries: new Set() },
  urls: openUrls(),
  desk: openDesk(),
  saver: openSaver(),
  breaths: openBreaths(),
  attempts: openAttemptLog(),
  quota: openQuota(),
  replays: openReplays(),
  hours: new Set(),
  days: new Set(),
  room: openSignal(roomGatherMs),
  random: deps.random ?? Math.random,
  rounds: 0,
  retries: 0,
  waiting: 0,
  waitingLive: 0,
  bytes: 0,
  parkedChains: 0,
  stopping: false,
  giveUpAt: Number.POSITIVE_INFINITY,
  ...ends,
})

const join = (stage: Stage, name: string, topics: readonly Topic[]): Holding =>
  holdMembership(() =>
    stage.deps.source.join({ name, topics, bytesMax: stage.limits.fetchBytesMax }, (lease) =>
      gain(stage, lease),
    ),
  )

type Loops = { stop(): Promise<void> }

const startLoops = (stage: Stage): Loops => {
  const { logger } = stage.deps
  const { positionEveryMs, urlEveryMs, paceEveryMs, recoverEveryMs, reportEveryMs } = stage.limits
  const { quotaEveryMs, houseEveryMs, figuresEveryMs } = stage.limits
  let ended = false
  const halt = new AbortController()
  const every = async (ms: number, work: () => Promise<void>, pauseMsMin = ms) => {
    let tookMs = 0
    while (!ended) {
      const pauseMs = Math.max(pauseMsMin, ms - tookMs)
      await sleep(pauseMs, undefined, { signal: halt.signal }).catch(() => undefined)
      const began = performance.now()
      await work()
      tookMs = performance.now() - began
    }
  }
  const write = () =>
    writePositions(stage).catch((error) => logger.error({ err: error }, 'positions.failed'))
  const house = keepHouse(stage)
  const pace = async () => {
    if (stage.paced.size === 0) return
    offerPaced(stage)
    pump(stage, (delivery) => startRound(stage, delivery))
  }
  const desk = runDesk(stage, () => ended)
  const report = { told: false }
  const lag = { above: 0, all: 0 }
  const turn = { notBefore: 0 }
  const figures = async () => {
    watchLag(stage, lag)
    await readFigures(stage, turn)
  }
  const loops = [
    writeAttempts(stage, halt.signal),
    // What waits for a position is sent again after a crash: it does not wait longer because one took long.
    every(positionEveryMs, write, positionEveryMs / 5),
    every(quotaEveryMs, () => refreshQuota(stage)),
    every(houseEveryMs, () => keepHouse(stage)),
    every(urlEveryMs, () => tendUrls(stage)),
    every(paceEveryMs, pace),
    every(recoverEveryMs, () => lookForRecoveries(stage)),
    every(recoverEveryMs, () => lookForReplays(stage)),
    every(reportEveryMs, () => reportUrls(stage, report)),
    every(figuresEveryMs, figures),
  ]
  for (const loop of [desk, ...loops]) loop.catch(stage.fail)
  return {
    stop: async () => {
      ended = true
      stage.desk.bell.ring()
      await Promise.all([desk, stage.saver.writing])
      halt.abort()
      await Promise.all([house, ...loops])
      await saveLast(stage)
      await write()
      await logTold(stage)
      await flushAttempts(stage)
    },
  }
}

/** No new rounds; those in flight end; what was claimed goes back. What waits stays in the log, unsettled. */
const drain = async (stage: Stage): Promise<void> => {
  stage.stopping = true
  const until = performance.now() + stage.limits.drainMs
  stage.giveUpAt = until
  stage.room.ring()
  while (stage.rounds > 0 && performance.now() < until) await stage.room.wait(50)
  for (const partition of stage.partitions.values())
    for (const chains of [...partition.chains.values()])
      for (const chain of [...chains.values()]) putBackClaimed(stage, chain)
}

const putBackClaimed = (stage: Stage, chain: Chain): void => {
  for (const delivery of takeWaiting(stage, chain)) if (delivery.row) putBack(stage, delivery)
}
