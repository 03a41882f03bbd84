// Many users in one value of a result: the driver's work for each row and column is most of a read's cost.
import { rowsOf } from '../postgres/binary-copy.ts'
import type { Connection } from '../postgres/sql.ts'
import { unpackText } from './pack.ts'
import type { UserState } from './state.ts'

/** Users in one value; a value must stay far below what a string can hold. */
export const usersInValue = 256

/** One user `u` of ustate as bytes, to be gathered by string_agg. */
export const packedUser = `int8send(u.user_key) || int8send(u.ver) || int4send(u.workspace_id)
  || coalesce(timestamptz_send(u.due), '\\x8000000000000000'::bytea)
  || (u.merged_into is not null)::int::text::bytea
  || int4send(coalesce(octet_length(u.user_id), -1)) || coalesce(textsend(u.user_id), ''::bytea)
  || int4send(octet_length(u.st)) || u.st`

export type PackedRow = {
  readonly key: number
  /** `null` for a tombstone. */
  readonly user: UserState | null
}

/** Postgres counts microseconds from the year 2000. */
const epochMs = Date.UTC(2000, 0, 1)
const noDue = -(2 ** 31)
const digitOne = 0x31

export const readRows = (value: Buffer): readonly PackedRow[] => {
  const rows: PackedRow[] = []
  for (let at = 0; at < value.length; ) {
    const key = int8(value, at)
    const ver = int8(value, at + 8)
    const workspaceId = value.readInt32BE(at + 16)
    const due =
      value.readInt32BE(at + 20) === noDue
        ? Number.POSITIVE_INFINITY
        : int8(value, at + 20) / 1_000 + epochMs
    const isTombstone = value[at + 28] === digitOne
    const userIdLength = value.readInt32BE(at + 29)
    at += 33
    const userId = userIdLength < 0 ? null : value.toString('utf8', at, at + userIdLength)
    at += Math.max(0, userIdLength)
    const length = value.readInt32BE(at)
    at += 4
    const row = { key, workspaceId, ver, userId, due }
    const user = isTombstone ? null : unpackText(row, value.toString('latin1', at, at + length))
    at += length
    rows.push({ key, user })
  }
  return rows
}

const int8 = (bytes: Buffer, at: number): number =>
  bytes.readInt32BE(at) * 0x1_0000_0000 + bytes.readUInt32BE(at + 4)

/**
 * Without a lock, ahead of a transaction that will find by `ver` whether they still are as read. As COPY gives
 * them: in an answer each byte would come as two digits.
 */
export const readUsers = async (tx: Connection, keys: readonly number[]): Promise<UserState[]> => {
  if (keys.length === 0) return []
  // Neighbours share pages of the index.
  const ordered = Float64Array.from(keys).sort()
  const messages = await tx.copyOut(
    `copy (
       select string_agg(${packedUser}, ''::bytea)
         from unnest('{${ordered.join(',')}}'::bigint[]) with ordinality as w(user_key, at)
         join ustate u on u.user_key = w.user_key
        where u.merged_into is null group by at / ${usersInValue}
     ) to stdout (format binary)`,
  )
  return rowsOf(messages).flatMap(([users]) =>
    readRows(users as Buffer).flatMap(({ user }) => user ?? []),
  )
}
