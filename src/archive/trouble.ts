// What goes wrong in a partition of the archive: logged, counted, and kept where operators look.
import type { Sql } from '../postgres/sql.ts'
import type { Partition } from './manifest.ts'
import type { Lane, Stage } from './stage.ts'

const lengthMax = 500

export const noteTrouble = async (stage: Stage, lane: Lane, error: unknown): Promise<void> => {
  const { deps, meter } = stage
  const { topic, partition } = lane
  const at = deps.clock()
  meter.failures += 1
  meter.failingSince ??= at.getTime()
  deps.logger.warn({ topic, partition, err: error }, 'archive.failed')
  const text = (error instanceof Error ? error.message : String(error)).slice(0, lengthMax)
  // With the database away the log has to do.
  await deps.pool
    .query(
      `insert into archive_partition (topic, partition, log_start, log_end, seen_at, trouble, trouble_at)
       values ($1, $2, 0, 0, $3, $4, $3)
       on conflict (topic, partition) do update
         set trouble = excluded.trouble, trouble_at = excluded.trouble_at`,
      [topic, partition, at, text],
    )
    .catch(() => undefined)
}

export const settleTrouble = async (tx: Sql, { topic, partition }: Partition): Promise<void> => {
  await tx.query(
    `update archive_partition set trouble = null, trouble_at = null
      where topic = $1 and partition = $2 and trouble is not null`,
    [topic, partition],
  )
}
