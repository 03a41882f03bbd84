// One input's import: begun or gone on with, sent chunk by chunk, and its rejected lines written down.
import { setTimeout as sleep } from 'node:timers/promises'
import type { Chunk } from '../import/chunk.ts'
import { cutChunks } from '../import/cut.ts'
import { importLimits } from '../import/limits.ts'
import type { LineRejection } from '../import/record.ts'
import { type Admin, type Ask, failing } from './client.ts'
import type { Terminal } from './command.ts'
import { type Begun, begin } from './import-begin.ts'
import { type Input, rejectsSuffix } from './import-input.ts'
import { type Figures, openProgress } from './import-progress.ts'
import { nameOf, openRejects, type Rejects, writtenFrom } from './import-rejects.ts'
import { type Answered, openSender } from './import-send.ts'

export type Options = {
  readonly ask: Ask
  readonly admin: Admin
  readonly terminal: Terminal
  readonly writeKey: string
  readonly format: 'ndjson' | 'csv' | 'tsv' | null
  readonly mapping: unknown
  readonly rejects: string | null
  readonly callsPerSecond: number | null
  readonly isDryRun: boolean
  readonly isAgain: boolean
  readonly isJson: boolean
  readonly stopping: AbortSignal
}

export type Outcome = 'taken' | 'rejected' | 'stopped'

type Recent = {
  readonly place: number
  readonly line: number
  readonly until: number
  readonly digest: string
  readonly rejected: readonly LineRejection[]
}

export type Import = {
  readonly id: number
  readonly name: string
  readonly state: 'running' | 'finished' | 'cancelled'
  readonly place: number
  readonly line: number
  readonly accepted: number
  readonly rejected: number
  readonly filtered: number
  readonly suppressed: number
  readonly untimed: number
  readonly recent: readonly Recent[]
}

export const importOne = async (options: Options, input: Input): Promise<Outcome> => {
  const begun = await begin(options, input)
  const { import: made, content } = begun
  try {
    if (made.state === 'cancelled')
      throw failing([
        `the import of ${input.name} was cancelled after line ${made.line - 1}: begin anew with --again`,
      ])
    const path =
      options.rejects ?? `${input.path ?? input.name.replaceAll(/[^\w.-]/g, '-')}${rejectsSuffix}`
    const rejects = openRejects(path, { importId: made.id, file: input.name })
    const end = await goOn(options, { input, begun, rejects })
    if (end === null) {
      options.terminal.err(`${input.name}: stopped; run the same command again to go on`)
      return 'stopped'
    }
    tell(options, { name: input.name, end, wasFinished: made.state === 'finished', path })
    return end.rejected > 0 ? 'rejected' : 'taken'
  } finally {
    await content.close()
  }
}

type Going = { readonly input: Input; readonly begun: Begun; readonly rejects: Rejects }

/** `null` when it was stopped. */
const goOn = async (options: Options, going: Going): Promise<Import | null> => {
  const { import: made, content, delimiter } = going.begun
  const last = await catchUp(options, going)
  if (made.state === 'finished') {
    await refuseMore(going, last)
    return made
  }
  const { place, line } = made
  const linesMax = Math.min(
    importLimits.chunkLinesMax,
    Math.max(1, Math.ceil(options.callsPerSecond ?? importLimits.chunkLinesMax)),
  )
  const chunks = cutChunks(content.rest(), { place, line, delimiter, linesMax })
  return await sendAll(options, going, chunks)
}

type Sent = { readonly chunk: Chunk; readonly answered: Promise<Answered> }

/** Two chunks are on their way at most: one is judged while the other is appended. */
const sendAll = async (
  options: Options,
  { input, begun, rejects }: Going,
  chunks: AsyncIterable<Chunk>,
): Promise<Import | null> => {
  const { import: made, content, delimiter } = begun
  const send = openSender(options.admin, made.id)
  const progress = openProgress(options.terminal, input.name)
  const wait = pacing(options)
  let now: Import | null = null
  let before: Sent | null = null
  const settle = async (sent: Sent | null) => {
    if (sent === null) return
    const { import: told, rejected } = await sent.answered
    now = told
    if (!options.isDryRun || options.rejects !== null)
      await rejects.add({ line: sent.chunk.line, bytes: sent.chunk.bytes, delimiter, rejected })
    else for (const one of rejected) options.terminal.err(rejectionLine(input.name, one))
    progress.tell(figuresOf(told))
  }
  const figuresOf = (shown: Import): Figures => ({
    read: content.read(),
    size: input.size,
    calls: shown.accepted + shown.filtered + shown.suppressed + shown.rejected,
    rejected: shown.rejected,
  })
  progress.tell(figuresOf(made))
  try {
    for await (const chunk of chunks) {
      if (options.stopping.aborted) {
        await settle(before)
        return null
      }
      await wait(chunk)
      const answered = send(chunk)
      answered.catch(() => undefined)
      await settle(before)
      before = { chunk, answered }
    }
    await settle(before)
  } finally {
    progress.end()
  }
  return now
}

const rejectionLine = (name: string, { line, code, reason }: LineRejection) =>
  `${name}:${line}: ${reason} (${code})`

/** Lines, of which nearly each is a call, are sent no faster than asked for. */
const pacing = ({ callsPerSecond, stopping }: Options) => {
  const startedAt = performance.now()
  let first: number | null = null
  return async ({ line }: Chunk): Promise<void> => {
    first ??= line
    if (callsPerSecond === null) return
    const dueMs = ((line - first) / callsPerSecond) * 1_000
    const waitMs = dueMs - (performance.now() - startedAt)
    if (waitMs > 0) await sleep(waitMs, null, { signal: stopping }).catch(() => null)
  }
}

/** More than the longest chunk has. */
const chunkBytesKept = 4_194_304

/**
 * Up to the place where the import goes on, with the last bytes before it. What an earlier command heard
 * last may have been heard, and not yet written down; and content that is not the same as then is not gone
 * on with.
 */
const catchUp = async (options: Options, { input, begun, rejects }: Going): Promise<Buffer> => {
  const { import: made, content, delimiter } = begun
  const [first] = made.recent
  let last: Buffer = Buffer.alloc(0)
  if (first === undefined) return last
  const about = { importId: made.id, line: first.line }
  const written = options.isDryRun ? null : await writtenFrom(rejects.path, about)
  await content.pass(first.place)
  for (const { line, place, until, digest, rejected } of made.recent) {
    const isTooLong = rejected.some(({ code }) => code === 'line_too_long')
    const { bytes, length, digest: found } = await content.take(until - place, chunkBytesKept)
    if (length < until - place || (!isTooLong && found !== digest))
      throw failing([
        `${input.name} is not what import ${made.id} began with: its lines before ${made.line} are others`,
      ])
    const missing = rejected.filter((one) => written?.has(nameOf(one)) === false)
    await rejects.add({ line, bytes, delimiter, rejected: missing })
    if (bytes.length > 0) last = bytes
  }
  return last
}

/**
 * A stream ends where who writes it dies, too: then its import was finished with a part of it. Where only the
 * end of its last line is new, nothing was missed; what follows on that end is of other lines.
 */
const refuseMore = async ({ input, begun }: Going, last: Buffer): Promise<void> => {
  const { import: made, content } = begun
  const more = (await content.peek(lookBytes, startOf))?.toString('latin1') ?? ''
  const isEnded = last.length === 0 || last.at(-1) === newline
  if (more === '' || (!isEnded && /^\r?\n$/.test(more))) return
  const isCut = !isEnded && !/^\r?\n/.test(more)
  const [where, rest] = isCut
    ? [`within line ${made.line - 1}`, 'what comes from that line on']
    : [`after line ${made.line - 1}`, 'what comes after it']
  throw failing([
    `${input.name} goes on ${where}, where import ${made.id} ended: nothing more was imported`,
    `import ${rest} under another --name, or all of it once more with --again`,
  ])
}

const newline = 10

/** A line's end, and one byte that tells whether anything comes after it. */
const lookBytes = 3

const startOf = (held: Buffer, isAll: boolean): Buffer | null =>
  held.length >= lookBytes || isAll ? held.subarray(0, lookBytes) : null

type End = {
  readonly name: string
  readonly end: Import
  readonly wasFinished: boolean
  readonly path: string
}

const tell = (options: Options, { name, end, wasFinished, path }: End): void => {
  const { terminal, isDryRun, isJson } = options
  if (isJson) {
    // `line` is the one that would come next.
    const { recent: _, line, ...shown } = end
    terminal.out(JSON.stringify({ ...shown, lines: line - 1 }))
    return
  }
  const amounts = [
    `${end.accepted} ${isDryRun ? 'would be imported' : 'imported'}`,
    `${end.rejected} rejected`,
    ...(end.filtered > 0 ? [`${end.filtered} filtered by the tracking plan`] : []),
    ...(end.suppressed > 0 ? [`${end.suppressed} of users who asked to be forgotten`] : []),
    ...(end.untimed > 0 ? [`${end.untimed} without a readable time, so as of now`] : []),
  ]
  const before = wasFinished ? 'was imported before: ' : ''
  terminal.out(`${name}: ${before}${amounts.join(', ')}`)
  if (end.rejected > 0 && !isDryRun) terminal.err(`rejected lines, with their reasons: ${path}`)
}
