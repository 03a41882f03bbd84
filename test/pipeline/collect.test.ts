import { expect, test } from 'vitest'
import { defaultSourceSettings } from '../../src/domain/configuration.ts'
import type { Counted } from '../../src/domain/pipeline.ts'
import { basic, startCollecting } from '../support/collecting.ts'
import { aLive, aSource } from '../support/configuration.ts'
import { until } from '../support/until.ts'

const counting = async (over: Parameters<typeof startCollecting>[0] = {}) => {
  const counts = new Map<string, number>()
  const pipeline = {
    count: ({ sourceId, step, type, reason }: Counted, amount: number) => {
      const name = [sourceId, step, type, reason].filter((part) => part !== null).join(' ')
      counts.set(name, (counts.get(name) ?? 0) + amount)
    },
  }
  const collecting = await startCollecting({ ...over, pipeline })
  return { ...collecting, counts: () => Object.fromEntries([...counts].sort()) }
}

const key = (writeKey: string) => ({ authorization: basic(writeKey) })

test('every call of a batch is received, and then has one end', async () => {
  const { post, counts } = await counting()
  const { status } = await post('/v1/batch', {
    batch: [
      { type: 'track', userId: 'u1', event: 'e' },
      { type: 'track', userId: 'u1', event: 'e' },
      { type: 'page', anonymousId: 'a1' },
      { type: 'track', userId: 'u1' },
      { type: 'identify' },
      { type: 'merge', userId: 'u1' },
      'nothing of the kind',
    ],
  })
  expect(status).toBe(200)
  expect(counts()).toEqual({
    '1 appended page': 1,
    '1 appended track': 2,
    '1 received identify': 1,
    '1 received page': 1,
    '1 received track': 3,
    '1 received unknown': 2,
    '1 rejected identify no_user_anon_id': 1,
    '1 rejected track event_not_defined': 1,
    '1 rejected unknown not_an_object': 1,
    '1 rejected unknown unknown_type': 1,
  })
})

test('calls of a disabled source are filtered, those that are no calls rejected', async () => {
  const { post, counts } = await counting()
  await post('/v1/track', { userId: 'u1', event: 'e' }, key('wk_off'))
  await post('/v1/track', { userId: 'u1' }, key('wk_off'))
  expect(counts()).toEqual({
    '2 filtered track source_disabled': 1,
    '2 received track': 2,
    '2 rejected track event_not_defined': 1,
  })
})

test('a call the plan does not know is filtered and not appended', async () => {
  const trackingPlan = { mode: 'block', unplanned: 'forbid', events: {} } as const
  const source = aSource({ settings: { ...defaultSourceSettings, trackingPlan } })
  const { post, counts, log } = await counting({ live: aLive({ sources: [source] }) })
  await post('/v1/track', { userId: 'u1', event: 'e' })
  expect(counts()).toEqual({
    '1 filtered track event_not_planned': 1,
    '1 received track': 1,
  })
  expect(log.appended).toEqual([])
})

test('nothing counts as appended before the log has acknowledged it', async () => {
  const { post, counts, log } = await counting()
  log.behave('hold')
  const answer = post('/v1/track', { userId: 'u1', event: 'e' })
  await until(() => log.waiting() === 1)
  expect(counts()).toEqual({})
  log.release()
  await answer
  expect(counts()).toEqual({ '1 appended track': 1, '1 received track': 1 })
})

test('a call the log does not take is received each time it comes, and appended once', async () => {
  const { post, counts, log } = await counting()
  log.behave('fail')
  const call = { userId: 'u1', event: 'e', messageId: 'm1' }
  expect((await post('/v1/track', call)).status).toBe(503)
  log.behave('take')
  expect((await post('/v1/track', call)).status).toBe(200)
  expect(counts()).toEqual({ '1 appended track': 1, '1 received track': 2 })
})

test('a request refused whole counts no call', async () => {
  const { post, counts, counted } = await counting()
  await post('/v1/track', '{', key('wk_web'))
  await post('/v1/track', { userId: 'u1', event: 'e' }, key('wk_nobody'))
  expect(counts()).toEqual({})
  expect(counted.get('requests.refused invalid_json')).toBe(1)
})
