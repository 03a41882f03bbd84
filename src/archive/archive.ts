// The archive stage: follows the topics as a group of its own and keeps them as compressed segments.
import { setTimeout as sleep } from 'node:timers/promises'
import { holdMembership } from '../membership.ts'
import type { Running } from '../running.ts'
import { readFigures } from './figures.ts'
import { keepArchive } from './keep.ts'
import { gainLane } from './lane.ts'
import { type ArchiveLimits, archiveLimits } from './limits.ts'
import { openArchiveMeter } from './meter.ts'
import type { ArchiveDeps, Lane, Stage } from './stage.ts'
import { rollSegment } from './write.ts'

export const startArchive = (deps: ArchiveDeps): Running => {
  const stopping = new AbortController()
  const limits = { ...archiveLimits, ...deps.limits }
  const { promise: died, reject: die } = Promise.withResolvers<never>()
  died.catch(() => undefined)
  const stage: Stage = {
    deps,
    limits,
    meter: deps.meter ?? openArchiveMeter(),
    lanes: new Map(),
    stopping: stopping.signal,
    fenced: (lease) => membership.fenced(lease),
  }
  const group = { name: 'archive', topics: deps.topics, bytesMax: limits.fetchBytesMax }
  const membership = holdMembership(() =>
    deps.source.join(group, (lease) => gainLane(stage, lease)),
  )
  const loops = Promise.all([
    every(stage, limits.tickMs, () => rollDue(stage)),
    every(stage, limits.figuresMs, () => readFigures(stage)),
    keepArchive(stage),
  ])
  for (const part of [membership.done, loops]) part.catch(die)
  const stop = async () => {
    stopping.abort()
    await Promise.all([membership.stop(), loops])
  }
  let stopped: Promise<void> | null = null
  return {
    stop: () => {
      stopped ??= stop()
      return stopped
    },
    done: Promise.race([died, membership.done]),
  }
}

/** `work` must not reject: what it cannot do now it does later. */
const every = async ({ stopping }: Stage, ms: number, work: () => Promise<void>): Promise<void> => {
  while (!stopping.aborted) {
    await work()
    await sleep(ms, undefined, { signal: stopping }).catch(() => undefined)
  }
}

const rollDue = async (stage: Stage): Promise<void> => {
  const now = stage.deps.clock().getTime()
  const due = [...stage.lanes.values()].filter((lane) => isDue(lane, now, stage.limits))
  await Promise.all(
    due.map((lane) =>
      lane.turn(async () => {
        if (isDue(lane, now, stage.limits)) await rollSegment(stage, lane)
      }),
    ),
  )
}

/** In a log that is being caught up with every entry is old: only what stays alone is written for its age. */
const isDue = ({ segment, fedAt, over }: Lane, now: number, limits: ArchiveLimits): boolean => {
  if (segment === null || over.aborted) return false
  const { segmentMsMax, idleMs } = limits
  if (now - segment.openedAt >= segmentMsMax) return true
  const oldest = segment.summary.receivedFrom ?? now
  return now - oldest >= segmentMsMax && performance.now() - fedAt >= idleMs
}
