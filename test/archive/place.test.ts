// The archive's place and the names of its segments, and the blocks they are made of.
import { randomBytes } from 'node:crypto'
import { gzipSync, zstdCompressSync } from 'node:zlib'
import { expect, test } from 'vitest'
import { compressed, uncompressed } from '../../src/archive/frames.ts'
import { compressions, pathOf, readPath } from '../../src/archive/name.ts'
import { readPlace } from '../../src/archive/place.ts'
import { gathered } from './rig.ts'

test.each([
  ['./archive', { type: 'folder', path: './archive' }],
  ['/var/lib/archive', { type: 'folder', path: '/var/lib/archive' }],
  [
    's3://events',
    { type: 's3', bucket: 'events', prefix: '', endpoint: null, region: 'us-east-1' },
  ],
  [
    's3://events/a/b/?endpoint=http://127.0.0.1:7070/&region=eu-west-1',
    {
      type: 's3',
      bucket: 'events',
      prefix: 'a/b/',
      endpoint: 'http://127.0.0.1:7070',
      region: 'eu-west-1',
    },
  ],
])('%s is a place', (text, place) => {
  expect(readPlace(text)).toEqual({ ok: true, place })
})

test.each([
  ['gs://events', 'neither a folder'],
  ['s3://', 'no bucket'],
  ['s3://user:secret@events', 'credentials'],
  ['s3://UPPER_CASE', 'no bucket'],
  ['s3://events?path=a', 'not "path"'],
  ['s3://events?endpoint=ftp://a', 'endpoint'],
  ['s3://events?region=A%20B', 'region'],
  ['s3://events/a b', 'prefix'],
])('%s is refused', (text, why) => {
  const read = readPlace(text)
  expect(read.ok ? '' : read.problem).toContain(why)
})

const name = {
  topic: 'calls',
  partition: 3,
  first: 12n,
  next: 9_223_372_036_854_775_807n,
  epoch: 4n,
  generation: 1,
  compression: 'zstd',
} as const

test('a name says all of a segment, and names sort by first offset', () => {
  expect(pathOf(name)).toBe('calls/0003/00000000000000000012-09223372036854775807.4.1.ndjson.zst')
  expect(readPath(pathOf(name))).toEqual(name)
  const paths = [0n, 2n, 10n, 100n].map((first) => pathOf({ ...name, first }))
  expect(paths.toSorted()).toEqual(paths)
})

test.each([
  'calls/0003/notes.txt',
  'orders/0003/00000000000000000012-00000000000000000013.4.1.ndjson.zst',
  `${pathOf(name)}.tmp`,
])('%s is no segment', (path) => {
  expect(readPath(path)).toBeNull()
})

const together = async (compression: 'zstd' | 'gzip', bytes: Buffer) =>
  Buffer.concat(await gathered(uncompressed(compression, bytes)))

const blocks = [
  randomBytes(70_000),
  Buffer.alloc(300_000, 'a'),
  Buffer.alloc(0),
  Buffer.from('z\n'),
]

test.each(compressions)('blocks of %s are read one after the other', async (compression) => {
  const parts: Buffer[] = []
  for (const block of blocks) parts.push(await compressed(compression, block))
  const bytes = Buffer.concat(parts)
  expect((await together(compression, bytes)).equals(Buffer.concat(blocks))).toBe(true)
})

test.each(compressions)(
  'damage to %s is noticed, and so is an end that is missing',
  async (compression) => {
    const bytes = await compressed(compression, blocks[0] as Buffer)
    const damaged = Buffer.from(bytes)
    damaged.writeUInt8(damaged.readUInt8(40_000) ^ 1, 40_000)
    await expect(together(compression, damaged)).rejects.toThrow()
    for (const end of [bytes.length - 1, bytes.length - 5, 3])
      await expect(together(compression, bytes.subarray(0, end))).rejects.toThrow()
  },
)

test('frames of every form of header are told apart', async () => {
  const sizes = [0, 1, 255, 256, 65_791, 65_792, 3_000_000]
  const frames = sizes.map((size) => zstdCompressSync(Buffer.alloc(size, 'ab')))
  const found = await together('zstd', Buffer.concat(frames))
  expect(found.length).toBe(sizes.reduce((sum, size) => sum + size, 0))
  expect((await together('gzip', gzipSync('a'))).toString()).toBe('a')
})
