import { expect, test } from 'vitest'
import type { Task, Work } from '../../src/deliver/desk.ts'
import { keptOf } from '../../src/deliver/kept.ts'
import type { Chain, Partition } from '../../src/deliver/stage.ts'

const [ours, lost] = [{}, {}] as [Partition, Partition]
const chain = {} as Chain

const work = (task: Task, partition = ours): Work => ({ task, partition, settled: () => undefined })
const delivered = (id: bigint) => ({ type: 'delivered', id, chain }) as const
const bury = (id: bigint) => {
  const burial = { id, reason: 'expired' as const, status: null, attempts: 1, firstTryAt: null }
  return { type: 'bury', burial, chain } as const
}
const nobody = new Set<bigint>()
const held = new Set([ours])

test('a row that two works name is told of once, by the first that is true of it', () => {
  const works = [delivered(1n), delivered(1n), bury(1n), delivered(2n)].map((task) => work(task))
  expect(keptOf(works, { held, delivered: new Set([1n, 2n]), buried: nobody })).toEqual([
    true,
    false,
    false,
    true,
  ])
  expect(keptOf(works, { held, delivered: nobody, buried: new Set([1n]) })).toEqual([
    false,
    false,
    true,
    false,
  ])
})

test('of a partition that was lost nothing is kept; what names no row is kept where it was ours', () => {
  const back = { type: 'back', id: 3n, chain } as const
  const works = [work(delivered(1n), lost), work(back), work(back, lost)]
  const committed = { held, delivered: new Set([1n]), buried: nobody }
  expect(keptOf(works, committed)).toEqual([false, true, false])
})
