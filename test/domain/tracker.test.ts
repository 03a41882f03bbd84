import fc from 'fast-check'
import { expect, test } from 'vitest'
import { nothingSettled, type Open, openTracker } from '../../src/domain/tracker.ts'

const anOpen = (tracker: ReturnType<typeof openTracker>, offset: number, ids = [1]) => {
  const open = tracker.open(offset, ids) as Open
  tracker.see(offset + 1)
  tracker.secure(offset + 1)
  return open
}

test('the position stops at the lowest unsettled offset and jumps when it settles', () => {
  const tracker = openTracker(10, nothingSettled(10))
  const opens = [10, 11, 12].map((offset) => anOpen(tracker, offset))
  tracker.settle(opens[1] as Open, 1)
  expect(tracker.snapshot().next).toBe(10)
  tracker.settle(opens[0] as Open, 1)
  expect(tracker.snapshot().next).toBe(12)
  expect(tracker.span()).toBe(1)
})

test('an offset is settled only when every destination is, and the done ones are remembered', () => {
  const tracker = openTracker(0, nothingSettled(0))
  const open = anOpen(tracker, 0, [1, 2])
  tracker.settle(open, 2)
  tracker.settle(open, 2)
  const snapshot = tracker.snapshot()
  expect(snapshot.next).toBe(0)
  expect([...snapshot.done]).toEqual([[0, [2]]])
  const again = openTracker(0, snapshot)
  expect(again.open(0, [1, 2])?.left).toEqual([1])
})

test('the position never passes what has no duplicates recorded yet', () => {
  const tracker = openTracker(0, nothingSettled(0))
  tracker.see(5)
  expect(tracker.snapshot().next).toBe(0)
  tracker.secure(5)
  expect(tracker.snapshot().next).toBe(5)
})

test('bytes for done destinations grow and shrink with the offsets that need them', () => {
  const tracker = openTracker(0, nothingSettled(0))
  const open = anOpen(tracker, 0, [1, 2])
  tracker.settle(open, 1)
  expect(tracker.doneBytes()).toBeGreaterThan(0)
  tracker.settle(open, 2)
  expect(tracker.doneBytes()).toBe(0)
})

test('whatever settled before any number of crashes is settled after them, and nothing else is', () => {
  const life = fc.array(fc.record({ read: fc.nat(12), settle: fc.array(fc.nat(40)) }), {
    minLength: 1,
    maxLength: 6,
  })
  fc.assert(
    fc.property(life, (lives) => {
      const settled = new Set<number>()
      let state = nothingSettled(0)
      for (const { read, settle } of lives) {
        const tracker = openTracker(state.next, state)
        const opens = new Map<number, Open>()
        for (let offset = state.next; offset < state.next + read; offset += 1) {
          expect(tracker.isSettled(offset)).toBe(settled.has(offset))
          if (!tracker.isSettled(offset)) opens.set(offset, tracker.open(offset, [1]) as Open)
          tracker.see(offset + 1)
          tracker.secure(offset + 1)
        }
        for (const offset of settle) {
          const open = opens.get(offset)
          if (!open) continue
          tracker.settle(open, 1)
          settled.add(offset)
        }
        state = tracker.snapshot()
        for (let offset = 0; offset < state.next; offset += 1)
          expect(settled.has(offset)).toBe(true)
      }
    }),
    { numRuns: 500 },
  )
})

test('what is settled behind a few that stay open for long is known however much it is', () => {
  const count = 6_000
  const lasting = new Set([0, 1_500, 4_444])
  const tracker = openTracker(0, nothingSettled(0))
  const opens: Open[] = []
  for (let offset = 0; offset < count; offset += 1) {
    opens.push(anOpen(tracker, offset))
    // Some way behind, and not in their order.
    const at = offset - (offset % 7)
    for (const each of [at - 3, at - 40])
      if (each >= 0 && !lasting.has(each)) tracker.settle(opens[each] as Open, 1)
  }
  for (const open of opens) if (!lasting.has(open.offset)) tracker.settle(open, 1)
  const state = tracker.snapshot()
  expect([state.next, state.length, tracker.span()]).toEqual([0, count, count])
  const again = openTracker(0, state)
  const open = opens.map(({ offset }) => offset).filter((offset) => !again.isSettled(offset))
  expect(open).toEqual([...lasting])
  for (const [step, next] of [
    [0, 1_500],
    [1_500, 4_444],
    [4_444, count],
  ] as const) {
    tracker.settle(opens[step] as Open, 1)
    expect(tracker.snapshot().next).toBe(next)
  }
})
