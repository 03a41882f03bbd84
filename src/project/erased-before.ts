// Calls of the log that a back-fill must not give to whoever came back under an id that was erased after them.
import type { Identity } from '../domain/identity.ts'
import type { Suppressions } from '../domain/suppression.ts'
import type { Topic } from '../log/log.ts'
import type { Sql } from '../postgres/sql.ts'

type Place = { readonly topic: Topic; readonly partition: number; readonly from: bigint }

/**
 * By the identity's text, how far the projector had come in the partition when it erased the profile last: calls
 * below were of a profile that is no more. Asked for with the users locked: who is erased later loses what is
 * folded now. Index deletion_subject_hash.
 */
export const erasedBefore = async (
  tx: Sql,
  { topic, partition, from }: Place,
  { suppressions, subjects }: Asked,
): Promise<ReadonlyMap<string, bigint>> => {
  const hashed = subjects.flatMap(({ text, workspaceId, kind, value }) => {
    const hash = suppressions.hashOfForgotten?.(workspaceId, kind, value) ?? null
    return hash === null ? [] : [{ text, hash }]
  })
  if (hashed.length === 0) return new Map()
  const { rows } = await tx.query<{ at: number; offset: bigint }>(
    `select h.at::int as at, max((s.passed ->> $2)::bigint) as offset
       from unnest($1::bytea[]) with ordinality as h(hash, at)
       join deletion_subject s on s.hash = h.hash and (s.passed ->> $2)::bigint > $3
      group by h.at`,
    [hashed.map(({ hash }) => hash), `${topic}/${partition}`, from],
  )
  return new Map(rows.map(({ at, offset }) => [(hashed[at - 1] as { text: string }).text, offset]))
}

type Asked = { readonly suppressions: Suppressions; readonly subjects: readonly Identity[] }
