import { expect, test } from 'vitest'
import { repeat } from '../src/repeat.ts'
import { until } from './support/until.ts'

const never = 3_600_000

/** Runs that end when the test says so. */
const byHand = () => {
  const open: (() => void)[] = []
  let begun = 0
  return {
    work: () =>
      new Promise<void>((resolve) => {
        begun += 1
        open.push(resolve)
      }),
    begun: () => begun,
    open: () => open.length,
    end: () => open.shift()?.(),
  }
}

test('work is done again and again by itself until it is stopped', async () => {
  let runs = 0
  const repeated = repeat(1, async () => {
    runs += 1
  })
  await until(() => runs >= 3)
  await repeated.stop()
  const then = runs
  repeated.run()
  expect(runs).toBe(then)
})

test('all who ask during a run get one more run, which begins after it', async () => {
  const hand = byHand()
  const repeated = repeat(never, hand.work)
  for (let asked = 0; asked < 5; asked += 1) repeated.run()
  expect(hand.begun()).toBe(1)
  hand.end()
  await until(() => hand.begun() === 2)
  hand.end()
  repeated.run()
  await until(() => hand.open() === 1)
  hand.end()
  await repeated.stop()
  expect(hand.begun()).toBe(3)
})

test('who waits is told after a run that began once it had asked, not by the one in hand', async () => {
  const hand = byHand()
  const repeated = repeat(never, hand.work)
  repeated.run()
  const told: string[] = []
  const both = Promise.all(
    ['one', 'two'].map((name) => repeated.ran().then(() => void told.push(name))),
  )
  hand.end()
  await until(() => hand.begun() === 2)
  expect(told).toEqual([])
  hand.end()
  await both
  expect([told, hand.begun()]).toEqual([['one', 'two'], 2])
  await repeated.stop()
})

test('who waits as it is stopped is told that there is no more', async () => {
  const hand = byHand()
  const repeated = repeat(never, hand.work)
  repeated.run()
  const waiting = repeated.ran()
  const stopped = repeated.stop()
  hand.end()
  await Promise.all([stopped, waiting, repeated.ran()])
  expect(hand.begun()).toBe(1)
})

test('a run that outlasts the interval is not joined by another', async () => {
  const hand = byHand()
  const repeated = repeat(1, hand.work)
  await until(() => hand.begun() === 1)
  for (let round = 0; round < 20; round += 1) await new Promise((r) => setTimeout(r, 1))
  expect([hand.begun(), hand.open()]).toEqual([1, 1])
  const stopped = repeated.stop()
  hand.end()
  await stopped
})

test('stopping waits for the run in hand, and begins no other', async () => {
  const hand = byHand()
  const repeated = repeat(never, hand.work)
  repeated.run()
  repeated.run()
  let isStopped = false
  const stopped = repeated.stop().then(() => {
    isStopped = true
  })
  await new Promise((resolve) => setImmediate(resolve))
  expect(isStopped).toBe(false)
  hand.end()
  await stopped
  expect(hand.begun()).toBe(1)
})
