// One chunk of an import: judged, then in its turn noted, appended and done, so that each line is imported once.
import { hash } from 'node:crypto'
import type { Source } from '../domain/configuration.ts'
import { notAppended } from './appended.ts'
import type { ImportDeps } from './deps.ts'
import { bytesOfUuid } from './identity.ts'
import { type JudgedChunk, judgeRecords } from './judge.ts'
import { importLimits } from './limits.ts'
import { readNdjson } from './ndjson.ts'
import { type LineRecord, type LineRejection, type LineText, reasonOf } from './record.ts'
import {
  type Begun,
  beginChunk,
  type Ends,
  findImport,
  finishChunk,
  type Import,
  type Recent,
} from './store.ts'
import { readTable } from './table.ts'
import type { Turns } from './turns.ts'

export type Chunk = {
  /** Of its first byte and line in the content, after decompression. */
  readonly place: number
  readonly line: number
  /** Whole lines. Empty for a line that is too long, of `skipped` bytes. */
  readonly bytes: Buffer
  readonly skipped: number
  /** Nothing follows it. */
  readonly isLast: boolean
}

export type Taken =
  | { readonly taken: Import; readonly rejected: readonly LineRejection[] }
  | { readonly refused: 'import_moved' | 'import_over' | 'source_unknown'; readonly now: Import }

type Taking = ImportDeps & { readonly turns: Turns; readonly ends: () => Promise<Ends> }

export const takeChunk = (deps: Taking, found: Import, chunk: Chunk): Promise<Taken | 'busy'> =>
  deps.turns.enter({ id: found.id, place: chunk.place, until: untilOf(chunk) }, async (before) => {
    const digest = hash('sha256', chunk.bytes, 'hex')
    const repeated = repeatOf(found, { chunk, digest })
    if (repeated) return { taken: found, rejected: repeated.rejected }
    const source = deps.live.now().sources.get(found.sourceId)
    if (!source) return { refused: 'source_unknown', now: found }
    const working = { deps, source, found, chunk, digest }
    const receivedAt = deps.clock()
    const judged = await judge(working, receivedAt)
    await before
    if (!(await deps.pace.wait())) return 'busy'
    return deps.pace.working(() => carryOut(working, { judged, receivedAt }))
  })

type Working = {
  readonly deps: Taking
  readonly source: Source
  readonly found: Import
  readonly chunk: Chunk
  readonly digest: string
}

type Judgement = { readonly judged: JudgedChunk; readonly receivedAt: Date }

const untilOf = ({ place, bytes, skipped }: Chunk) => place + bytes.length + skipped

/** Sent again because its answer was lost. */
const repeatOf = (
  { recent }: Import,
  { chunk, digest }: Pick<Working, 'chunk' | 'digest'>,
): Recent | undefined =>
  recent.find(
    (one) => one.place === chunk.place && one.until === untilOf(chunk) && one.digest === digest,
  )

const judge = ({ deps, source, found, chunk }: Working, receivedAt: Date): Promise<JudgedChunk> =>
  judgeRecords(recordsOf(found, chunk), {
    // Its clock is not to be corrected by when the file was written; who may import knows the addresses.
    source: {
      ...source,
      settings: { ...source.settings, ignoreSentAt: true, trustClientIp: true },
    },
    limits: deps.limitsOf(source),
    plan: deps.planOf(source, receivedAt.getTime()),
    codec: deps.codec,
    suppressions: deps.suppressions,
    metersFiltered: metersFiltered(deps, source),
    receivedAt: receivedAt.getTime(),
    key: bytesOfUuid(found.key),
  })

const metersFiltered = ({ live }: ImportDeps, source: Source): boolean =>
  source.class === 'server' &&
  (live.now().workspaces.get(source.workspaceId)?.grandfathered ?? false)

const recordsOf = (
  { format, mapping, columns }: Import,
  { bytes, place, line, skipped }: Chunk,
): Iterable<LineRecord | LineText> => {
  if (skipped > 0)
    return [{ line, index: 0, code: 'line_too_long', reason: reasonOf.line_too_long }]
  return format === 'ndjson'
    ? readNdjson(bytes, line)
    : readTable(bytes, { firstLine: line, isFirst: place === 0, format, mapping, columns })
}

const carryOut = async (working: Working, first: Judgement): Promise<Taken> => {
  const { deps, found, chunk, digest } = working
  const ends = await deps.ends()
  const beginning = { id: found.id, place: chunk.place, digest, at: first.receivedAt, ends }
  const begun = await beginChunk(deps.pool, beginning)
  if (!begun) return refused(working)
  const judged =
    begun.receivedAt.getTime() === first.receivedAt.getTime()
      ? first.judged
      : await judge(working, begun.receivedAt)
  if (!found.dryRun) await append(working, { begun, judged })
  const taken = await finishChunk(deps.pool, {
    id: found.id,
    attempt: begun.attempt,
    chunk: {
      place: chunk.place,
      line: chunk.line,
      until: untilOf(chunk),
      digest,
      rejected: judged.rejected,
      untimed: begun.untimed + judged.untimed,
    },
    nextLine: chunk.line + linesIn(chunk),
    isLast: chunk.isLast,
    accepted: judged.accepted,
    filtered: judged.filtered,
    suppressed: judged.suppressed,
    at: deps.clock(),
  })
  if (!taken) return refused(working)
  if (!found.dryRun) judged.count(deps.pipeline)
  return { taken, rejected: judged.rejected }
}

const refused = async ({ deps, found, chunk, digest }: Working): Promise<Taken> => {
  const now = (await findImport(deps.pool, found.id)) ?? found
  const repeated = repeatOf(now, { chunk, digest })
  if (repeated) return { taken: now, rejected: repeated.rejected }
  return { refused: now.state === 'running' ? 'import_moved' : 'import_over', now }
}

type Appending = {
  readonly begun: Begun
  readonly judged: JudgedChunk
}

const append = async ({ deps }: Working, { begun, judged }: Appending): Promise<void> => {
  const entries = begun.isTakenOver
    ? await notAppended({ ...deps, ends: begun.ends, entries: judged.entries })
    : judged.entries
  if (entries.length > 0)
    await deps.appender.append(
      'calls.import',
      entries.map(({ entry }) => entry),
    )
}

const newline = 10

/** The last line of a file may have no end. */
const linesIn = ({ bytes, skipped }: Chunk): number => {
  if (skipped > 0) return 1
  let lines = 0
  for (let at = bytes.indexOf(newline); at >= 0; at = bytes.indexOf(newline, at + 1)) lines += 1
  return bytes.length > 0 && bytes[bytes.length - 1] !== newline ? lines + 1 : lines
}

export const chunkProblem = ({ bytes, skipped, place, line }: Chunk): string | null => {
  if (place < 0 || line < 1) return 'place begins at 0 and line at 1'
  if (skipped > 0 && bytes.length > 0) return 'a chunk that skips a line has no body'
  return bytes.length > importLimits.bodyBytesMax ? 'the chunk is larger than 4 MiB' : null
}
