// When many messages of a broken URL are due at once, one of them finds out how it is, and the others must not be left over.
import { expect, test } from 'vitest'
import { aDestination, aLive, to } from '../support/configuration.ts'
import { until, untilStill } from '../support/until.ts'
import { useRig } from './rig.ts'

const { receiver, open, rowsOf } = await useRig()

test('a probe that fails leaves nothing behind that keeps the next probe from being made', async () => {
  const hook = await receiver()
  hook.reply(() => 503)
  // Looks about as often as the clock is put forward below, however slow the machine is.
  const rig = open(aLive({ destinations: [aDestination({ webhooks: to(hook.url) })] }), {
    limits: { claimEveryMs: 5, urlEveryMs: 5 },
  })
  rig.start()
  const total = 12
  await rig.append(Array.from({ length: total }, (_, at) => rig.aCall({ userId: `u${at}` })))
  await until(async () => (await rowsOf('parked')).length === total, 'all are parked')
  // All of them are due, and one may find out.
  const tried = hook.requests.length
  rig.setNow(rig.now() + 10_000)
  await until(() => hook.requests.length > tried, 'the URL is probed')
  await until(
    async () => (await rowsOf('parked')).filter(({ lease_owner }) => lease_owner).length === 0,
    'nothing is in hand that is not tried',
  )
  // One finds out for all of them.
  await untilStill(
    async () => hook.requests.length + (await rowsOf('parked')).length,
    'it is quiet',
  )
  expect(hook.requests.length).toBe(tried + 1)

  hook.reply(() => 200)
  const healedAt = rig.now()
  await until(async () => {
    rig.setNow(rig.now() + 1_000)
    return (await rowsOf('parked')).length === 0
  }, 'all are delivered')
  // By the probes, and not by last tries.
  expect(rig.now() - healedAt).toBeLessThan(3_600_000)
  expect(await rowsOf('dead')).toEqual([])
})
