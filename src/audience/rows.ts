// Many users in one value of a result: the driver's work for each row and column is most of a read's cost.
import { bitsOfHigh, epochMs, microsOf, rowsOf } from '../postgres/binary-copy.ts'
import type { Connection } from '../postgres/sql.ts'
import { unpackText } from './pack.ts'
import type { UserState } from './state.ts'

/** Users in one value; a value must stay far below what a string can hold. */
export const usersInValue = 256

/** One user `u` of ustate as bytes, to be gathered by string_agg. */
export const packedUser = `int8send(u.user_key) || int8send(u.ver) || int4send(u.workspace_id)
  || coalesce(timestamptz_send(u.due), '\\x8000000000000000'::bytea)
  || case when u.merged_into is null then '\\x30'::bytea else '\\x31'::bytea end
  || int4send(coalesce(octet_length(u.user_id), -1)) || coalesce(textsend(u.user_id), ''::bytea)
  || int4send(octet_length(u.st)) || u.st`

export type PackedRow = {
  readonly key: number
  /** `null` for a tombstone. */
  readonly user: UserState | null
}

const noDueHigh = -(2 ** 31)
const digitZero = 0x30
const digitOne = 0x31
/** Up to the user id, whose length stands last. */
const fixedBytes = 33

/** A user's bytes, wherever they stand: these read and write them from `at` on. */
export const packedRow = {
  key: (from: Buffer, at: number): number => int8(from, at),
  end: (from: Buffer, at: number): number => {
    const idEnd = at + fixedBytes + Math.max(0, from.readInt32BE(at + 29))
    return idEnd + 4 + from.readInt32BE(idEnd)
  },
  /** `null` for a tombstone. */
  user: (from: Buffer, at: number): UserState | null => {
    if (from[at + 28] === digitOne) return null
    const idLength = from.readInt32BE(at + 29)
    const idStart = at + fixedBytes
    const idEnd = idStart + Math.max(0, idLength)
    const start = idEnd + 4
    const row = {
      key: int8(from, at),
      ver: int8(from, at + 8),
      workspaceId: from.readInt32BE(at + 16),
      due: dueAt(from, at + 20),
      userId: idLength < 0 ? null : from.toString('utf8', idStart, idEnd),
    }
    return unpackText(row, from.toString('latin1', start, start + from.readInt32BE(idEnd)))
  },
  bytes: ({ userId, packed }: UserState): number =>
    fixedBytes + (userId === null ? 0 : Buffer.byteLength(userId)) + 4 + packed.length,
  /** As packed: nothing may have changed since. */
  put: (to: Buffer, user: UserState, start: number): void => {
    let at = writeInt8(to, user.key, start)
    at = writeInt8(to, user.ver, at)
    at = to.writeInt32BE(user.workspaceId, at)
    at = Number.isFinite(user.due)
      ? writeInt8(to, microsOf(user.due), at)
      : to.writeInt32BE(0, to.writeInt32BE(noDueHigh, at))
    to[at] = digitZero
    const idStart = at + 5
    const idLength = user.userId === null ? 0 : to.write(user.userId, idStart)
    to.writeInt32BE(user.userId === null ? -1 : idLength, at + 1)
    at = to.writeInt32BE(user.packed.length, idStart + idLength)
    to.write(user.packed, at, 'latin1')
  },
}

const dueAt = (from: Buffer, at: number): number =>
  from.readInt32BE(at) === noDueHigh ? Number.POSITIVE_INFINITY : int8(from, at) / 1_000 + epochMs

const int8 = (from: Buffer, at: number): number =>
  from.readInt32BE(at) * bitsOfHigh + from.readUInt32BE(at + 4)

const writeInt8 = (to: Buffer, value: number, at: number): number => {
  const high = Math.floor(value / bitsOfHigh)
  return to.writeUInt32BE(value - high * bitsOfHigh, to.writeInt32BE(high, at))
}

export const readRows = (value: Buffer): readonly PackedRow[] => {
  const rows: PackedRow[] = []
  for (let at = 0; at < value.length; at = packedRow.end(value, at))
    rows.push({ key: packedRow.key(value, at), user: packedRow.user(value, at) })
  return rows
}

/**
 * Many users in each value, without a lock: whoever writes them finds by `ver` whether they still are as read.
 * As COPY gives them: in an answer each byte would come as two digits.
 */
export const readPacked = async (
  tx: Connection,
  keys: readonly number[],
): Promise<readonly Buffer[]> => {
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
  return rowsOf(messages).map(([users]) => users as Buffer)
}

export const readUsers = async (tx: Connection, keys: readonly number[]): Promise<UserState[]> =>
  (await readPacked(tx, keys)).flatMap((users) => readRows(users).flatMap(({ user }) => user ?? []))
