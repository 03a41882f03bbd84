// The packed form of what is remembered of a call: 24 bytes, alike in chunks and in pages.
import { hourMs, hourOf } from './window.ts'

export type Judged = {
  readonly offset: bigint
  /** 16 bytes, uniformly distributed. */
  readonly digest: Uint8Array
  /** Epoch ms. */
  readonly receivedAt: number
}

/** Entries of one hour, their offsets counted from `base`. */
export type Chunk = { readonly hour: number; readonly base: bigint; readonly entries: Buffer }

export const entryBytes = 24
const offsetAt = 16
const msAt = 20
const deltaMax = 0xffff_ffff

/** One chunk per hour, more only where offsets lie further apart than four bytes can say. */
export const packChunks = (judged: readonly Judged[]): readonly Chunk[] => {
  const groups = new Map<number, Judged[][]>()
  for (const entry of judged) {
    const hour = hourOf(entry.receivedAt)
    const group = groups.get(hour) ?? [[]]
    if (group.length === 1) groups.set(hour, group)
    const open = group.at(-1) as Judged[]
    const isFar = open[0] !== undefined && entry.offset - open[0].offset > deltaMax
    if (isFar) group.push([entry])
    else open.push(entry)
  }
  return [...groups].flatMap(([hour, group]) => group.map((entries) => packChunk(hour, entries)))
}

const packChunk = (hour: number, judged: readonly Judged[]): Chunk => {
  const base = judged[0]?.offset ?? 0n
  const entries = Buffer.allocUnsafe(judged.length * entryBytes)
  let at = 0
  for (const { digest, offset, receivedAt } of judged) {
    entries.set(digest, at)
    entries.writeUInt32BE(Number(offset - base), at + offsetAt)
    entries.writeUInt32BE(receivedAt - hour * hourMs, at + msAt)
    at += entryBytes
  }
  return { hour, base, entries }
}

export const offsetOf = (base: bigint, entries: Buffer, at: number): bigint =>
  base + BigInt(entries.readUInt32BE(at + offsetAt))

export const msInHourOf = (entries: Buffer, at: number): number => entries.readUInt32BE(at + msAt)

/** Page number: the digest's first bits. */
export const pageOf = (firstWord: number, pageBits: number): number =>
  pageBits === 0 ? 0 : firstWord >>> (32 - pageBits)

const pageEntriesMean = 64

export type Pages = {
  readonly base: bigint
  readonly last: bigint
  readonly high: number
  readonly pageBits: number
  readonly pages: readonly { readonly page: number; readonly entries: Buffer }[]
}

/**
 * Spreads the entries of one hour's chunks over pages by their digest, so that confirming one reads
 * one. Takes chunks in ascending order of base while their offsets fit; `rest` is what did not.
 */
export const packPages = (chunks: readonly Chunk[]): { pages: Pages; rest: readonly Chunk[] } => {
  const base = chunks[0]?.base ?? 0n
  const fitting = chunks.filter((chunk) => spanEnd(chunk) - base <= deltaMax)
  const rest = chunks.filter((chunk) => spanEnd(chunk) - base > deltaMax)
  const count = fitting.reduce((sum, { entries }) => sum + entries.length / entryBytes, 0)
  const pageBits = Math.max(0, Math.ceil(Math.log2(count / pageEntriesMean)))
  const sizes = new Uint32Array(1 << pageBits)
  each(fitting, ({ entries }, at) => {
    const page = pageOf(entries.readUInt32BE(at), pageBits)
    sizes[page] = (sizes[page] as number) + 1
  })
  const buffers = Array.from(sizes, (size) => Buffer.allocUnsafe(size * entryBytes))
  const filled = new Uint32Array(sizes.length)
  let last = base
  let highMs = 0
  each(fitting, (chunk, at) => {
    const page = pageOf(chunk.entries.readUInt32BE(at), pageBits)
    const to = filled[page] as number
    const buffer = buffers[page] as Buffer
    const offset = offsetOf(chunk.base, chunk.entries, at)
    chunk.entries.copy(buffer, to, at, at + entryBytes)
    buffer.writeUInt32BE(Number(offset - base), to + offsetAt)
    filled[page] = to + entryBytes
    if (offset > last) last = offset
    highMs = Math.max(highMs, msInHourOf(chunk.entries, at))
  })
  const pages = buffers
    .map((entries, page) => ({ page, entries }))
    .filter(({ entries }) => entries.length > 0)
  const high = (chunks[0]?.hour ?? 0) * hourMs + highMs
  return { pages: { base, last, high, pageBits, pages }, rest }
}

const spanEnd = ({ base, entries }: Chunk) =>
  entries.length === 0 ? base : offsetOf(base, entries, entries.length - entryBytes)

const each = (chunks: readonly Chunk[], use: (chunk: Chunk, at: number) => void) => {
  for (const chunk of chunks)
    for (let at = 0; at < chunk.entries.length; at += entryBytes) use(chunk, at)
}
