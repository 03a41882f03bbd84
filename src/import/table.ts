// Reads rows of CSV and TSV, and makes of each the call that the mapping says.
import { parse } from 'csv-parse/sync'
import type { JsonObject } from '../domain/message.ts'
import { callOfRow } from './mapped-call.ts'
import { compileMapping } from './mapping.ts'
import { type LineRecord, reasonOf } from './record.ts'
import { openRecords } from './record-end.ts'

export type Table = {
  readonly firstLine: number
  /** Whether its first row names the columns. */
  readonly isFirst: boolean
  readonly format: 'csv' | 'tsv'
  readonly mapping: JsonObject | null
  readonly columns: readonly string[] | null
}

type Row = {
  readonly record: readonly string[]
  readonly info: { readonly lines: number; readonly error?: { readonly code: string } }
}

/** How rows are cut, wherever that is done: `cut.ts` finds their ends by the same rules. */
export const delimiterOf = (format: 'csv' | 'tsv', mapping: JsonObject | null): string =>
  typeof mapping?.['delimiter'] === 'string' ? mapping['delimiter'] : format === 'tsv' ? '\t' : ','

export const readRows = (bytes: Buffer, delimiter: string): readonly Row[] =>
  parse(bytes, {
    delimiter,
    bom: true,
    info: true,
    relax_column_count: true,
    // A quote within a value that does not begin with one stands for itself.
    relax_quotes: true,
    record_delimiter: ['\r\n', '\n'],
  }) as unknown as readonly Row[]

export const readTable = (bytes: Buffer, table: Table): Iterable<LineRecord> => {
  const mapping = compileMapping(table.mapping ?? {}, table.columns ?? [])
  if ('problems' in mapping) throw new Error('the mapping was checked when it was taken')
  return rowsOf(bytes, table, (row) => callOfRow(row, mapping))
}

type Made = ReturnType<typeof callOfRow>

function* rowsOf(bytes: Buffer, table: Table, make: (row: readonly string[]) => Made) {
  const delimiter = delimiterOf(table.format, table.mapping)
  const rows = attempt(bytes, delimiter)
  if (rows) yield* recordsOf(rows, table, make)
  else yield* rowByRow(bytes, { ...table, delimiter }, make)
}

const attempt = (bytes: Buffer, delimiter: string): readonly Row[] | null => {
  try {
    return readRows(bytes, delimiter)
  } catch {
    return null
  }
}

/** One row that cannot be read must not take the others of its chunk along. */
function* rowByRow(
  bytes: Buffer,
  table: Table & { readonly delimiter: string },
  make: (row: readonly string[]) => Made,
): Generator<LineRecord> {
  let line = table.firstLine
  for (let start = 0; start < bytes.length; ) {
    const rest = bytes.subarray(start)
    const records = openRecords(table.delimiter)
    records.scan(rest, { bytesMax: rest.length, linesMax: 1 })
    const firstEnd = rest.indexOf(newline) + 1
    const end = records.end || firstEnd || rest.length
    const rows = attempt(rest.subarray(0, end), table.delimiter)
    const isFirst = table.isFirst && start === 0
    if (rows) yield* recordsOf(rows, { ...table, firstLine: line, isFirst }, make)
    else yield rejected(line, 'row_invalid', reasonOf.row_invalid)
    line += records.end > 0 ? records.lines : 1
    start += end
  }
}

const newline = 10

const rejected = (
  line: number,
  code: 'row_invalid' | 'value_invalid',
  reason: string,
): LineRecord => ({ line, index: 0, code, reason })

function* recordsOf(
  rows: readonly Row[],
  { firstLine, isFirst, columns }: Pick<Table, 'firstLine' | 'isFirst' | 'columns'>,
  make: (row: readonly string[]) => Made,
): Generator<LineRecord> {
  let line = firstLine
  let isHeader = isFirst
  for (const { record, info } of rows) {
    const at = line
    line = firstLine + info.lines
    if (isHeader) {
      isHeader = false
      if (record.join('\n') === columns?.join('\n')) continue
      yield rejected(
        at,
        'row_invalid',
        'the first row names other columns than the import was made with',
      )
      continue
    }
    if (record.length === 1 && record[0] === '') continue
    if (columns !== null && record.length !== columns.length) {
      const reason = `the row has ${record.length} values, and there are ${columns.length} columns`
      yield rejected(at, 'row_invalid', reason)
      continue
    }
    const made = make(record)
    if ('problem' in made) yield rejected(at, 'value_invalid', made.problem)
    else yield { line: at, index: 0, call: made.call }
  }
}
