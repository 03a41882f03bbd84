// The first row of a table: the names of its columns.
import { importLimits } from './limits.ts'
import { openRecords } from './record-end.ts'
import { readRows } from './table.ts'

/** `null` while the row is not whole yet. */
export const headerOf = (
  start: Buffer,
  delimiter: string,
  isAll: boolean,
): readonly string[] | null => {
  const records = openRecords(delimiter)
  records.scan(start, { bytesMax: importLimits.chunkBytesMax, linesMax: 1 })
  if (records.end === 0 && !isAll) return null
  const end = records.end === 0 ? start.length : records.end
  const [row] = readRows(start.subarray(0, end), delimiter)
  return row?.record ?? []
}
