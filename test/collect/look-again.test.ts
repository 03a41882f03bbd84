// Keys that this process has not heard of yet: made a moment ago in another one, or made up.
import { hash } from 'node:crypto'
import { expect, test } from 'vitest'
import { openLookAgain } from '../../src/collect/request/look-again.ts'
import { basic, startCollecting } from '../support/collecting.ts'
import { aLive, aSource } from '../support/configuration.ts'
import { until } from '../support/until.ts'

const aTrack = { type: 'track', userId: 'u1', event: 'e', messageId: 'm1' }
const batch = { batch: [aTrack] }

/** A source that another process has saved, and of which this one hears only when it looks. */
const startBehind = async () => {
  const live = aLive({ sources: [aSource()] })
  let looks = 0
  const refresh = async () => {
    looks += 1
    const secretKeyHash = hash('sha256', 'sk_new', 'hex')
    live.replace({ sources: [aSource(), aSource({ id: 9, writeKey: 'wk_new', secretKeyHash })] })
  }
  return { ...(await startCollecting({ live, refresh })), looks: () => looks }
}

/** One that ends when it is told to. */
const aHeldLook = () => {
  let looks = 0
  const { promise: held, resolve: release } = Promise.withResolvers<void>()
  const refresh = () => {
    looks += 1
    return held
  }
  return { refresh, release, looks: () => looks }
}

test.each([
  ['in the header', batch, { authorization: basic('wk_new') }],
  ['in the body', { ...batch, writeKey: 'wk_new' }, {}],
  ['that is secret', batch, { authorization: basic('sk_new') }],
])(
  'a key %s that was made in another process is known at its first call',
  async (_, body, headers) => {
    const { post, log, looks } = await startBehind()
    expect((await post('/v1/batch', body, headers)).status).toBe(200)
    expect(log.appended.map(({ message }) => message.sourceId)).toEqual([9])
    expect(looks()).toBe(1)
  },
)

test('keys that are known, and requests without one, cost no look', async () => {
  const { post, looks } = await startBehind()
  expect((await post('/v1/batch', batch, { authorization: basic('wk_web') })).status).toBe(200)
  expect((await post('/v1/batch', batch, {})).status).toBe(401)
  expect(looks()).toBe(0)
})

test('a key that nobody made is refused after a look', async () => {
  const { refresh, release, looks } = aHeldLook()
  const { post } = await startCollecting({ refresh })
  const asked = Array.from({ length: 20 }, (_, at) =>
    post('/v1/batch', batch, { authorization: basic(`wk_made_up_${at}`) }),
  )
  await until(() => looks() > 0)
  release()
  expect(new Set((await Promise.all(asked)).map(({ status }) => status))).toEqual(new Set([401]))
})

test('who asks while a look is under way shares it', async () => {
  const { refresh, release, looks } = aHeldLook()
  const lookAgain = openLookAgain(refresh, () => 0)
  const all = Array.from({ length: 20 }, () => lookAgain())
  release()
  await Promise.all(all)
  expect(looks()).toBe(1)
})

test('however many keys are made up, one look a second is made for them', async () => {
  let at = 0
  let looks = 0
  const refresh = async () => {
    looks += 1
  }
  const lookAgain = openLookAgain(refresh, () => at)
  for (at = 0; at < 3_000; at += 1) await lookAgain()
  expect(looks).toBe(3)
})
