// The bytes of delivery's position row: completion bitmap, destinations done, relay marks, counters.
import type { Settled } from '../domain/tracker.ts'
import { nothingSettled } from '../domain/tracker.ts'
import { type Counters, type Mark, outcomes } from './stage.ts'

export type State = {
  readonly settled: Settled
  readonly marks: ReadonlyMap<number, Mark>
  readonly counters: Counters
}

const format = 1

const noCounters = (): Counters => ({
  delivered: 0n,
  parked: 0n,
  dead: 0n,
  filtered: 0n,
  duplicate: 0n,
})

/** format u8 · length u32 · bits · done u32 × (offset − next u32, n u16, n × u32) · marks u16 × (shard u16, seq i64, offset i64) · counters i64 each */
export const encodeState = ({ settled, marks, counters }: State): Buffer => {
  const { next, length, bits, done } = settled
  const doneBytes = [...done.values()].reduce((sum, ids) => sum + 6 + 4 * ids.length, 0)
  const size = 5 + bits.length + 4 + doneBytes + 2 + 18 * marks.size + 8 * outcomes.length
  const buffer = Buffer.alloc(size)
  let at = buffer.writeUInt8(format, 0)
  at = buffer.writeUInt32BE(length, at)
  buffer.set(bits, at)
  at = buffer.writeUInt32BE(done.size, at + bits.length)
  for (const [offset, ids] of done) {
    at = buffer.writeUInt32BE(offset - next, at)
    at = buffer.writeUInt16BE(ids.length, at)
    for (const id of ids) at = buffer.writeUInt32BE(id, at)
  }
  at = buffer.writeUInt16BE(marks.size, at)
  for (const [shard, mark] of marks) {
    at = buffer.writeUInt16BE(shard, at)
    at = buffer.writeBigInt64BE(BigInt(mark.seq), at)
    at = buffer.writeBigInt64BE(BigInt(mark.offset), at)
  }
  for (const outcome of outcomes) at = buffer.writeBigInt64BE(counters[outcome], at)
  return buffer
}

export const decodeState = (bytes: Buffer | null, next: number): State => {
  if (!bytes || bytes.length === 0)
    return { settled: nothingSettled(next), marks: new Map(), counters: noCounters() }
  const reader = readerOf(bytes)
  reader.u8()
  const length = reader.u32()
  const bits = reader.take(Math.ceil(length / 8))
  const done = new Map(
    times(reader.u32(), () => {
      const offset = next + reader.u32()
      return [offset, times(reader.u16(), () => reader.u32())] as const
    }),
  )
  const marks = new Map(
    times(reader.u16(), () => {
      const shard = reader.u16()
      return [shard, { seq: Number(reader.i64()), offset: Number(reader.i64()) }] as const
    }),
  )
  const counters = noCounters()
  for (const outcome of outcomes) counters[outcome] = reader.i64()
  return { settled: { next, length, bits, done }, marks, counters }
}

const times = <T>(count: number, read: () => T): T[] => Array.from({ length: count }, read)

const readerOf = (bytes: Buffer) => {
  let at = 0
  const step = (size: number) => {
    at += size
    return at - size
  }
  return {
    u8: () => bytes.readUInt8(step(1)),
    u16: () => bytes.readUInt16BE(step(2)),
    u32: () => bytes.readUInt32BE(step(4)),
    i64: () => bytes.readBigInt64BE(step(8)),
    take: (size: number) => bytes.subarray(step(size), at),
  }
}
