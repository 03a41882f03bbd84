// The deliver stage: posts each call to the webhook destinations of its source, straight from the log.
import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Topic } from '../log/log.ts'
import { type Holding, holdMembership } from '../membership.ts'
import type { Running } from '../running.ts'
import { flushAttempts, openAttemptLog, pruneAttempts } from './attempts.ts'
import { openDesk } from './desk.ts'
import { runDesk } from './desk-loop.ts'
import { takeWaiting } from './lanes.ts'
import { deliverLimits } from './limits.ts'
import { putBack } from './park.ts'
import { gain } from './partition.ts'
import { writePositions } from './positions.ts'
import { openQueue } from './queue.ts'
import { openSignal } from './signal.ts'
import type { Chain, DeliverDeps, Stage } from './stage.ts'

export type { DeliverDeps } from './stage.ts'

export const startDeliver = (deps: DeliverDeps): Running => {
  const end = Promise.withResolvers<void>()
  const drained = Promise.withResolvers<void>()
  const stage = openStage(deps, {
    drained: drained.promise,
    fail: end.reject,
    fenced: (lease) => (lease.topic === 'calls.import' ? imports : live).fenced(lease),
  })
  // Imports are a membership of their own: holding them back must not hold back live calls.
  const live = join(stage, 'deliver', ['calls', 'outbound'])
  const imports = join(stage, 'deliver.import', ['calls.import'])
  const memberships = [live, imports]
  for (const { done } of memberships) done.catch(end.reject)
  const loops = startLoops(stage)
  let stopped: Promise<void> | null = null
  const stop = async () => {
    await drain(stage)
    await loops.stop()
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
  owner: randomUUID(),
  partitions: new Map(),
  lanes: new Map(),
  turn: openQueue(),
  desk: openDesk(),
  attempts: openAttemptLog(),
  room: openSignal(roomGatherMs),
  random: deps.random ?? Math.random,
  rounds: 0,
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
  const { positionEveryMs, attemptEveryMs } = stage.limits
  let ended = false
  const halt = new AbortController()
  const every = async (ms: number, work: () => Promise<void>) => {
    while (!ended) {
      await sleep(ms, undefined, { signal: halt.signal }).catch(() => undefined)
      await work()
    }
  }
  const write = () =>
    writePositions(stage).catch((error) => logger.error({ err: error }, 'positions.failed'))
  const attempts = async () => {
    await flushAttempts(stage)
    await pruneAttempts(stage)
  }
  const desk = runDesk(stage, () => ended)
  const loops = [every(positionEveryMs, write), every(attemptEveryMs, attempts)]
  for (const loop of [desk, ...loops]) loop.catch(stage.fail)
  return {
    stop: async () => {
      ended = true
      stage.desk.bell.ring()
      await desk
      halt.abort()
      await Promise.all(loops)
      await write()
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
