// What is read for those who are well does not wait for what becomes of the messages of those who are not.
import { expect, test } from 'vitest'
import { aDestination, aLive, to } from '../support/configuration.ts'
import { until } from '../support/until.ts'
import { useRig } from './rig.ts'

const { receiver, open, rowsOf, drained, database } = await useRig()

test('while no parked row can be written, batch after batch reaches the destination that is well', async () => {
  const [down, well] = [await receiver(), await receiver()]
  down.reply(() => 503)
  const destinations = [
    aDestination({ id: 1, name: 'Down', webhooks: to(down.url) }),
    aDestination({ id: 2, name: 'Well', webhooks: to(well.url) }),
  ]
  const rig = open(aLive({ destinations }), { partitions: 1 })
  rig.start()
  await rig.append([rig.aCall({ userId: 'u0' })])
  await drained(rig)
  expect(await rowsOf('parked')).toHaveLength(1)

  const batches = 5
  await database.pool.transaction(async (tx) => {
    await tx.query('lock table parked in share row exclusive mode')
    for (let at = 1; at <= batches; at += 1) {
      await rig.append([rig.aCall({ userId: `u${at}` })])
      await until(() => well.requests.length === 1 + at, `batch ${at} is delivered`)
    }
  })

  await drained(rig)
  expect(await rowsOf('parked')).toHaveLength(1 + batches)
  expect(well.requests).toHaveLength(1 + batches)
})
