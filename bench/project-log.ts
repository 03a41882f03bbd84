// The log of the project bench: in a file, as little of the process that reads it as a broker is.
import { randomUUID } from 'node:crypto'
import { type FileHandle, open, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { partitionOf } from '../src/domain/partition.ts'
import type { Batch, Entry, Lease, Place, Reader, Recorded, Source, Topic } from '../src/log/log.ts'
import type { Partitions } from '../src/log/partitions.ts'

/** Entries that were appended together. */
type Segment = {
  readonly position: number
  readonly bytes: number
  readonly from: bigint
}

type Partition = { end: bigint; segments: Segment[] }

export type FileLog = {
  append(topic: Topic, entries: readonly Entry[]): Promise<void>
  /** What was appended can be read from now on. */
  open(): void
  readonly source: Source
}

/** Of one reader at a time. The file goes with the process. */
export const openFileLog = async (wanted: Partitions): Promise<FileLog> => {
  const name = join(tmpdir(), `millrace-bench-${randomUUID()}`)
  const file = await open(name, 'wx+')
  // What is open can be read as long as it is.
  await rm(name)
  const topics = new Map(
    Object.entries(wanted).map(([topic, count]) => [
      topic,
      Array.from({ length: count }, (): Partition => ({ end: 0n, segments: [] })),
    ]),
  )
  const partitionsOf = (topic: Topic) => topics.get(topic) as Partition[]
  let length = 0
  let opens = 0
  let opening = Promise.withResolvers<void>()
  return {
    append: async (topic, entries) => {
      if ([...topics.values()].flat().every(({ segments }) => segments.length === 0)) length = 0
      const partitions = partitionsOf(topic)
      const parts = Map.groupBy(entries, ({ key }) => partitionOf(key, partitions.length))
      for (const [number, part] of parts) {
        const partition = partitions[number] as Partition
        const bytes = packed(part)
        await file.write(bytes, 0, bytes.length, length)
        partition.segments.push({ position: length, bytes: bytes.length, from: partition.end })
        partition.end += BigInt(part.length)
        length += bytes.length
      }
    },
    open: () => {
      opens += 1
      opening.resolve()
      opening = Promise.withResolvers()
    },
    source: {
      join: (group, gained) => {
        const stopping = new AbortController()
        const follow = async (place: Place): Promise<void> => {
          const { segments } = partitionsOf(place.topic)[place.partition] as Partition
          const reader = await gained(leaseOf(place))
          for (let seen = 0; !stopping.signal.aborted; ) {
            while (seen === opens && !stopping.signal.aborted)
              await Promise.race([opening.promise, aborted(stopping.signal)])
            seen = opens
            await drain(file, segments, { reader, until: stopping.signal })
          }
        }
        const places = group.topics.flatMap((topic) =>
          partitionsOf(topic).map((_, partition) => ({ topic, partition })),
        )
        const done = Promise.all(places.map(follow)).then(() => undefined)
        return {
          done,
          stop: () => {
            stopping.abort()
            return done
          },
        }
      },
      read: () => {
        throw new Error('nothing of this log is read again')
      },
      bounds: async (topic) => partitionsOf(topic).map(({ end }) => ({ start: 0n, end })),
      offsetsAt: async (topic) => partitionsOf(topic).map(({ end }) => end),
      close: async () => undefined,
    },
  }
}

const aborted = (signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    if (signal.aborted) resolve()
    signal.addEventListener('abort', () => resolve(), { once: true })
  })

type Draining = { readonly reader: Reader; readonly until: AbortSignal }

const drain = async (
  file: FileHandle,
  segments: Segment[],
  { reader, until }: Draining,
): Promise<void> => {
  for (;;) {
    const next = until.aborted ? undefined : segments.shift()
    if (next === undefined) return
    await reader.handle(await read(file, next))
  }
}

const leaseOf = (place: Place): Lease => ({
  ...{ ...place, committed: null, lost: new AbortController().signal },
  commit: async () => 'committed',
})

/** Each a key and a value, and before each of the two its length. */
const packed = (entries: readonly Entry[]): Buffer => {
  const parts = entries.flatMap(({ key, value }) => {
    const text = Buffer.from(key)
    return [lengthOf(text), text, lengthOf(value), value]
  })
  return Buffer.concat(parts)
}

const lengthOf = ({ length }: Uint8Array): Buffer => {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32BE(length)
  return bytes
}

const read = async (file: FileHandle, segment: Segment): Promise<Batch> => {
  const bytes = Buffer.allocUnsafeSlow(segment.bytes)
  await file.read(bytes, 0, bytes.length, segment.position)
  const entries: Recorded[] = []
  let offset = segment.from
  for (let at = 0; at < bytes.length; offset += 1n) {
    const keyEnd = at + 4 + bytes.readUInt32BE(at)
    const key = bytes.toString('utf8', at + 4, keyEnd)
    const end = keyEnd + 4 + bytes.readUInt32BE(keyEnd)
    entries.push({ offset, key, value: bytes.subarray(keyEnd + 4, end) })
    at = end
  }
  return { from: segment.from, next: offset, entries }
}
