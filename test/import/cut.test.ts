import { gzipSync } from 'node:zlib'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { Chunk } from '../../src/import/chunk.ts'
import { ContentError, decompressed, passOver } from '../../src/import/content.ts'
import { cutChunks } from '../../src/import/cut.ts'
import { importLimits } from '../../src/import/limits.ts'

async function* pieces(bytes: Buffer, length: number) {
  for (let at = 0; at < bytes.length; at += length) yield bytes.subarray(at, at + length)
}

const chunksOf = async (
  bytes: Buffer,
  { length = 1_000, linesMax = 3, delimiter = null as string | null } = {},
): Promise<readonly Chunk[]> => {
  const chunks: Chunk[] = []
  for await (const chunk of cutChunks(pieces(bytes, length), {
    place: 0,
    line: 1,
    delimiter,
    linesMax,
  }))
    chunks.push(chunk)
  return chunks
}

const joined = (chunks: readonly Chunk[]) => Buffer.concat(chunks.map(({ bytes }) => bytes))

describe('cutting content into chunks', () => {
  test('loses nothing, ends at line ends, and counts, wherever the content comes apart', () =>
    fc.assert(
      fc.asyncProperty(
        fc.array(fc.string({ maxLength: 12 }).map((text) => text.replaceAll(/[\r\n"]/g, '·'))),
        fc.integer({ min: 1, max: 9 }),
        fc.integer({ min: 1, max: 4 }),
        async (lines, length, linesMax) => {
          const bytes = Buffer.from(lines.join('\n'))
          const chunks = await chunksOf(bytes, { length, linesMax })
          expect(joined(chunks)).toEqual(bytes)
          expect(chunks.map(({ isLast }) => isLast)).toEqual(
            chunks.map((_, index) => index === chunks.length - 1),
          )
          let [place, line] = [0, 1]
          for (const chunk of chunks) {
            expect([chunk.place, chunk.line]).toEqual([place, line])
            if (!chunk.isLast) expect(chunk.bytes.at(-1)).toBe(10)
            place += chunk.bytes.length
            line += chunk.bytes.toString().split('\n').length - 1
          }
        },
      ),
    ))

  test('never cuts a row of a table in its quotes', () =>
    fc.assert(
      fc.asyncProperty(
        fc.array(
          fc.array(fc.string({ unit: fc.constantFrom('a', '"', '\n', ',', ' ') }), {
            minLength: 1,
            maxLength: 3,
          }),
        ),
        fc.integer({ min: 1, max: 9 }),
        async (rows, length) => {
          const texts = rows.map(
            (row) => `${row.map((cell) => `"${cell.replaceAll('"', '""')}"`).join(',')}\n`,
          )
          const bytes = Buffer.from(texts.join(''))
          const chunks = await chunksOf(bytes, { length, linesMax: 1, delimiter: ',' })
          expect(joined(chunks)).toEqual(bytes)
          const ends = new Set([0])
          let at = 0
          for (const text of texts) {
            at += Buffer.byteLength(text)
            ends.add(at)
          }
          for (const { place } of chunks) expect(ends).toContain(place)
        },
      ),
    ))

  test('passes over a line that is too long, and goes on after it', async () => {
    const long = 'x'.repeat(importLimits.chunkBytesMax + 5)
    for (const length of [60_000, 2 ** 22]) {
      const bytes = Buffer.from(`first\n${long}\nlast\n`)
      const chunks = await chunksOf(bytes, { length })
      const shown = chunks.map(({ place, line, bytes: own, skipped }) => [
        place,
        line,
        own.toString(),
        skipped,
      ])
      expect(shown).toEqual([
        [0, 1, 'first\n', 0],
        [6, 2, '', long.length + 1],
        [6 + long.length + 1, 3, 'last\n', 0],
      ])
    }
    const endless = await chunksOf(Buffer.from(long), { length: 70_000 })
    expect(endless.map(({ skipped, isLast }) => [skipped, isLast])).toEqual([
      [long.length, false],
      [0, true],
    ])
  })

  test('of no content makes one empty chunk', async () => {
    expect(await chunksOf(Buffer.alloc(0))).toEqual([
      { place: 0, line: 1, bytes: Buffer.alloc(0), skipped: 0, isLast: true },
    ])
  })
})

const read = async (content: AsyncIterable<Uint8Array>) => {
  const all: Uint8Array[] = []
  for await (const piece of content) all.push(piece)
  return Buffer.concat(all)
}

describe('content', () => {
  const text = Buffer.from('{"a":1}\n'.repeat(1_000))

  test('is known to be gzip by its first bytes, in one member or several', async () => {
    const members = Buffer.concat([gzipSync(text), gzipSync(text)])
    expect(await read(decompressed(pieces(text, 1)))).toEqual(text)
    expect(await read(decompressed(pieces(gzipSync(text), 1)))).toEqual(text)
    expect(await read(decompressed(pieces(members, 7)))).toEqual(Buffer.concat([text, text]))
    expect(await read(decompressed(pieces(Buffer.alloc(0), 1)))).toEqual(Buffer.alloc(0))
  })

  test('of broken gzip says so', async () => {
    const cut = gzipSync(text).subarray(0, 40)
    await expect(read(decompressed(pieces(cut, 10)))).rejects.toThrow(ContentError)
  })

  test('goes on after what is passed over', async () => {
    for (const bytes of [0, 1, 8, 4_000, text.length])
      expect(await read(passOver(pieces(text, 13), bytes))).toEqual(text.subarray(bytes))
  })
})
