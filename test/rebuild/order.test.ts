import { expect, test } from 'vitest'
import { chooseRun, type Decision, type Head } from '../../src/rebuild/order.ts'

const options = { slackMs: 10, callsMax: 5 }

const head = (
  receipts: readonly number[],
  decision: readonly [number, number] | null = null,
): Head => ({
  calls: receipts.map((receivedAt, offset) => ({ offset: BigInt(offset), receivedAt })),
  decision:
    decision === null
      ? null
      : ({
          offset: BigInt(decision[0]),
          seq: BigInt(decision[1]),
          previous: null,
        } satisfies Decision),
})

test('calls are folded about as they were received, up to a few ahead of another partition', () => {
  expect(chooseRun([head([30, 31]), head([10, 20, 39, 41])], options)).toEqual({
    head: 1,
    calls: 3,
  })
  expect(chooseRun([head([1, 2, 3, 4, 5, 6, 7])], options)).toEqual({ head: 0, calls: 5 })
  expect(chooseRun([head([]), head([])], options)).toBeNull()
})

test('a call that decided who is who waits until those before it were folded', () => {
  // The first partition's is due after the second's, though it was received earlier.
  expect(chooseRun([head([1, 2, 3], [0, 8]), head([50, 51], [1, 7])], options)).toEqual({
    head: 1,
    calls: 2,
  })
  // Up to it, and no further.
  expect(chooseRun([head([1, 2, 3], [2, 8]), head([50], [0, 7])], options)).toEqual({
    head: 0,
    calls: 2,
  })
})

test('the decision that is due ends a run: the next may be of another partition', () => {
  expect(chooseRun([head([1, 2, 3], [1, 4]), head([50], [0, 5])], options)).toEqual({
    head: 0,
    calls: 2,
  })
})
