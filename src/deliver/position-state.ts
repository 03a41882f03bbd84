// The bytes of delivery's position row: completion bitmap, destinations done, relay marks, counters.
import type { Settled } from '../domain/tracker.ts'
import { nothingSettled } from '../domain/tracker.ts'
import { noCounters } from './pairs.ts'
import { type Counters, type Mark, outcomes } from './stage.ts'

export type State = {
  readonly settled: Settled
  readonly marks: ReadonlyMap<number, Mark>
  readonly counters: Counters
  /** Pairs settled, and pairs opened that were not. */
  readonly consumed: bigint
  readonly inFlight: bigint
  /** Written by a version that counted only roughly. */
  readonly rough: boolean
}

const format = 2

/** Format 1 had the first five outcomes and nothing after them. */
const firstOutcomes = 5

/** An offset with more destinations stands there several times: a process of the version before reads one of them. */
const doneMax = 65_535

/** format u8 · length u32 · bits · done u32 × (offset − next u32, n u16, n × u32) · marks u16 × (shard u16, seq i64, offset i64) · counters i64 each · consumed i64 · in flight i64 */
export const encodeState = (state: Omit<State, 'rough'>): Buffer => {
  const { settled, marks, counters } = state
  const { next, length, bits, done } = settled
  const parts = [...done].flatMap(([offset, ids]) =>
    partsOf(ids).map((part) => [offset, part] as const),
  )
  const doneBytes = parts.reduce((sum, [, ids]) => sum + 6 + 4 * ids.length, 0)
  const size = 5 + bits.length + 4 + doneBytes + 2 + 18 * marks.size + 8 * (outcomes.length + 2)
  const buffer = Buffer.alloc(size)
  let at = buffer.writeUInt8(format, 0)
  at = buffer.writeUInt32BE(length, at)
  buffer.set(bits, at)
  at = buffer.writeUInt32BE(parts.length, at + bits.length)
  for (const [offset, ids] of parts) {
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
  at = buffer.writeBigInt64BE(state.consumed, at)
  buffer.writeBigInt64BE(state.inFlight, at)
  return buffer
}

const partsOf = (ids: readonly number[]): readonly (readonly number[])[] =>
  Array.from({ length: Math.max(1, Math.ceil(ids.length / doneMax)) }, (_, part) =>
    ids.slice(part * doneMax, (part + 1) * doneMax),
  )

export const decodeState = (bytes: Buffer | null, next: number): State => {
  if (!bytes || bytes.length === 0) {
    const counts = { counters: noCounters(), consumed: 0n, inFlight: 0n, rough: false }
    return { settled: nothingSettled(next), marks: new Map(), ...counts }
  }
  const reader = readerOf(bytes)
  const rough = reader.u8() < format
  const length = reader.u32()
  const bits = reader.take(Math.ceil(length / 8))
  const done = new Map<number, number[]>()
  for (let left = reader.u32(); left > 0; left--) {
    const offset = next + reader.u32()
    const ids = times(reader.u16(), () => reader.u32())
    done.set(offset, [...(done.get(offset) ?? []), ...ids])
  }
  const marks = new Map(
    times(reader.u16(), () => {
      const shard = reader.u16()
      return [shard, { seq: Number(reader.i64()), offset: Number(reader.i64()) }] as const
    }),
  )
  const counters = noCounters()
  const counted = rough ? outcomes.slice(0, firstOutcomes) : outcomes
  for (const outcome of counted) counters[outcome] = reader.i64()
  const consumed = rough ? sumOf(counters) : reader.i64()
  const inFlight = rough ? 0n : reader.i64()
  return { settled: { next, length, bits, done }, marks, counters, consumed, inFlight, rough }
}

const sumOf = (counters: Counters): bigint =>
  Object.values(counters).reduce((sum, amount) => sum + amount, 0n)

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
