import { Agent, request } from 'node:http'
import { connect } from 'node:net'
import { expect, test } from 'vitest'
import { openPressure } from '../../src/collect/gate/pressure.ts'
import { whenCalmer, whenRoom } from '../../src/collect/gate/retry-after.ts'
import { collectLimits } from '../../src/collect/limits.ts'
import { basic, startCollecting } from '../support/collecting.ts'
import { until } from '../support/until.ts'

const aTrack = { userId: 'u1', event: 'e', messageId: 'm1' }
const authorization = basic('wk_web')

test('a log that is away answers 503, and readiness says so until it is back', async () => {
  const { post, log, url } = await startCollecting()
  log.behave('fail')
  const reply = await post('/v1/track', aTrack)
  expect(reply).toMatchObject({ status: 503, json: { success: false, code: 'log_unavailable' } })
  expect((await fetch(`${url}/health/ready`)).status).toBe(503)
  log.behave('take')
  expect((await post('/v1/track', aTrack)).status).toBe(200)
  expect((await fetch(`${url}/health/ready`)).status).toBe(200)
})

test('a log that does not answer is given up on in time, and what it holds stays counted', async () => {
  const limits = { ...collectLimits, appendMsMax: 100, inFlightBytesMax: 1_000 }
  const { post, log } = await startCollecting({ limits })
  log.behave('hold')
  const properties = { pad: 'x'.repeat(400) }
  expect((await post('/v1/track', { ...aTrack, properties })).status).toBe(503)
  const reply = await post('/v1/track', { ...aTrack, properties })
  expect(reply).toMatchObject({ status: 429, json: { code: 'overloaded' } })
  log.behave('take')
  log.release()
  await until(async () => (await post('/v1/track', aTrack)).status === 200)
})

test('with too many bytes in flight it answers 429 and when to come again', async () => {
  const limits = { ...collectLimits, inFlightBytesMax: 15_000 }
  const { post, log, counted } = await startCollecting({ limits })
  log.behave('hold')
  const call = { ...aTrack, properties: { pad: 'x'.repeat(9_000) } }
  const first = post('/v1/track', call)
  await until(() => log.waiting() === 1)
  const refused = await post('/v1/track', call)
  expect(refused).toMatchObject({ status: 429, json: { success: false, code: 'overloaded' } })
  expect(Number(refused.headers.get('retry-after'))).toBeGreaterThanOrEqual(1)
  expect(refused.headers.get('x-ratelimit-reset')).toMatch(/^\d+$/)
  expect(counted.get('requests.refused overloaded')).toBe(1)
  log.release()
  expect((await first).status).toBe(200)
  log.behave('take')
  expect((await post('/v1/track', call)).status).toBe(200)
})

test('stopping answers what is in flight, closes connections, and takes no more', async () => {
  const { url, log, stop, done } = await startCollecting()
  log.behave('hold')
  const agent = new Agent({ keepAlive: true })
  const answered = new Promise<[number | undefined, string | undefined]>((resolve, reject) => {
    const sent = request(`${url}/v1/track`, { method: 'POST', agent, headers: { authorization } })
    sent
      .on('response', (response) =>
        resolve([response.resume().statusCode, response.headers.connection]),
      )
      .on('error', reject)
    sent.end(JSON.stringify(aTrack))
  })
  await until(() => log.waiting() === 1)
  const stopped = stop()
  await until(() => refusesConnections(url))
  log.release()
  expect(await answered).toEqual([200, 'close'])
  await stopped
  await done
  expect(log.appended).toHaveLength(1)
  agent.destroy()
})

const refusesConnections = (url: string) =>
  new Promise<boolean>((resolve) => {
    const socket = connect(Number(new URL(url).port), '127.0.0.1')
    socket.on('error', () => resolve(true))
    socket.on('connect', () => {
      socket.destroy()
      resolve(false)
    })
  })

test('stopping twice waits for the same end', async () => {
  const { stop, done } = await startCollecting()
  await Promise.all([stop(), stop(), done])
})

test('a client that never finishes its request does not hold up stopping', async () => {
  const limits = { ...collectLimits, drainMsMax: 200 }
  const { url, stop } = await startCollecting({ limits })
  const sent = request(`${url}/v1/track`, {
    method: 'POST',
    headers: { authorization, 'content-length': 100 },
  })
  const closed = new Promise((resolve) => sent.on('error', resolve))
  await new Promise<void>((resolve) => sent.write('{', () => resolve()))
  await until(async () => (await fetch(`${url}/health/live`)).status === 200)
  await stop()
  await closed
})

test('a log that fails at once does not leave the connection unusable', async () => {
  const { post, log } = await startCollecting()
  log.behave('fail')
  for (let at = 0; at < 20; at += 1) expect((await post('/v1/track', aTrack)).status).toBe(503)
})

test('historical calls are refused first, with everything that came beside them', async () => {
  const limits = { ...collectLimits, inFlightBytesMax: 100_000, historicalBytesMax: 9_000 }
  const { post, log } = await startCollecting({ limits })
  const live = { ...aTrack, type: 'track', properties: { pad: 'x'.repeat(9_000) } }
  const old = { ...live, timestamp: '2012-12-02T00:30:08.276Z' }
  expect((await post('/v1/track', old)).status).toBe(200)
  log.behave('hold')
  const first = post('/v1/track', live)
  await until(() => log.waiting() === 1)
  const refused = await post('/v1/batch', { batch: [live, old] })
  expect(refused).toMatchObject({ status: 429, json: { code: 'overloaded' } })
  expect(Number(refused.headers.get('retry-after'))).toBeGreaterThanOrEqual(1)
  const second = post('/v1/batch', { batch: [live, live] })
  await until(() => log.waiting() === 2)
  log.release()
  expect([(await first).status, (await second).status]).toEqual([200, 200])
  log.behave('take')
  expect((await post('/v1/batch', { batch: [live, old] })).status).toBe(200)
  expect(log.appended).toHaveLength(6)
})

test('what was refused is part of what is demanded, and is forgotten within a minute', () => {
  let now = 0
  const pressure = openPressure(1_000, () => now)
  const share = pressure.open()
  expect(share.add(600)).toBe(true)
  const other = pressure.open()
  expect(other.add(300)).toBe(true)
  expect(other.add(200)).toBe(false)
  expect([pressure.held(), pressure.demanded()]).toEqual([900, 1_400])
  pressure.refused(500)
  expect(pressure.demanded()).toBe(1_900)
  now = 7_000
  expect(pressure.demanded()).toBeCloseTo(900 + 1_000 * Math.exp(-0.7))
  now = 60_000
  expect(pressure.demanded()).toBeLessThan(903)
})

test.each<[number, number, number, number]>([
  [2, 0, 0, 1],
  [2, 1, 0, 1],
  [2, 1, 0.999, 3],
  [2, 5, 0, 5],
  [2, 5, 0.999, 15],
  [2, 10_000, 0.5, 300],
])('after %i s, with %d times too much and the die at %d, one may come in %i s', (...given) => {
  const [seconds, excess, random, expected] = given
  expect(whenCalmer({ seconds, excess, random })).toBe(expected)
})

test.each([
  [1, 1],
  [1_000, 1],
  [1_001, 2],
  [10_000_000, 300],
])('room in %i ms is room in %i s', (waitMs, seconds) => {
  expect(whenRoom(waitMs)).toBe(seconds)
})
