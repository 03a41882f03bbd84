import { Agent, request } from 'node:http'
import { connect } from 'node:net'
import { expect, test } from 'vitest'
import { collectLimits } from '../../src/collect/limits.ts'
import { basic, startCollecting } from '../support/collecting.ts'

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
  await expect.poll(async () => (await post('/v1/track', aTrack)).status).toBe(200)
})

test('with too many bytes in flight it answers 429 and when to come again', async () => {
  const limits = { ...collectLimits, inFlightBytesMax: 15_000 }
  const { post, log, counted } = await startCollecting({ limits })
  log.behave('hold')
  const call = { ...aTrack, properties: { pad: 'x'.repeat(9_000) } }
  const first = post('/v1/track', call)
  await expect.poll(() => log.waiting()).toBe(1)
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
  await expect.poll(() => log.waiting()).toBe(1)
  const stopped = stop()
  await expect.poll(() => refusesConnections(url)).toBe(true)
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
  await expect.poll(async () => (await fetch(`${url}/health/live`)).status).toBe(200)
  await stop()
  await closed
})

test('a log that fails at once does not leave the connection unusable', async () => {
  const { post, log } = await startCollecting()
  log.behave('fail')
  for (let at = 0; at < 20; at += 1) expect((await post('/v1/track', aTrack)).status).toBe(503)
})
