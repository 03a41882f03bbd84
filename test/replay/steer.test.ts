// A replay that is watched and steered: its rate, its bound, pause, cancel, and what it says afterwards.
import { afterEach, describe, expect, test } from 'vitest'
import { loadLedger, sumLedger } from '../../src/deliver/ledger.ts'
import { aDestination, aLive, to } from '../support/configuration.ts'
import { until } from '../support/until.ts'
import { numberOf, numbersOf, useReplays } from './rig.ts'

describe('a replay', async () => {
  const {
    receiver,
    open,
    pool,
    drained,
    startReplays,
    ask,
    found,
    reached,
    steer,
    rowsOf,
    codecs,
  } = await useReplays()
  afterEach(async () => {
    expect(sumLedger(await loadLedger(pool)).gap).toBe(0n)
  })

  const setUp = async (count: number) => {
    const hook = await receiver()
    const destination = aDestination({ webhooks: to(hook.url) })
    const live = aLive({ destinations: [destination] })
    const line = open(live, { partitions: 2, limits: { recoverEveryMs: 20, positionEveryMs: 10 } })
    const calls = Array.from({ length: count }, (_, n) => line.aCall({ userId: `u${n % 9}` }))
    await line.append(calls)
    line.start()
    await drained(line)
    hook.requests.splice(0)
    return { hook, live, line, calls, destination }
  }
  const sentOf = async (line: Awaited<ReturnType<typeof setUp>>['line']) => {
    const bounds = await line.log.source().bounds('outbound.replay')
    return bounds.reduce((sum, { end }) => sum + Number(end), 0)
  }
  /** So many more looks at the clock, none of which may find room. */
  const looks = async (line: Awaited<ReturnType<typeof setUp>>['line'], times: number) => {
    let seen = 0
    const { now } = line
    line.now = () => {
      seen += 1
      return now()
    }
    await until(() => seen >= times, 'the clock is looked at')
    line.now = now
  }

  test('keeps its rate, however time passes', async () => {
    const { live, line } = await setUp(100)
    startReplays(line, live)
    const id = await ask(line, { ratePerSecond: 10 })
    await until(async () => (await found(id)).total !== null, 'it is planned')
    await looks(line, 20)
    expect(await sentOf(line)).toBe(0)
    for (let second = 1; second <= 4; second += 1) {
      line.setNow(line.now() + 1_000)
      await until(async () => (await sentOf(line)) >= 10 * second, 'a second’s worth is sent')
      await looks(line, 20)
      expect(await sentOf(line)).toBe(10 * second)
    }
    // A long pause saves up no more than a second.
    line.setNow(line.now() + 3_600_000)
    await until(async () => (await sentOf(line)) >= 50, 'a second’s worth is sent')
    await looks(line, 20)
    expect(await sentOf(line)).toBe(50)
    expect((await found(id)).etaSeconds).toBeGreaterThan(0)
  })

  test('pauses where it is and goes on from there', async () => {
    const { hook, live, line, calls } = await setUp(60)
    startReplays(line, live)
    const id = await ask(line, { ratePerSecond: 20 })
    await until(async () => (await found(id)).total !== null, 'it is planned')
    await looks(line, 5)
    line.setNow(line.now() + 1_000)
    await until(() => hook.requests.length === 20, 'a part is delivered')
    expect(await steer(line, id, 'paused')).toBe(true)
    // Who begins another one has heard of the pause.
    const sentinel = await ask(line, { destinationId: 2 })
    await until(async () => (await found(sentinel)).total !== null, 'another one is planned')
    line.setNow(line.now() + 60_000)
    await line.append([line.aCall({ userId: 'sentinel' })])
    await until(() => hook.requests.length === 21, 'the sentinel is delivered')
    expect(await found(id)).toMatchObject({ state: 'paused', sent: 20, delivered: 20 })
    expect(await steer(line, id, 'running')).toBe(true)
    await reached(line, id, 'finished')
    const replayed = hook.requests.filter(({ json }) => json['userId'] !== 'sentinel')
    expect(numbersOf(replayed).toSorted((a, b) => a - b)).toEqual(calls.map(numberOf))
  })

  test('cancelled, sends nothing more and says how many went out', async () => {
    const { hook, live, line, calls } = await setUp(100)
    hook.reply(() => (hook.requests.length > 10 ? 'hang' : 200))
    startReplays(line, live)
    const id = await ask(line)
    await until(async () => {
      line.setNow(line.now() + 1_000)
      return hook.requests.length > 10 && (await found(id)).sent === 100
    }, 'some are delivered and the rest is on its way')
    expect(await steer(line, id, 'cancelled')).toBe(true)
    await until(async () => {
      line.setNow(line.now() + 100)
      return (await found(id)).isSettled
    }, 'nothing of it is on its way')
    const { delivered, givenUp, sent, state } = await found(id)
    expect([state, sent, delivered + givenUp]).toEqual(['cancelled', 100, 100])
    expect(delivered).toBe(10)
    const dead = await rowsOf('dead')
    expect(dead).toHaveLength(90)
    // The next one is another one: nothing of the first withholds it.
    hook.reply(() => 200)
    hook.requests.splice(0)
    const next = await ask(line)
    await reached(line, next, 'finished')
    expect(numbersOf(hook.requests).toSorted((a, b) => a - b)).toEqual(calls.map(numberOf))
    expect(await steer(line, next, 'cancelled')).toBe(false)
  })

  test('waits while so much of it is outstanding, and goes on when its receiver is well', async () => {
    const { hook, live, line, calls } = await setUp(200)
    hook.reply(() => 503)
    startReplays(line, live, { limits: { sliceMax: 10, outstandingMax: 40 } as never })
    const id = await ask(line)
    await until(async () => {
      line.setNow(line.now() + 100)
      return (await found(id)).sent >= 40
    }, 'the bound is reached')
    const { parked, waiting, delivered, sent } = await found(id)
    expect(parked + waiting + delivered).toBe(sent)
    await looks(line, 50)
    // What was appended between two looks may pass the bound by a slice.
    expect(await sentOf(line)).toBeLessThanOrEqual(60)
    hook.reply(() => 200)
    await until(async () => {
      line.setNow(line.now() + 2_000)
      return (await found(id)).isSettled
    }, 'all of it went out')
    expect(new Set(numbersOf(hook.requests))).toEqual(new Set(calls.map(numberOf)))
    expect(await found(id)).toMatchObject({ sent: 200, delivered: 200, givenUp: 0 })
  })

  test('one for each destination at a time, and none for one that is gone', async () => {
    const { live, line } = await setUp(20)
    const id = await ask(line, { ratePerSecond: 0.01 })
    expect(await ask(line)).toBe('replay_open')
    expect(typeof (await ask(line, { destinationId: 2 }))).toBe('number')
    startReplays(line, live)
    await until(async () => (await found(id)).total !== null, 'it is planned')
    // Also one that is waiting for its rate hears of it.
    await looks(line, 20)
    live.replace({ destinations: [] })
    await until(async () => (await found(id)).state === 'cancelled', 'it is cancelled')
    await until(async () => {
      line.setNow(line.now() + 100)
      return (await found(id)).isSettled
    }, 'it is over')
  })

  test('cancelled, makes way for another one only when all who deliver have heard of its end', async () => {
    const { live, line } = await setUp(5)
    startReplays(line, live)
    const id = await ask(line, { ratePerSecond: 0.01 })
    await until(async () => (await found(id)).total !== null, 'it is planned')
    await steer(line, id, 'cancelled')
    const isCut = async () =>
      (await pool.query('select from replay where id = $1 and cut', [id])).rowCount === 1
    await until(isCut, 'it is cut')
    // Its leader has seen the cut by then: of two looks at the clock one is after it.
    await looks(line, 2)
    for (const ms of [0, 1_000, 999]) {
      line.setNow(line.now() + ms)
      await looks(line, 5)
      expect(await ask(line)).toBe('replay_open')
      expect((await found(id)).isSettled).toBe(false)
    }
    line.setNow(line.now() + 1)
    await until(async () => (await found(id)).isSettled, 'it is over')
    expect(typeof (await ask(line))).toBe('number')
  })

  test('what it cannot read pauses it, with the reason', async () => {
    const { live, line } = await setUp(1)
    await line.log.appender().append('calls', [{ key: 'x', value: Buffer.from('no record') }])
    startReplays(line, live, { history: line.log.source(), codecs })
    const id = await ask(line)
    await until(async () => (await found(id)).state === 'paused', 'it is paused')
    expect((await found(id)).trouble).toBe('schema_unknown')
  })

  test('says what had left the log before it was read', async () => {
    const { hook, live, line } = await setUp(40)
    const [first] = await line.log.source().bounds('calls')
    const id = await ask(line, { ratePerSecond: 1 })
    startReplays(line, live, { limits: { sliceMax: 1 } as never })
    await until(async () => (await found(id)).total !== null, 'it is planned')
    await looks(line, 5)
    line.setNow(line.now() + 1_000)
    await until(async () => (await found(id)).sent === 1, 'it has begun')
    await steer(line, id, 'paused')
    // Who begins another one has heard of the pause, and holds nothing it read before.
    const other = await ask(line, { destinationId: 2 })
    await until(async () => (await found(other)).total !== null, 'another one is planned')
    const end = Number(first?.end ?? 0n)
    line.log.truncate('calls', 0, BigInt(end))
    await steer(line, id, 'running')
    await reached(line, id, 'finished')
    const { expired, sent } = await found(id)
    expect(expired).toBeGreaterThan(0)
    expect(expired + sent).toBe(40)
    expect(hook.requests).toHaveLength(sent)
  })
})
