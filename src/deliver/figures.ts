// Figures over all processes, read each minute by the one that holds the first partition: the ledger above all.
import { windowMs } from '../domain/retry.ts'
import type { Sql } from '../postgres/sql.ts'
import { loadLedger, sumLedger } from './ledger.ts'
import type { Figures } from './meter.ts'
import type { Stage } from './stage.ts'

/** With one owner of each partition, one process reads for all. */
const isReader = ({ partitions }: Stage): boolean => partitions.get('calls/0')?.lost === false

export const readFigures = async (stage: Stage): Promise<void> => {
  const { deps, meter } = stage
  if (!isReader(stage)) {
    meter.figures = null
    return
  }
  try {
    const figures = await loadFigures(deps.pool, deps.clock())
    meter.figures = figures
    if (figures.ledgerGap === 0) return
    deps.logger.error({ gap: figures.ledgerGap }, 'ledger.not_balanced')
    deps.alerts?.gapFound(figures.ledgerGap)
  } catch (error) {
    deps.logger.warn({ err: error }, 'figures.not_read')
  }
}

export const loadFigures = async (sql: Sql, at: Date): Promise<Figures> => {
  const gap = sumLedger(await loadLedger(sql)).gap
  const { rows } = await sql.query<{
    reason: string
    rows: number
    oldest: Date
    firstTry: Date | null
  }>(
    `select reason, count(*)::float8 as rows, min(parked_at) as oldest, min(first_try_at) as "firstTry"
       from parked group by reason`,
  )
  const { rows: xmin } = await sql.query<{ age: number | null }>(
    `select extract(epoch from $1::timestamptz - min(xact_start))::float8 as age from pg_stat_activity
      where backend_xmin is not null and backend_type = 'client backend' and pid <> pg_backend_pid()`,
    [at],
  )
  const oldest = earliest(rows.map((row) => row.oldest))
  const firstTry = earliest(rows.map((row) => row.firstTry))
  return {
    ledgerGap: Number(gap),
    parked: rows.map((row) => ({ reason: row.reason, rows: row.rows })),
    parkedOldestSeconds: oldest === null ? 0 : secondsBetween(oldest, at),
    headroomSeconds: firstTry === null ? null : windowMs / 1_000 - secondsBetween(firstTry, at),
    xminAgeSeconds: Math.max(0, xmin[0]?.age ?? 0),
  }
}

const earliest = (dates: readonly (Date | null)[]): Date | null =>
  dates.reduce((first, date) => (first === null || (date && date < first) ? date : first), null)

const secondsBetween = (from: Date, to: Date): number => (to.getTime() - from.getTime()) / 1_000
