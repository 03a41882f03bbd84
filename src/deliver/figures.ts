// Figures over all processes, read each minute by the one that holds the first partition: the ledger above all.
import { windowMs } from '../domain/retry.ts'
import type { Pool, Sql } from '../postgres/sql.ts'
import { loadLedger, sumLedger } from './ledger.ts'
import { countHeld } from './ledger-store.ts'
import type { Figures } from './meter.ts'
import type { Stage } from './stage.ts'

/** With one owner of each partition, one process reads for all. */
const isReader = ({ partitions }: Stage): boolean => partitions.get('calls/0')?.lost === false

/** Until when the rows parked are not counted again, in real time. */
export type FiguresTurn = { notBefore: number }

/** Counting them takes no more than this share of the time: of a million parked it is every few minutes. */
const countShareMax = 0.02

export const readFigures = async (stage: Stage, turn: FiguresTurn): Promise<void> => {
  const { deps, meter } = stage
  if (!isReader(stage)) {
    meter.figures = null
    return
  }
  try {
    const at = deps.clock()
    const xminAgeSeconds = await loadXminAge(deps.pool, at)
    const began = performance.now()
    if (meter.figures && began < turn.notBefore) {
      meter.figures = { ...meter.figures, xminAgeSeconds }
      return
    }
    const counted = await loadCounted(deps.pool, at)
    turn.notBefore = began + (performance.now() - began) / countShareMax
    meter.figures = { ...counted, xminAgeSeconds }
    if (counted.ledgerGap === 0) return
    deps.logger.error({ gap: counted.ledgerGap }, 'ledger.not_balanced')
    deps.alerts?.gapFound(counted.ledgerGap)
  } catch (error) {
    deps.logger.warn({ err: error }, 'figures.not_read')
  }
}

type Counted = Omit<Figures, 'xminAgeSeconds'>

/** The rows parked are read once, for the ledger and for all else, in one snapshot. */
export const loadCounted = async (pool: Pool, at: Date): Promise<Counted> => {
  const { held, lines } = await pool.transaction(
    async (tx) => {
      const all = await countHeld(tx)
      return { held: all, lines: await loadLedger(tx, all) }
    },
    { isolation: 'repeatable read' },
  )
  const reasons = new Map<string, number>()
  for (const { reason, rows } of held) reasons.set(reason, (reasons.get(reason) ?? 0) + rows)
  const oldest = earliest(held.map((one) => one.oldest))
  const firstTry = earliest(held.map((one) => one.firstTry))
  return {
    ledgerGap: Number(sumLedger(lines).gap),
    parked: [...reasons].map(([reason, rows]) => ({ reason, rows })),
    parkedOldestSeconds: oldest === null ? 0 : secondsBetween(oldest, at),
    headroomSeconds: firstTry === null ? null : windowMs / 1_000 - secondsBetween(firstTry, at),
  }
}

const loadXminAge = async (sql: Sql, at: Date): Promise<number> => {
  const { rows } = await sql.query<{ age: number | null }>(
    `select extract(epoch from $1::timestamptz - min(xact_start))::float8 as age from pg_stat_activity
      where backend_xmin is not null and backend_type = 'client backend' and pid <> pg_backend_pid()`,
    [at],
  )
  return Math.max(0, rows[0]?.age ?? 0)
}

const earliest = (dates: readonly (Date | null)[]): Date | null =>
  dates.reduce((first, date) => (first === null || (date && date < first) ? date : first), null)

const secondsBetween = (from: Date, to: Date): number => (to.getTime() - from.getTime()) / 1_000
