// Begins the import of one input, or finds how far an earlier command came and goes on there.

import type { JsonObject } from '../domain/message.ts'
import { headerOf } from '../import/header.ts'
import { importLimits } from '../import/limits.ts'
import { delimiterOf } from '../import/table.ts'
import { failing } from './client.ts'
import { type Content, openContent } from './import-content.ts'
import { type Input, namedFormat } from './import-input.ts'
import type { Import, Options } from './import-one.ts'
import { type Figures, openProgress } from './import-progress.ts'

export type Begun = {
  readonly import: Import
  readonly format: 'ndjson' | 'csv' | 'tsv'
  /** `null`: every line is a record. */
  readonly delimiter: string | null
  /** From its first byte on. */
  readonly content: Content
}

export const begin = async (options: Options, input: Input): Promise<Begun> => {
  const format = formatOf(options, input)
  // Beside tables in a folder, calls need none.
  const mapping = format === 'ndjson' ? null : (options.mapping as JsonObject)
  const delimiter = format === 'ndjson' ? null : delimiterOf(format, mapping)
  // The stream of standard input comes once: its first row is looked at and put back.
  const content = openContent(input)
  const columns = delimiter === null ? null : await columnsOf(content, input, delimiter)
  const digest = options.isDryRun ? null : await digestOf(options, input)
  const made = await options.ask<Import>({
    method: 'POST',
    path: '/admin/v1/imports',
    body: {
      writeKey: options.writeKey,
      name: input.name.replaceAll(/\p{Cc}/gu, '\ufffd').toWellFormed(),
      format,
      ...(digest === null ? {} : { digest }),
      ...(mapping === null ? {} : { mapping }),
      ...(columns === null ? {} : { columns }),
      ...(options.isDryRun ? { dryRun: true } : {}),
      ...(options.isAgain ? { again: true } : {}),
    },
  })
  return { import: made, format, delimiter, content }
}

/** A table without a mapping is refused. */
export const formatOf = (
  { format, mapping }: Pick<Options, 'format' | 'mapping'>,
  { name }: Input,
): Begun['format'] => {
  const found = format ?? namedFormat(name) ?? (mapping === null ? 'ndjson' : 'csv')
  if (found !== 'ndjson' && mapping === null)
    throw failing(
      [`${name} is a table: say with --map which column becomes what, or --format ndjson`],
      2,
    )
  return found
}

/** All are looked at before anything is read: a mapping that no table is there for is a mistake. */
export const refuseMisfits = (
  options: Pick<Options, 'format' | 'mapping'>,
  inputs: readonly Input[],
) => {
  const formats = inputs.map((input) => formatOf(options, input))
  if (options.mapping !== null && formats.every((format) => format === 'ndjson'))
    throw failing([`--map is for csv and tsv, and ${inputs[0]?.name} is not one`], 2)
}

const columnsOf = async (content: Content, { name }: Input, delimiter: string) => {
  const start = await content.peek(importLimits.chunkBytesMax, (held, isAll) =>
    headerOf(held, delimiter, isAll),
  )
  if (start === null || start.length === 0)
    throw failing([`${name} has no first row that names its columns`], 2)
  return start
}

const digestOf = async ({ terminal }: Options, input: Input): Promise<string | null> => {
  const progress = openProgress(terminal, `reading ${input.name}`)
  let read = 0
  const figures = (): Figures => ({ read, size: input.size, calls: 0, rejected: 0 })
  const digest = await input.digest((bytes) => {
    read += bytes
    progress.tell(figures())
  })
  progress.end()
  return digest
}
