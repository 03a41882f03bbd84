// Rows of ustate in the binary format of COPY, which Postgres takes several times faster than arrays.
import {
  copyHeader,
  copyTrailer,
  microsOf,
  putInt4,
  putInt8,
  putNull,
  putText,
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

const fields = 8
/** Everything of a row that is not of variable length. */
const fixedBytes = 2 + fields * 4 + 8 + 2 + 4 + 8 + 8 + 8
const chunkBytes = 262_144

export function* copyRows(rows: Iterable<UserRow>): Generator<Buffer> {
  let chunk = Buffer.allocUnsafe(chunkBytes)
  let at = copyHeader.copy(chunk)
  for (const row of rows) {
    const most = fixedBytes + (row.userId?.length ?? 0) * 3 + row.st.length
    if (at + most > chunk.length) {
      yield chunk.subarray(0, at)
      chunk = Buffer.allocUnsafe(Math.max(chunkBytes, most))
      at = 0
    }
    at = writeRow(chunk, row, at)
  }
  yield chunk.subarray(0, at)
  yield copyTrailer
}

const writeRow = (to: Buffer, row: UserRow, start: number): number => {
  let at = to.writeInt16BE(fields, start)
  at = putInt8(to, row.key, at)
  at = to.writeInt16BE(row.shard, to.writeInt32BE(2, at))
  at = putInt4(to, row.workspaceId, at)
  at = putInt8(to, row.ver, at)
  at = row.userId === null ? putNull(to, at) : putText(to, row.userId, at)
  at = to.writeInt32BE(row.st.length, at)
  at += to.write(row.st, at, 'latin1')
  at = Number.isFinite(row.due) ? putInt8(to, microsOf(row.due), at) : putNull(to, at)
  return row.mergedInto === null ? putNull(to, at) : putInt8(to, row.mergedInto, at)
}
