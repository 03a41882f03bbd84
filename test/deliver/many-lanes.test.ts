// Many lanes at once: what only waits for its turn is not parked.
import { expect, test } from 'vitest'
import { aDestination, aLive, aSource, to } from '../support/configuration.ts'
import { until } from '../support/until.ts'
import { useRig } from './rig.ts'

const { database, receiver, open } = await useRig()
const lanes = 12
const each = 20

/** How many rows were parked since ever. */
const everParked = async (): Promise<number> => {
  const { rows } = await database.pool.query<{ n: number }>(
    'select case when is_called then last_value else 0 end::int as n from parked_id_seq',
  )
  return rows[0]?.n ?? Number.NaN
}

test('well destinations that together fill the memory of all lanes wait in the log', async () => {
  const hook = await receiver()
  hook.reply(() => new Promise((resolve) => setTimeout(() => resolve(200), 2)))
  const ids = Array.from({ length: lanes }, (_, at) => at + 1)
  const sources = ids.map((id) => aSource({ id, name: `S${id}`, writeKey: `wk_${id}` }))
  const destinations = ids.map((id) =>
    aDestination({
      id,
      name: `D${id}`,
      sourceIds: new Set([id]),
      webhooks: to(`${hook.url}${id}`),
    }),
  )
  // Four rounds at a time for twelve lanes: most of them have nothing to do while some wait.
  const limits = { roundsMax: 4, waitingMax: 10, fullMs: 0 }
  const rig = open(aLive({ sources, destinations }), { limits, partitions: 1 })
  // However busy this machine is, none of them times out.
  rig.start({}, 60_000)
  const before = await everParked()
  const call = (sourceId: number, at: number) => rig.aCall({ sourceId, userId: `u${at}` })
  await rig.append(ids.map((id) => call(id, 0)))
  await until(() => hook.requests.length === lanes, 'each has delivered one')
  // A few for one, then a few for the next.
  await rig.append(ids.flatMap((id) => Array.from({ length: each }, (_, at) => call(id, at + 1))))
  await until(() => hook.requests.length === lanes * (each + 1), 'all are delivered')
  expect(await everParked()).toBe(before)
})
