import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { openQuotas } from '../../src/collect/gate/quota.ts'
import { defaultSourceSettings } from '../../src/domain/configuration.ts'
import { startCollecting } from '../support/collecting.ts'
import { aLive, aSource } from '../support/configuration.ts'
import { noon } from '../support/receipt.ts'

const withQuota = (callsPerSecondMax: number | null) =>
  aSource({ settings: { ...defaultSourceSettings, callsPerSecondMax } })

describe('a bucket', () => {
  const source = withQuota(10)
  const full = () => openQuotas({ collectors: () => 1 })

  test('holds what may be sent in ten seconds, and then fills at the quota', () => {
    const quotas = full()
    expect(quotas.take(source, { calls: 100, at: noon })).toBe(0)
    expect(quotas.take(source, { calls: 1, at: noon })).toBe(100)
    expect(quotas.take(source, { calls: 1, at: noon + 99 })).toBe(1)
    expect(quotas.take(source, { calls: 1, at: noon + 100 })).toBe(0)
    expect(quotas.take(source, { calls: 1, at: noon + 100 })).toBe(100)
  })

  test('gives nothing to a request that it has not enough for', () => {
    const quotas = full()
    quotas.take(source, { calls: 95, at: noon })
    expect(quotas.take(source, { calls: 6, at: noon })).toBe(100)
    expect(quotas.take(source, { calls: 5, at: noon })).toBe(0)
  })

  test('lets a batch through that is larger than itself when it is full, and is then paid off', () => {
    const quotas = full()
    expect(quotas.take(source, { calls: 1_000, at: noon })).toBe(0)
    // 900 calls are owed: after 90 s it is empty, and not in debt.
    expect(quotas.take(source, { calls: 1, at: noon + 1_000 })).toBe(89_100)
    expect(quotas.take(source, { calls: 1, at: noon + 90_100 })).toBe(0)
    expect(quotas.take(source, { calls: 1_000, at: noon + 90_100 })).toBe(10_000)
  })

  test('of a source without a quota has no end', () => {
    const quotas = full()
    expect(quotas.take(withQuota(null), { calls: 1_000_000, at: noon })).toBe(0)
    expect(quotas.take(withQuota(null), { calls: 1_000_000, at: noon })).toBe(0)
  })

  test('is shared by the processes that collect', () => {
    let processes = 4
    const quotas = openQuotas({ collectors: () => processes })
    expect(quotas.take(source, { calls: 25, at: noon })).toBe(0)
    expect(quotas.take(source, { calls: 1, at: noon })).toBe(400)
    processes = 1
    expect(quotas.take(source, { calls: 1, at: noon })).toBe(100)
  })

  test('of less than a call for each process lets one through all the same', () => {
    const quotas = openQuotas({ collectors: () => 100 })
    const slow = withQuota(1)
    expect(quotas.take(slow, { calls: 1, at: noon })).toBe(0)
    expect(quotas.take(slow, { calls: 1, at: noon })).toBe(100_000)
    expect(quotas.take(slow, { calls: 1, at: noon + 100_000 })).toBe(0)
  })

  test('takes back what was not accepted, and no more than it holds', () => {
    const quotas = full()
    quotas.take(source, { calls: 100, at: noon })
    quotas.giveBack(source, 100)
    quotas.giveBack(source, 100)
    expect(quotas.take(source, { calls: 100, at: noon })).toBe(0)
    expect(quotas.take(source, { calls: 1, at: noon })).toBe(100)
  })

  test('does not fill while a clock goes back', () => {
    const quotas = full()
    quotas.take(source, { calls: 100, at: noon })
    expect(quotas.take(source, { calls: 1, at: noon - 60_000 })).toBe(100)
    expect(quotas.take(source, { calls: 1, at: noon + 100 })).toBe(0)
  })

  test('with nothing left says when there is room for as many as came last', () => {
    const quotas = full()
    expect(quotas.spentMs(source, noon)).toBe(0)
    quotas.take(source, { calls: 100, at: noon })
    expect(quotas.spentMs(source, noon)).toBe(10_000)
    expect(quotas.spentMs(source, noon + 100)).toBe(0)
    quotas.take(source, { calls: 1, at: noon + 100 })
    quotas.take(source, { calls: 30, at: noon + 100 })
    expect(quotas.spentMs(source, noon + 100)).toBe(3_000)
  })

  test('of the source that came first goes when there are too many', () => {
    const quotas = openQuotas({ collectors: () => 1, limits: { sourcesMax: 2 } })
    for (const id of [1, 2, 3]) quotas.take({ ...source, id }, { calls: 100, at: noon })
    expect(quotas.take({ ...source, id: 3 }, { calls: 1, at: noon })).toBe(100)
    expect(quotas.take({ ...source, id: 1 }, { calls: 1, at: noon })).toBe(0)
  })

  test('never lets more through than its burst, one batch beyond it, and the quota', () => {
    const requests = fc.array(fc.tuple(fc.nat(3_000), fc.integer({ min: 1, max: 400 })))
    fc.assert(
      fc.property(requests, fc.integer({ min: 1, max: 50 }), (sent, perSecond) => {
        const quotas = full()
        let at = noon
        let taken = 0
        for (const [pauseMs, calls] of sent) {
          at += pauseMs
          const waitMs = quotas.take(withQuota(perSecond), { calls, at })
          if (waitMs > 0) {
            at += waitMs
            // Who waits as long as was said, is let in.
            expect(quotas.take(withQuota(perSecond), { calls, at })).toBe(0)
          }
          taken += calls
        }
        expect(taken).toBeLessThanOrEqual(perSecond * (10 + (at - noon) / 1_000) + 400)
      }),
    )
  })
})

describe('a source over its quota', () => {
  const start = async (callsPerSecondMax = 1) => {
    const clock = { now: noon }
    const live = aLive({ sources: [withQuota(callsPerSecondMax)] })
    const collecting = await startCollecting({ live, clock: () => new Date(clock.now) })
    return { ...collecting, clock }
  }
  const batchOf = (count: number) => ({
    batch: Array.from({ length: count }, (_, at) => ({
      type: 'track',
      userId: 'u1',
      event: 'e',
      messageId: `m${at}`,
    })),
  })

  test('is answered 429 and when to come again, and nothing of its request is taken', async () => {
    const { post, log, clock, counted } = await start()
    expect((await post('/v1/batch', batchOf(8))).status).toBe(200)
    const refused = await post('/v1/batch', batchOf(7))
    expect(refused).toMatchObject({ status: 429, json: { success: false, code: 'over_quota' } })
    expect(refused.headers.get('retry-after')).toBe('5')
    expect(refused.headers.get('x-ratelimit-reset')).toBe(String(noon / 1_000 + 5))
    expect(log.appended).toHaveLength(8)
    expect(counted.get('requests.refused over_quota')).toBe(1)
    clock.now += 5_000
    expect((await post('/v1/batch', batchOf(7))).status).toBe(200)
    expect(log.appended).toHaveLength(15)
  })

  test('is never told to wait for more than 300 s', async () => {
    const { post } = await start()
    expect((await post('/v1/batch', batchOf(1_000))).status).toBe(200)
    const refused = await post('/v1/track', { userId: 'u1', event: 'e' })
    expect([refused.status, refused.headers.get('retry-after')]).toEqual([429, '300'])
  })

  test('is refused before its body is read when nothing is left', async () => {
    const { post } = await start()
    await post('/v1/batch', batchOf(10))
    expect((await post('/v1/track', 'no JSON at all')).json).toMatchObject({ code: 'over_quota' })
  })

  test('is judged by the key in its body too', async () => {
    const { post } = await start()
    const body = { ...batchOf(10), writeKey: 'wk_web' }
    expect((await post('/v1/batch', body, {})).status).toBe(200)
    expect((await post('/v1/batch', body, {})).json).toMatchObject({ code: 'over_quota' })
  })

  test('has not used what the log did not take', async () => {
    const { post, log } = await start()
    log.behave('fail')
    expect((await post('/v1/batch', batchOf(10))).status).toBe(503)
    log.behave('take')
    expect((await post('/v1/batch', batchOf(10))).status).toBe(200)
    expect((await post('/v1/batch', batchOf(10))).status).toBe(429)
  })

  test('does not stop another, nor a disabled one from being told nothing', async () => {
    const sources = [
      withQuota(1),
      aSource({ id: 2, writeKey: 'wk_free', secretKeyHash: '2' }),
      { ...withQuota(1), id: 3, writeKey: 'wk_off', secretKeyHash: '3', enabled: false },
    ]
    const { post } = await startCollecting({ live: aLive({ sources }) })
    const statuses = []
    for (const key of ['wk_web', 'wk_web', 'wk_free', 'wk_free', 'wk_off', 'wk_off']) {
      const headers = { authorization: `Basic ${btoa(`${key}:`)}` }
      statuses.push((await post('/v1/batch', batchOf(10), headers)).status)
    }
    expect(statuses).toEqual([200, 429, 200, 200, 200, 200])
  })

  test('shares its quota with the other processes that collect', async () => {
    const live = aLive({ sources: [withQuota(10)] })
    const { post } = await startCollecting({ live, collectors: () => 5 })
    expect((await post('/v1/batch', batchOf(20))).status).toBe(200)
    const refused = await post('/v1/batch', batchOf(20))
    expect([refused.status, refused.headers.get('retry-after')]).toEqual([429, '10'])
  })
})
