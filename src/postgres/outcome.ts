// What became of a transaction whose answer was lost: Postgres knows, so nobody has to guess.
import { type Sql, sqlState } from './sql.ts'

/** Names the transaction, to be asked for in its last statement; `null`: it has written nothing. */
export const nameTransaction = async (tx: Sql): Promise<string | null> => {
  const { rows } = await tx.query<{ name: string | null }>(
    'select pg_current_xact_id_if_assigned()::text as name',
  )
  return rows[0]?.name ?? null
}

export type Outcome = 'committed' | 'aborted' | 'in progress'

/** Numbers beyond the last one given: a standby took over that never heard of the transaction. */
const notYetGiven = '22023'

/** To be asked within days: Postgres forgets the oldest. */
export const outcomeOf = async (sql: Sql, name: string): Promise<Outcome> => {
  try {
    const { rows } = await sql.query<{ outcome: Outcome | null }>(
      'select pg_xact_status($1::xid8) as outcome',
      [name],
    )
    return rows[0]?.outcome ?? 'aborted'
  } catch (error) {
    if (sqlState(error) === notYetGiven) return 'aborted'
    throw error
  }
}
