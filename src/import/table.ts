// Reads rows of CSV and TSV, and makes of each the call that the mapping says.
import { parse } from 'csv-parse/sync'
import type { JsonObject } from '../domain/message.ts'
import { callOfRow } from './mapped-call.ts'
import { compileMapping } from './mapping.ts'
import type { LineRecord } from './record.ts'
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
  if (rows && !rows.some(hasQuote)) yield* recordsOf(rows, table, make)
  else yield* rowByRow(bytes, { ...table, delimiter }, make)
}

/** It is kept where a value begins with one of its own, and where what follows the closing one is no end. */
const hasQuote = ({ record }: Row) => record.some((value) => value.startsWith('"'))

const attempt = (bytes: Buffer, delimiter: string): readonly Row[] | null => {
  try {
    return readRows(bytes, delimiter)
  } catch {
    return null
  }
}

/** The way of those that are looked at one by one: a row that cannot be read must not take the others of its chunk along. */
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
    // The last row may have no newline; a quote that stays open takes its own line and no more.
    const isOpen = records.end === 0 && records.isOpen
    const end = records.end || (isOpen && firstEnd) || rest.length
    const isFirst = table.isFirst && start === 0
    const isMisquoted = records.isMisquoted && !isFirst
    const rows = isOpen || isMisquoted ? null : attempt(rest.subarray(0, end), table.delimiter)
    if (rows) yield* recordsOf(rows, { ...table, firstLine: line, isFirst }, make)
    else yield rejected(line, 'row_invalid', isOpen ? unclosed : misquoted)
    line += records.end > 0 ? records.lines : 1
    start += end
  }
}

const newline = 10
const unclosed = 'a quote is not closed'
const misquoted = 'a value goes on after its closing quote'

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
