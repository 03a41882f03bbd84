// Who is suppressed while messages wait in memory: nothing of theirs begins any more.
import { expect, test } from 'vitest'
import type { Suppressions } from '../../src/domain/suppression.ts'
import { aDestination, aLive, aSource, to } from '../support/configuration.ts'
import { until } from '../support/until.ts'
import { useRig } from './rig.ts'

const { receiver, open, rowsOf, drained } = await useRig()

test('what waits for its first try does not go out once its user is suppressed', async () => {
  const hook = await receiver()
  const answering = Promise.withResolvers<void>()
  hook.reply(async ({ body }) => {
    if (String(body).includes('"first"')) await answering.promise
    return 200
  })
  const rig = open(
    aLive({
      sources: [aSource()],
      destinations: [aDestination({ webhooks: to(hook.url) })],
    }),
    { partitions: 1 },
  )
  let version = 1n
  const suppressed = new Set<string | null>()
  const suppressions: Suppressions = {
    isSuppressed: ({ userId }) => suppressed.has(userId),
    version: () => version,
  }
  const life = rig.start({}, 60_000, { suppressions })
  const call = (userId: string, event: string) => rig.aCall({ userId, event }, { userId, event })
  await rig.append([call('ann', 'first'), call('ann', 'second'), call('ben', 'other')])
  await until(() => hook.requests.length === 2, 'the first of each is on its way')
  suppressed.add('ann')
  version += 1n
  answering.resolve()
  await drained(rig)
  await life.running.stop()
  expect(hook.requests.map(({ body }) => JSON.parse(String(body)).event).sort()).toEqual([
    'first',
    'other',
  ])
  expect((await rowsOf('dead')).map(({ reason }) => reason)).toEqual(['cancelled'])
})
