// A position says what was settled, and is read as it was written.
import { expect, test } from 'vitest'
import { noCounters } from '../../src/deliver/pairs.ts'
import { decodeState, encodeState } from '../../src/deliver/position-state.ts'

const stateOf = (done: ReadonlyMap<number, readonly number[]>) => ({
  settled: { next: 1_000, length: 12, bits: Uint8Array.of(0b1010_0101, 0b1001), done },
  marks: new Map([[3, { seq: 2 ** 40, offset: 2 ** 41 }]]),
  counters: { ...noCounters(), delivered: 12n },
  ...{ consumed: 20n, inFlight: 8n },
})

const ids = (count: number) => Array.from({ length: count }, (_, at) => at + 1)

for (const count of [0, 1, 65_535, 65_536, 200_000])
  test(`${count} destinations are done with one call`, () => {
    const state = stateOf(
      new Map([
        [1_004, ids(count)],
        [1_005, [7, 9]],
      ]),
    )
    const { rough, ...read } = decodeState(encodeState(state), 1_000)
    expect(rough).toBe(false)
    expect({ ...read, settled: { ...read.settled, bits: [...read.settled.bits] } }).toEqual({
      ...state,
      settled: { ...state.settled, bits: [...state.settled.bits] },
    })
  })
