// How this process stands, for its metrics: counted over what is in memory, when somebody asks.
import { countAbove, type Standing, type UrlStanding, urlStandings } from './meter.ts'
import type { Stage } from './stage.ts'

export const readStanding = (stage: Stage): Standing => {
  const urls = Object.fromEntries(urlStandings.map((standing) => [standing, 0])) as Record<
    UrlStanding,
    number
  >
  let rampLimit = 0
  for (const { health } of stage.urls.entries.values()) {
    urls[health.state === 'ok' ? health.breaker : health.state] += 1
    if (health.state === 'ok' && health.breaker === 'ramp') rampLimit += Math.floor(health.limit)
  }
  // What was read is settled by the desk and recorded beside it: while Postgres does not take both, partitions wait.
  const since = stage.desk.failingSince ?? stage.saver.failingSince
  const away = since === null ? null : 'postgres'
  const held = [...stage.partitions.values()].filter(({ lost }) => !lost)
  const partitions = held.map(({ topic, partition, tracker, paused }) => ({
    name: `${topic}/${partition}`,
    uncommitted: tracker.span(),
    paused: paused ?? away,
  }))
  return { urls, rampLimit, lanes: stage.lanes.size, partitions }
}

export type LagSeen = { above: number; all: number }

/** First tries later than this, more than one in a hundred of a minute: receivers hear too late. */
const lagSeconds = 10
const lagShare = 0.01

export const watchLag = (stage: Stage, seen: LagSeen): void => {
  const { above, all } = countAbove(stage.meter.firstLag, lagSeconds)
  const isLate = above - seen.above > lagShare * (all - seen.all)
  seen.above = above
  seen.all = all
  if (isLate) stage.deps.alerts?.lagging(lagSeconds)
}
