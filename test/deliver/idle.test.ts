// Memory follows the destinations at work: those with nothing to do are forgotten, with their URLs.
import { expect, test } from 'vitest'
import { openFailing } from '../../src/deliver/failing.ts'
import { openMeter } from '../../src/deliver/meter.ts'
import { aDestination, aLive, to } from '../support/configuration.ts'
import { until } from '../support/until.ts'
import { anOutbound, useRig } from './rig.ts'

const { receiver, open, rowsOf, drained } = await useRig()

const destinationsMax = 300

test('lanes and URLs of destinations that are idle are forgotten; what waits keeps its own', async () => {
  const hook = await receiver()
  const ids = Array.from({ length: destinationsMax }, (_, at) => at + 1)
  const destinations = ids.map((id) =>
    aDestination({ id, name: `D${id}`, webhooks: to(`${hook.url}?${id}`) }),
  )
  const rig = open(aLive({ destinations }), {
    partitions: 2,
    limits: { hungryMs: 50, urlEveryMs: 20 },
  })
  const meter = openMeter()
  const sick = new Set([7, 8])
  hook.reply(({ path }) => (sick.has(Number(path.split('?')[1])) ? 503 : 200))
  rig.start({}, 5_000, { meter })
  const urls = () => Object.values(meter.standing?.().urls ?? {}).reduce((sum, n) => sum + n, 0)
  const lanes = () => meter.standing?.().lanes
  const send = async (from: number) => {
    await rig.appendOutbound(
      ids.map((id) => anOutbound({ destinationId: id, userId: `u${id}`, seq: from + id })),
    )
    await drained(rig)
  }
  for (const round of [0, 1]) {
    await send(round * destinationsMax)
    await until(async () => {
      rig.setNow(rig.now() + 1_000)
      return (await rowsOf('parked')).length === (round + 1) * sick.size
    }, 'only the sick have something left')
    // Everybody but the sick is forgotten: first the lane, an hour after its last request the URL.
    rig.setNow(rig.now() + 3_700_000)
    await until(() => {
      rig.setNow(rig.now() + 500)
      return lanes() === sick.size && urls() === sick.size
    }, 'only the sick are remembered')
  }
  expect(await rowsOf('dead')).toEqual([])
  hook.reply(() => 200)
  await until(async () => {
    rig.setNow(rig.now() + 1_000)
    return (await rowsOf('parked')).length === 0
  }, 'nothing is parked')
  await until(() => {
    rig.setNow(rig.now() + 60_000)
    return lanes() === 0 && urls() === 0
  }, 'nobody is remembered')
})

test('of more URLs than are told apart the ones known longest are forgotten', () => {
  const failing = openFailing()
  const failFive = (id: number) =>
    Array.from({ length: 5 }, () => failing.note(id, 'http://a.test', true)).at(-1)
  for (let id = 1; id <= 20_001; id += 1) expect(failFive(id)).toBe(100)
  // Known still, so nothing new; the first one is told anew.
  expect(failFive(20_001)).toBeNull()
  expect(failFive(1)).toBe(100)
})
