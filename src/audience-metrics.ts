// Metrics of what the database keeps of audiences.
import { countLeftOut } from './audience/ties.ts'
import type { Metrics } from './metrics.ts'
import type { Sql } from './postgres/sql.ts'

export const addAudienceFigures = (metrics: Metrics, sql: Sql): void =>
  metrics.addFigure({
    name: 'millrace_account_ties_left_out',
    help: 'Group calls that would have tied a user to more accounts than one may have, in the database',
    read: () => countLeftOut(sql),
  })
