// How the archive stands: its lag behind the log's end, and how far it is ahead of the log's start.
import { countSegments } from './manifest.ts'
import type { Standing } from './meter.ts'
import type { Stage } from './stage.ts'

/** Kept in the database too: only processes with this role look, and operators ask any of them. */
export const readFigures = async (stage: Stage): Promise<void> => {
  const { deps, meter } = stage
  try {
    const standing: Standing[] = []
    const seen: { topic: string; partition: number; start: bigint; end: bigint }[] = []
    for (const topic of deps.topics) {
      const bounds = await deps.source.bounds(topic)
      for (const lane of stage.lanes.values()) {
        const bound = bounds[lane.partition]
        if (lane.topic !== topic || lane.over.aborted || bound === undefined) continue
        const { partition, next } = lane
        const headroom = Number(next - bound.start)
        standing.push({ topic, partition, lag: Number(bound.end - next), headroom })
        seen.push({ topic, partition, ...bound })
      }
    }
    await saveSeen(stage, seen)
    const counted = await countSegments(deps.pool)
    meter.standing = standing
    meter.segments = counted.reduce((sum, { segments }) => sum + segments, 0)
    meter.bytes = counted.reduce((sum, { bytes }) => sum + bytes, 0)
  } catch (error) {
    if (!stage.stopping.aborted) deps.logger.warn({ err: error }, 'archive.not_measured')
  }
}

type Seen = {
  readonly topic: string
  readonly partition: number
  readonly start: bigint
  readonly end: bigint
}

const saveSeen = async ({ deps }: Stage, seen: readonly Seen[]): Promise<void> => {
  if (seen.length === 0) return
  await deps.pool.query(
    `insert into archive_partition (topic, partition, log_start, log_end, seen_at)
     select topic, partition, log_start, log_end, $5
       from unnest($1::text[], $2::int[], $3::bigint[], $4::bigint[])
         as s(topic, partition, log_start, log_end)
      order by topic, partition
     on conflict (topic, partition) do update
       set log_start = excluded.log_start, log_end = excluded.log_end, seen_at = excluded.seen_at`,
    [
      seen.map(({ topic }) => topic),
      seen.map(({ partition }) => partition),
      seen.map(({ start }) => start),
      seen.map(({ end }) => end),
      deps.clock(),
    ],
  )
}
