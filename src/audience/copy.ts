// Rows of ustate and membership in the binary format of COPY, which Postgres takes several times faster than arrays.
import {
  copyOf,
  microsOf,
  putBoolean,
  putInt2,
  putInt4,
  putInt8,
  putNull,
  putNullableText,
  type RowForm,
} from '../postgres/binary-copy.ts'

export type UserRow = {
  readonly key: number
  readonly shard: number
  readonly workspaceId: number
  readonly ver: number
  readonly userId: string | null
  /** A string of bytes. */
  readonly st: string
  /** Epoch ms; `Infinity` is null. */
  readonly due: number
  readonly mergedInto: number | null
}

const lengthBytes = 4

const userForm: RowForm<UserRow> = {
  fields: 8,
  most: ({ userId, st }) => 8 * lengthBytes + 38 + (userId?.length ?? 0) * 3 + st.length,
  write: (to, row, start) => {
    let at = putInt8(to, row.key, start)
    at = putInt2(to, row.shard, at)
    at = putInt4(to, row.workspaceId, at)
    at = putInt8(to, row.ver, at)
    at = putNullableText(to, row.userId, at)
    at = to.writeInt32BE(row.st.length, at)
    at += to.write(row.st, at, 'latin1')
    at = Number.isFinite(row.due) ? putInt8(to, microsOf(row.due), at) : putNull(to, at)
    return row.mergedInto === null ? putNull(to, at) : putInt8(to, row.mergedInto, at)
  },
}

export const copyRows = (rows: Iterable<UserRow>): Generator<Buffer> => copyOf(rows, userForm)

/** Of somebody who enters. */
export type MemberRow = {
  readonly audienceId: number
  readonly shard: number
  readonly userKey: number
  readonly userId: string | null
  readonly value: string | null
  /** Epoch ms. */
  readonly enteredAt: number
}

/** `audience_id, shard, user_key, user_id, value, cur, synced, entered_at` */
const memberForm: RowForm<MemberRow> = {
  fields: 8,
  most: ({ userId, value }) =>
    8 * lengthBytes + 24 + ((userId?.length ?? 0) + (value?.length ?? 0)) * 3,
  write: (to, row, start) => {
    let at = putInt4(to, row.audienceId, start)
    at = putInt2(to, row.shard, at)
    at = putInt8(to, row.userKey, at)
    at = putNullableText(to, row.userId, at)
    at = putNullableText(to, row.value, at)
    at = putBoolean(to, true, at)
    at = putBoolean(to, false, at)
    return putInt8(to, microsOf(row.enteredAt), at)
  },
}

export const copyMembers = (rows: Iterable<MemberRow>): Generator<Buffer> =>
  copyOf(rows, memberForm)
