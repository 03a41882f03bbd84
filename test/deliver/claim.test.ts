// What is claimed: rows of partitions that are ours, for destinations that get them.
import { expect, test } from 'vitest'
import { aDestination, aSource, to } from '../support/configuration.ts'
import { until } from '../support/until.ts'
import { useRig } from './rig.ts'

const { open, receiver, rowsOf, database, lines, live } = await useRig()

const hourMs = 3_600_000
const isSaid = (msg: string) => lines.some((line) => line['msg'] === msg)

test('who lost a partition without hearing of it claims nothing of it', async () => {
  const hook = await receiver()
  hook.reply(() => 500)
  const rig = open(live({ destinations: [aDestination({ webhooks: to(hook.url) })] }), {
    partitions: 1,
    // Positions would find it out first.
    limits: { positionEveryMs: hourMs },
  })
  rig.start()
  await rig.append([rig.aCall({ userId: 'u1' }), rig.aCall({ userId: 'u2' })])
  await until(async () => (await rowsOf('parked')).length === 2, 'both are parked')
  const before = hook.requests.length
  const knew: boolean[] = []
  hook.reply(() => {
    knew.push(isSaid('position.lost'))
    return 200
  })
  await database.pool.query('update position set epoch = epoch + 1')
  rig.setNow(rig.now() + hourMs)
  // It gains the partition again, and only then takes what waits there.
  await until(() => hook.requests.length === before + 2, 'both arrive')
  expect(knew).toEqual([true, true])
})

test('what is parked for a destination that was switched off takes no part in claims', async () => {
  const [off, on] = [await receiver(), await receiver()]
  for (const hook of [off, on]) hook.reply(() => 500)
  const sources = [aSource({ id: 1 }), aSource({ id: 2, name: 'Other', writeKey: 'wk_2' })]
  const destinations = [
    aDestination({ id: 1, name: 'Off', sourceIds: new Set([1]), webhooks: to(off.url) }),
    aDestination({ id: 2, name: 'On', sourceIds: new Set([2]), webhooks: to(on.url) }),
  ]
  const configured = live({ sources, destinations })
  const rig = open(configured, { partitions: 1, limits: { claimMax: 3, claimShareMin: 1 } })
  rig.start()
  // Nine failures do not open a breaker yet.
  const users = Array.from({ length: 9 }, (_, at) => `u${at}`)
  await rig.append(users.map((userId) => rig.aCall({ userId, sourceId: 1 })))
  await rig.append(users.slice(0, 3).map((userId) => rig.aCall({ userId, sourceId: 2 })))
  await until(async () => (await rowsOf('parked')).length === 12, 'all are parked')
  for (const hook of [off, on]) hook.reply(() => 200)
  const asked = off.requests.length
  const [first, second] = destinations as [(typeof destinations)[0], (typeof destinations)[0]]
  configured.replace({ sources, destinations: [{ ...first, enabled: false }, second] })
  rig.setNow(rig.now() + hourMs)
  await until(async () => (await rowsOf('parked')).length === 0, 'nothing is parked any more')
  const dead = await rowsOf('dead')
  expect(dead.map(({ reason }) => reason)).toEqual(users.map(() => 'cancelled'))
  expect(off.requests.length).toBe(asked)
  expect(on.requests.length).toBe(6)
  // In bulk: none of them was claimed to be given up by itself.
  expect(isSaid('delivery.died')).toBe(false)
})
