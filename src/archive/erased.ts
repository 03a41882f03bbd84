// The erasures as they stand in Postgres: hashes of ids, and before when what was sent of each is to go.
import { hash } from 'node:crypto'
import { sipKeyOf } from '../domain/siphash.ts'
import {
  hashBytes,
  judgeOf,
  openSuppressedSet,
  type SuppressedSet,
} from '../domain/suppressed-set.ts'
import type { Sql } from '../postgres/sql.ts'
import type { Erasures } from './erasures.ts'

const rowsAtOnce = 10_000

export const erasures: Erasures = {
  newest: async (sql) => {
    const { rows } = await sql.query<{ version: bigint | null }>(
      'select max(version) as version from suppression where deleted_before is not null',
    )
    return rows[0]?.version ?? 0n
  },
  load: async (sql, after) => {
    const { rows } = await sql.query<{ key: string }>('select key from suppression_key')
    const key = sipKeyOf(hash('sha256', rows[0]?.key ?? '', 'buffer'))
    const { set, upTo } = await loadSet(sql, after)
    return { upTo, isErased: judgeOf(set, key) }
  },
}

type Row = { readonly hash: Buffer; readonly deletedBefore: Date; readonly version: bigint }

/** By suppression_since, in pages: there may be millions. */
const loadSet = async (
  sql: Sql,
  after: bigint,
): Promise<{ readonly set: SuppressedSet; readonly upTo: bigint }> => {
  const set = openSuppressedSet()
  let upTo = after
  let last: Uint8Array = Buffer.alloc(hashBytes, 0xff)
  for (;;) {
    const { rows } = await sql.query<Row>(
      `select hash, deleted_before as "deletedBefore", version from suppression
        where version >= $1 and (version, hash) > ($1, $2) and deleted_before is not null
        order by version, hash limit $3`,
      [upTo, last, rowsAtOnce],
    )
    for (const row of rows) {
      set.put(row.hash, row.deletedBefore.getTime())
      upTo = row.version
      last = row.hash
    }
    if (rows.length < rowsAtOnce) return { set, upTo }
  }
}
