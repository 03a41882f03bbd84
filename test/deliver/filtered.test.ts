// Records of calls that were filtered at their source: in the log for usage, and for no destination.
import { expect, test } from 'vitest'
import { decodeState } from '../../src/deliver/position-state.ts'
import { aDestination, aLive, to } from '../support/configuration.ts'
import { useRig } from './rig.ts'

const { receiver, open, rowsOf, drained, database } = await useRig()

test('a filtered record is sent nowhere and counts as no outcome; one that repeats its id is a duplicate', async () => {
  const hook = await receiver()
  const webhooks = to(hook.url)
  const rig = open(aLive({ destinations: [aDestination({ webhooks })] }), { partitions: 1 })
  rig.start()
  const kept = rig.aCall()
  const filtered = { ...rig.aCall(), filtered: 'plan_violated', body: Buffer.from('{}') }
  await rig.append([filtered, kept, { ...filtered, filtered: null }])
  await drained(rig)
  expect(hook.requests.map(({ json }) => json['properties'])).toEqual([{ n: 1 }])
  expect(await rowsOf('parked')).toEqual([])
  expect(await rowsOf('dead')).toEqual([])
  const { rows } = await database.pool.query<{ state: Buffer; next: bigint }>(
    "select state, next from position where reader = 'deliver' and topic = 'calls'",
  )
  const counters = rows.map(({ state, next }) => decodeState(state, Number(next)).counters)
  expect(counters).toMatchObject([{ delivered: 1n, filtered: 0n, duplicate: 1n, dead: 0n }])
})
