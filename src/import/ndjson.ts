// Reads NDJSON: on each line one call, or a batch as it would be posted; the log of the PHP file consumer is such a file.
import { isUtf8 } from 'node:buffer'
import { isObject, type Json, type JsonObject } from '../domain/message.ts'
import { type LineRecord, type LineText, reasonOf } from './record.ts'

const newline = 10
const carriageReturn = 13

export function* readNdjson(bytes: Buffer, firstLine: number): Generator<LineText | LineRecord> {
  const isText = isUtf8(bytes)
  let line = firstLine
  for (let start = 0; start < bytes.length; line += 1) {
    const found = bytes.indexOf(newline, start)
    const next = found < 0 ? bytes.length : found
    const end = bytes[next - 1] === carriageReturn ? Math.max(start, next - 1) : next
    if (!isText && !isUtf8(bytes.subarray(start, end))) yield invalid(line)
    else yield { line, text: { bytes, start, end } }
    start = next + 1
  }
}

/** What a line holds that must be parsed. Blank ones hold nothing. */
export function* readLine({ line, text }: LineText): Generator<LineRecord> {
  const json = parse(text.bytes.toString('utf8', text.start, text.end))
  if (json === nothing) return
  if (json === undefined) yield invalid(line)
  else if (isBatch(json)) yield* readBatch(json, line)
  else yield { line, index: 0, call: json }
}

const nothing = Symbol('blank')

const parse = (text: string): Json | undefined | typeof nothing => {
  try {
    return JSON.parse(text) as Json
  } catch {
    // A byte order mark stands before the first line of some files.
    const bare = text.charCodeAt(0) === 0xfeff ? text.slice(1) : text
    if (/^\s*$/.test(bare)) return nothing
    return bare === text ? undefined : parse(bare)
  }
}

const isBatch = (json: Json): json is JsonObject & { readonly batch: readonly Json[] } =>
  isObject(json) && Array.isArray(json['batch']) && json['type'] === undefined

/** What the batch says of all its calls is merged under each call's own, as when it is posted. */
function* readBatch(
  { batch, context, integrations }: JsonObject & { readonly batch: readonly Json[] },
  line: number,
): Generator<LineRecord> {
  for (const [index, call] of batch.entries()) {
    if (!isObject(call)) yield { line, index, call }
    else
      yield {
        line,
        index,
        call: {
          ...call,
          ...merged('context', context, call['context']),
          ...merged('integrations', integrations, call['integrations']),
        },
      }
  }
}

const merged = (name: string, common: Json | undefined, own: Json | undefined): JsonObject => {
  if (!isObject(common) || (own !== undefined && own !== null && !isObject(own))) return {}
  return { [name]: { ...common, ...own } }
}

const invalid = (line: number): LineRecord => ({
  line,
  index: 0,
  code: 'invalid_json',
  reason: reasonOf.invalid_json,
})
