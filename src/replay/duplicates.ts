// Which of the calls found repeat an earlier one: what the live readers dropped, a replay does not send either.

import { restOf, type Span } from '../domain/replay-span.ts'
import { type Duplicates, openDuplicates, type Verdict } from '../duplicate/duplicates.ts'
import { deleteHoursBefore } from '../duplicate/store.ts'
import type { Sql } from '../postgres/sql.ts'
import type { ReplayDeps } from './deps.ts'
import type { Slice } from './read.ts'

const readerOf = (id: number): string => `replay:${id}`

type Judged = { readonly id: number; readonly spans: readonly Span[] }

export type Judges = { judge(slice: Slice): Promise<Verdict> }

/** One partition after the other: only the last one's are held in memory. */
export const openJudges = (
  { pool, limits }: Pick<ReplayDeps, 'pool' | 'limits'>,
  { id, spans }: Judged,
): Judges => {
  let at: { readonly before: number; readonly duplicates: Promise<Duplicates> } | null = null
  const open = ({ topic, partition }: Slice['span']) => {
    const storedNext = (sql: Sql) => findNext(sql, { id, spans, topic, partition })
    const { duplicateBytesMax: bytesMax } = limits
    const key = { reader: readerOf(id), topic, partition }
    return openDuplicates({ sql: pool, ...key, bytesMax, storedNext })
  }
  return {
    judge: async ({ span, found }) => {
      if (at?.before !== span.before) at = { before: span.before, duplicates: open(span) }
      const duplicates = await at.duplicates
      return duplicates.judge(
        found.map(({ offset, message: { digest, receivedAt } }) => ({
          offset: BigInt(offset),
          digest,
          receivedAt,
        })),
      )
    },
  }
}

type Place = Judged & Pick<Span, 'topic' | 'partition'>

/** Where this partition would be read from again now. */
const findNext = async (
  sql: Sql,
  { id, spans, topic, partition }: Place,
): Promise<bigint | null> => {
  const { rows } = await sql.query<{ read: number }>(
    'select read::float8 as read from replay where id = $1',
    [id],
  )
  const [row] = rows
  if (!row) return null
  const span = restOf(spans, row.read).find(
    (rest) => rest.topic === topic && rest.partition === partition,
  )
  return span ? BigInt(span.from) : null
}

const lastHour = 2_147_483_647

export const forgetDuplicates = async (sql: Sql, { id, spans }: Judged): Promise<void> => {
  for (const { topic, partition } of spans)
    await deleteHoursBefore(sql, { reader: readerOf(id), topic, partition }, lastHour)
}
