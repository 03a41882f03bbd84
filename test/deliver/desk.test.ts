// What one transaction of the desk takes on.
import { expect, test } from 'vitest'
import { putWork, takeWork, type Work } from '../../src/deliver/desk.ts'
import { deliverLimits } from '../../src/deliver/limits.ts'
import { openQueue } from '../../src/deliver/queue.ts'

const body = Buffer.alloc(262_144)

/** As far as the desk looks at it. */
const aWork = (type: 'park' | 'delivered', bytes: Buffer | null = null): Work =>
  ({
    task: type === 'park' ? { type, row: { body: bytes } } : { type, id: 1n },
    partition: null,
    settled: () => undefined,
  }) as unknown as Work

const aDesk = (works: readonly Work[]) => {
  const desk = {
    queue: openQueue<Work>(),
    rows: openQueue<Work>(),
    bell: { ring: () => undefined },
  }
  for (const work of works) putWork({ desk } as never, work)
  return desk
}

const parks = (count: number, bytes: Buffer | null = null) =>
  Array.from({ length: count }, () => aWork('park', bytes))

const { deskBatchMax } = deliverLimits

test('what waits is taken together, up to a limit', () => {
  const desk = aDesk(parks(1.5 * deskBatchMax))
  expect(takeWork(desk, deliverLimits)).toHaveLength(deskBatchMax)
  expect(takeWork(desk, deliverLimits)).toHaveLength(deskBatchMax / 2)
  expect(takeWork(desk, deliverLimits)).toHaveLength(0)
})

test('large bodies make a transaction a short one', () => {
  const desk = aDesk(parks(100, body))
  const taken = takeWork(desk, deliverLimits)
  expect(taken).toHaveLength(deliverLimits.deskBatchBytesMax / body.length)
})

test('what became of claimed rows takes turns with what is parked', () => {
  const rows = Array.from({ length: deskBatchMax }, () => aWork('delivered'))
  const desk = aDesk([...parks(deskBatchMax), ...rows])
  const types = takeWork(desk, deliverLimits).map(({ task }) => task.type)
  expect(types.filter((type) => type === 'delivered')).toHaveLength(deskBatchMax / 2)
  expect(types.slice(0, 4)).toEqual(['delivered', 'park', 'delivered', 'park'])
})
