import { connect } from 'node:net'
import { describe, expect, test } from 'vitest'
import { openGauge } from '../../src/collect/gate/load.ts'
import { collectLimits } from '../../src/collect/limits.ts'
import { basic, startCollecting } from '../support/collecting.ts'
import { until } from '../support/until.ts'

describe('a loop that may be 100 ms late', () => {
  const seen = (...delays: readonly number[]) => {
    const gauge = openGauge({ loopDelayMsMax: 100, loopSamples: 3, loopSampleEveryMs: 1 })
    return delays.map((delay) => {
      gauge.observe(delay)
      return gauge.excess()
    })
  }

  test('is too late when it was so three times in a row, by as much as it is', () => {
    expect(seen(101, 101, 101, 250, 90)).toEqual([0, 0, 1.01, 2.5, 1])
  })

  test('is not too late for one long pause, nor for many with calm between', () => {
    expect(seen(5_000, 0, 0, 200, 200, 99, 200, 200, 0)).toEqual(new Array(9).fill(0))
  })

  test('is on time again only when it was less than half as late, three times in a row', () => {
    const late = [101, 101, 101]
    expect(seen(...late, 60, 60, 60, 60).slice(3)).toEqual([1, 1, 1, 1])
    expect(seen(...late, 50, 50, 51, 50, 50, 50).slice(3)).toEqual([1, 1, 1, 1, 1, 0])
    expect(seen(...late, 0, 0, 0, 101, 101, 101).slice(3)).toEqual([1, 1, 0, 0, 0, 1.01])
  })
})

/** Blocks the loop that the stage runs on, turn after turn, until it is told to stop. */
const blockLoop = (turnMs: number) => {
  let isBlocking = true
  const turn = () => {
    if (!isBlocking) return
    const end = performance.now() + turnMs
    while (performance.now() < end);
    // The timers of the stage and of the test get their turn between.
    setTimeout(turn, 1)
  }
  turn()
  return () => {
    isBlocking = false
  }
}

const limits = { ...collectLimits, loopDelayMsMax: 100, loopSampleEveryMs: 10, loopSamples: 3 }
const aTrack = { userId: 'u1', event: 'e' }

test('while its loop is blocked the stage sends requests away, and takes them again after', async () => {
  const { post, log, counted } = await startCollecting({ limits })
  expect((await post('/v1/track', aTrack)).status).toBe(200)
  const stop = blockLoop(150)
  try {
    await until(async () => (await post('/v1/track', aTrack)).status === 429, 'a refusal')
    const taken = log.appended.length
    const refused = await post('/v1/track', aTrack)
    expect(refused).toMatchObject({ status: 429, json: { code: 'overloaded' } })
    expect(refused.headers.get('retry-after')).toMatch(/^([1-9]|[1-9]\d|[12]\d\d|300)$/)
    expect(log.appended).toHaveLength(taken)
    expect(counted.get('requests.refused overloaded')).toBeGreaterThanOrEqual(2)
  } finally {
    stop()
  }
  await until(async () => (await post('/v1/track', aTrack)).status === 200, 'a call that is taken')
})

test('who is sent away is answered before the body has come', async () => {
  const { url, post } = await startCollecting({ limits })
  const stop = blockLoop(150)
  const socket = connect(Number(new URL(url).port), '127.0.0.1')
  try {
    await until(async () => (await post('/v1/track', aTrack)).status === 429, 'a refusal')
    let answer = ''
    socket.setEncoding('utf8').on('data', (text: string) => {
      answer += text
    })
    const headers = `host: x\r\nauthorization: ${basic('wk_web')}\r\ncontent-length: 1000`
    socket.write(`POST /v1/track HTTP/1.1\r\n${headers}\r\n\r\n`)
    await until(() => answer.includes('overloaded'), 'an answer')
    expect(answer).toMatch(/^HTTP\/1\.1 429 /)
  } finally {
    stop()
    socket.destroy()
  }
})
