// Which of the calls found are dead at the destination for the reasons asked for: what delivery wrote down says so.
//
// A call that went out in an earlier replay and died there is dead in topic `outbound.replay`, with its own message
// id: it is found by that, so that the same replay made again takes up what the first one could not bring home.
import type { Selection } from '../domain/replay.ts'
import type { Span } from '../domain/replay-span.ts'
import type { Sql } from '../postgres/sql.ts'
import type { Decided } from './decide.ts'
import type { Found, Sift } from './read.ts'

export type Dying = {
  readonly destinationId: number
  readonly reasons: ReadonlySet<string>
  /** What dies later is not meant: a replay is not to take up what it sent itself. */
  readonly until: Date
}

type Asking = {
  readonly selection: Pick<Selection, 'reasons'>
  readonly destinationId: number
  readonly createdAt: Date
}

/** `null`: whether a call is dead does not matter. */
export const dyingOf = ({ selection, destinationId, createdAt }: Asking): Dying | null =>
  selection.reasons && { destinationId, reasons: selection.reasons, until: createdAt }

const isMeant = `d.destination_id = $1 and d.replayed_at is null and d.reason = any($2::text[]) and d.dead_at <= $3`

const valuesOf = ({ destinationId, reasons, until }: Dying) => [destinationId, [...reasons], until]

/** Index dead's key on topic, partition, offset and destination, and dead_message. */
export const siftDead =
  (sql: Sql, dying: Dying): Sift =>
  async ({ topic, partition }, found) => {
    if (found.length === 0) return found
    const { rows } = await sql.query<{ at: number; id: bigint }>(
      `with call as (
         select at::int, log_offset, message_id
           from unnest($6::bigint[], $7::text[]) with ordinality as c(log_offset, message_id, at)
       )
       select c.at, d.id from call c join dead d on d.topic = $4 and d.partition = $5
          and d.log_offset = c.log_offset and ${isMeant}
        union all
       select c.at, d.id from call c join dead d on d.message_id = c.message_id
          and d.topic = 'outbound.replay' and ${isMeant}`,
      [
        ...valuesOf(dying),
        topic,
        partition,
        found.map(({ offset }) => offset),
        found.map(({ message }) => message.messageId),
      ],
    )
    const ids = Map.groupBy(rows, ({ at }) => at - 1)
    return found.flatMap((one, at): readonly Found[] => {
      const dead = ids.get(at)?.map(({ id }) => id)
      return dead ? [{ ...one, dead }] : []
    })
  }

/** Found long before their turn, perhaps: whom a recovery has sent again meanwhile is not sent twice. */
export const stillDead = async (
  sift: Sift,
  span: Pick<Span, 'topic' | 'partition'>,
  due: readonly Decided[],
): Promise<readonly Decided[]> => {
  const sendable = due.filter(({ body }) => body !== null)
  const dead = new Set((await sift(span, sendable)).map(({ offset }) => offset))
  return due.map((one) =>
    one.body === null || dead.has(one.offset) ? one : { ...one, body: null, why: 'duplicate' },
  )
}

/** Without what lies before the first and behind the last of them. Index dead_open. */
export const narrowToDead = async (
  sql: Sql,
  spans: readonly Span[],
  dying: Dying,
): Promise<readonly Span[]> => {
  const { rows } = await sql.query<{ place: string; first: number; last: number }>(
    `select d.topic || '/' || d.partition as place, min(d.log_offset)::float8 as first,
            max(d.log_offset)::float8 as last
       from dead d where ${isMeant} group by d.topic, d.partition`,
    valuesOf(dying),
  )
  // Where those of earlier replays lie in the topics of calls is not written down.
  if (rows.some(({ place }) => place.startsWith('outbound.replay/'))) return spans
  const ends = new Map(rows.map(({ place, ...end }) => [place, end]))
  return spans.flatMap((span): readonly Span[] => {
    const end = ends.get(`${span.topic}/${span.partition}`)
    if (end === undefined) return []
    const from = Math.max(span.from, end.first)
    const until = Math.min(span.until, end.last + 1)
    return from < until ? [{ ...span, from, until }] : []
  })
}

/** In the transaction that says they were sent: nobody offers them again. */
export const markSentAgain = async (
  tx: Sql,
  { ids, at }: { readonly ids: readonly bigint[]; readonly at: Date },
): Promise<void> => {
  await tx.query(
    `with taken as (
       select id, recovery_id from dead where id = any($1::bigint[]) and replayed_at is null for update
     ), passed as (
       update recovery r set passed_on = r.passed_on + t.amount
         from (select recovery_id, count(*) as amount from taken group by recovery_id) t
        where r.id = t.recovery_id
     )
     update dead set replayed_at = $2, recovery_id = null from taken where dead.id = taken.id`,
    [ids, at],
  )
}
