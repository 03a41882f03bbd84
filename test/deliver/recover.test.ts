// Dead messages that go out again: each once, at their rate, through crashes, pauses and second deaths.
import { afterEach, describe, expect, test } from 'vitest'
import {
  countMatching,
  type DeadFilter,
  findRecovery,
  insertRecovery,
  type Recovery,
  steerRecovery,
} from '../../src/admin/recovery-store.ts'
import { loadLedger, sumLedger } from '../../src/deliver/ledger.ts'
import { aDestination, aLive, to } from '../support/configuration.ts'
import { until } from '../support/until.ts'
import { useRig } from './rig.ts'

const minute = 60_000

describe('recovering dead messages', async () => {
  afterEach(async () => {
    // Whatever was killed or withdrawn: every pair consumed has its outcome.
    expect(sumLedger(await loadLedger(pool)).gap).toBe(0n)
  })
  const { open, receiver, database, rowsOf, drained } = await useRig()
  const { pool } = database
  const anyOf = (over: Partial<DeadFilter> = {}): DeadFilter => ({
    ...{ destinationId: 1, reason: null, type: null, status: null },
    ...{ messageId: null, since: null, until: null },
    ...over,
  })

  const setUp = async (limits = {}) => {
    const target = await receiver()
    const destination = aDestination({ webhooks: to(target.url) })
    const live = aLive({ destinations: [destination] })
    const line = open(live, { partitions: 2, limits: { recoverEveryMs: 20, ...limits } })
    const recoverFrom = async (over: Partial<DeadFilter> = {}, ratePerSecond = 1_000) => {
      const at = new Date(line.now())
      const filter = anyOf(over)
      const matched = await countMatching(pool, filter, at)
      return insertRecovery(pool, { filter, actor: 'test', ratePerSecond, matched, at })
    }
    /** Calls that the receiver refuses for good, each of another visitor; now and then it takes another one. */
    const die = async (calls: number, over = {}) => {
      target.reply(({ json }) => (json['event'] === 'Fine' ? 200 : 400))
      const dead = Array.from({ length: calls }, (_, n) => line.aCall({ userId: `u${n}`, ...over }))
      for (let at = 0; at < calls; at += 10) {
        await line.append(dead.slice(at, at + 10))
        await drained(line)
        await line.append([line.aCall({ userId: 'fine', event: 'Fine' }, { event: 'Fine' })])
        await drained(line)
      }
      target.requests.splice(0)
      return dead.map(({ messageId }) => messageId)
    }
    return { target, live, destination, line, recoverFrom, die }
  }

  const found = async (id: number) => (await findRecovery(pool, id)) as Recovery
  const finished = (id: number) =>
    until(async () => {
      const { state, waiting } = await found(id)
      return state === 'finished' && waiting === 0
    }, 'the recovery has finished and nothing of it waits')
  const idsOf = (requests: readonly { readonly json: Record<string, unknown> }[]) =>
    requests.map(({ json }) => (json['properties'] as { n: number }).n)

  test('what died goes out again once, and the recovery says so', async () => {
    const { target, line, recoverFrom, die } = await setUp()
    line.start()
    await die(30)
    expect(await rowsOf('dead')).toHaveLength(30)
    target.reply(() => 200)
    line.setNow(line.now() + 5 * minute)
    const id = await recoverFrom()
    await finished(id)
    expect(target.requests.length).toBe(30)
    expect(new Set(idsOf(target.requests)).size).toBe(30)
    expect(target.badSignatures).toEqual([])
    expect(await found(id)).toMatchObject({
      ...{ matched: 30, recovered: 30, delivered: 30, waiting: 0, diedAgain: 0 },
      endedAt: new Date(line.now()),
    })
    const again = await recoverFrom()
    await finished(again)
    expect(await found(again)).toMatchObject({ matched: 0, recovered: 0 })
    expect(target.requests.length).toBe(30)
  })

  test('only what the filter names goes out', async () => {
    const { target, line, recoverFrom, die } = await setUp()
    line.start()
    const [first] = await die(3)
    line.setNow(line.now() + minute)
    await die(2, { type: 'page' })
    const at = new Date(line.now())
    expect(await countMatching(pool, anyOf({ type: 'page' }), at)).toBe(2)
    expect(await countMatching(pool, anyOf({ since: at }), at)).toBe(2)
    expect(await countMatching(pool, anyOf({ until: at }), at)).toBe(3)
    expect(await countMatching(pool, anyOf({ reason: 'status_400', status: 400 }), at)).toBe(5)
    expect(await countMatching(pool, anyOf({ reason: 'expired' }), at)).toBe(0)
    expect(await countMatching(pool, anyOf({ destinationId: 2 }), at)).toBe(0)
    target.reply(() => 200)
    await finished(await recoverFrom({ messageId: first as string }))
    await finished(await recoverFrom({ type: 'page', until: new Date(line.now() + 1) }))
    expect(target.requests.map(({ json }) => json['type'])).toEqual(['track', 'page', 'page'])
  })

  test('what dies again is dead once more, is not taken twice by the same recovery, and is by the next', async () => {
    const { target, line, recoverFrom, die } = await setUp()
    line.start()
    await die(4)
    const first = await recoverFrom()
    await finished(first)
    expect(target.requests).toHaveLength(4)
    expect(await found(first)).toMatchObject({ recovered: 4, diedAgain: 4, delivered: 0 })
    target.reply((_, index) => (index % 2 === 0 ? 200 : 400))
    const second = await recoverFrom()
    await finished(second)
    expect(target.requests).toHaveLength(8)
    expect(await found(second)).toMatchObject({ recovered: 4, diedAgain: 2, delivered: 2 })
    expect(await found(first)).toMatchObject({ recovered: 4, diedAgain: 4, delivered: 0 })
  })

  test('what died again stays counted when the dead are forgotten', async () => {
    const { target, line, recoverFrom, die } = await setUp({
      houseEveryMs: 20,
      deadKeepMs: 10 * minute,
    })
    line.start()
    await die(12)
    line.setNow(line.now() + minute)
    const id = await recoverFrom()
    await finished(id)
    expect(await found(id)).toMatchObject({ recovered: 12, diedAgain: 12, delivered: 0 })
    line.setNow(line.now() + 11 * minute)
    await until(async () => (await rowsOf('dead')).length === 0, 'the dead are forgotten')
    expect(await found(id)).toMatchObject({
      recovered: 12,
      diedAgain: 12,
      delivered: 0,
      waiting: 0,
    })
    expect(target.requests).toHaveLength(12)
  })

  test('what is on its way again is not forgotten with the dead', async () => {
    const { target, line, recoverFrom, die } = await setUp({
      houseEveryMs: 20,
      deadKeepMs: 10 * minute,
    })
    line.start()
    await die(6)
    const witness = await rowsOf('dead')
    line.setNow(line.now() + minute)
    // Not enough in a row to have its URL left alone.
    target.reply(({ json }) => ((idsOf([{ json }])[0] as number) % 2 === 0 ? 503 : 200))
    const id = await recoverFrom()
    await until(async () => (await found(id)).delivered === 3, 'half of them are delivered')
    target.reply(() => 400)
    line.setNow(line.now() + 11 * minute)
    await finished(id)
    expect(witness).toHaveLength(6)
    expect(await found(id)).toMatchObject({ recovered: 6, diedAgain: 3, delivered: 3, waiting: 0 })
  })

  test('a recovered message has a window of its own', async () => {
    const { target, line, recoverFrom, die } = await setUp()
    line.start()
    await die(1)
    line.setNow(line.now() + 24 * 60 * minute)
    target.reply(() => 503)
    const id = await recoverFrom()
    await until(async () => (await rowsOf('parked')).some(({ attempts }) => attempts === 1))
    target.reply(() => 200)
    line.setNow(line.now() + 10 * minute)
    await finished(id)
    expect(await found(id)).toMatchObject({ delivered: 1, diedAgain: 0 })
    expect(await rowsOf('parked')).toEqual([])
  })

  test('its rate holds, whatever the number of processes', async () => {
    const { target, line, recoverFrom, die } = await setUp()
    line.start()
    await die(25)
    line.start()
    target.reply(() => 200)
    const id = await recoverFrom({}, 10)
    for (const recovered of [10, 20, 25]) {
      await until(async () => (await found(id)).delivered >= recovered)
      expect((await found(id)).recovered).toBe(recovered)
      line.setNow(line.now() + 1_000)
    }
    await finished(id)
    expect(target.requests).toHaveLength(25)
  })

  test('paused, it sends nothing more; resumed, it goes on where it was', async () => {
    const { target, line, recoverFrom, die } = await setUp()
    line.start()
    await die(12)
    target.reply(() => 200)
    const id = await recoverFrom({}, 5)
    await until(async () => (await found(id)).delivered === 5)
    const at = new Date(line.now())
    expect(await steerRecovery(pool, { id, from: ['running'], to: 'paused', at })).toBe(true)
    line.setNow(line.now() + minute)
    // A sentinel of its own proves that recoveries were looked at meanwhile.
    const sentinel = await recoverFrom({ reason: 'nothing' })
    await finished(sentinel)
    expect((await found(id)).recovered).toBe(5)
    const later = new Date(line.now())
    await steerRecovery(pool, { id, from: ['paused'], to: 'running', at: later })
    await until(async () => (await found(id)).delivered === 10)
    expect((await found(id)).recovered).toBe(10)
    line.setNow(line.now() + minute)
    await finished(id)
    expect(target.requests).toHaveLength(12)
  })

  test('cancelled, what it has parked is dead again and can be recovered later', async () => {
    const { target, line, recoverFrom, die } = await setUp()
    line.start()
    await die(10)
    target.reply(() => 503)
    const id = await recoverFrom({}, 6)
    await until(async () => {
      const parked = await rowsOf('parked')
      return parked.length === 6 && parked.every(({ attempts }) => attempts === 1)
    })
    const at = new Date(line.now())
    await steerRecovery(pool, { id, from: ['running'], to: 'cancelled', at })
    await until(async () => (await rowsOf('parked')).length === 0)
    expect(await found(id)).toMatchObject({ state: 'cancelled', recovered: 0, diedAgain: 0 })
    expect(await countMatching(pool, anyOf(), at)).toBe(10)
    target.reply(() => 200)
    await finished(await recoverFrom())
    expect(target.requests).toHaveLength(6 + 10)
  })

  test('a kill between any two transactions sends each message again at least once, and none is lost', async () => {
    const { target, line, recoverFrom, die } = await setUp({ recoverMax: 7 })
    const first = line.start()
    const dead = await die(40)
    first.crash()
    target.reply(() => 200)
    const id = await recoverFrom({}, 40)
    for (let transactions = 1; transactions < 7; transactions += 1) {
      const life = line.start()
      let left = transactions
      life.afterTransaction = () => {
        left -= 1
        if (left === 0) life.crash()
      }
      line.setNow(line.now() + 31_000)
      await until(async () => left <= 0 || (await found(id)).state === 'finished')
      if (left > 0) life.crash()
    }
    line.setNow(line.now() + 31_000)
    line.start()
    // A request that a busy machine gave up on is tried again when its time has come.
    await until(async () => {
      line.setNow(line.now() + 100)
      const { state, waiting } = await found(id)
      return state === 'finished' && waiting === 0
    }, 'the recovery has finished and nothing of it waits')
    expect(await found(id)).toMatchObject({ matched: 40, recovered: 40, delivered: 40 })
    expect(new Set(idsOf(target.requests)).size).toBe(dead.length)
  })

  test('live messages of the same visitor do not wait for what is sent again', async () => {
    const { target, line, recoverFrom, die } = await setUp()
    line.start()
    await die(1)
    target.reply(({ json }) => ((json['properties'] as { n: number }).n === 1 ? 503 : 200))
    const id = await recoverFrom()
    await until(async () => (await rowsOf('parked')).some(({ attempts }) => attempts === 1))
    await line.append([line.aCall({ userId: 'u0' })])
    await drained(line)
    expect(idsOf(target.requests)).toEqual([1, 3])
    expect((await found(id)).waiting).toBe(1)
  })

  test('messages of one visitor go out in the order they were accepted', async () => {
    const { target, line, recoverFrom, die } = await setUp({ recoverMax: 3 })
    line.start()
    await die(12, { userId: 'u1' })
    target.reply(() => 200)
    await finished(await recoverFrom())
    expect(idsOf(target.requests)).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12])
  })

  test('a recovery for a destination that is off waits, and is over when the destination is gone', async () => {
    const { target, live, destination, line, recoverFrom, die } = await setUp()
    line.start()
    await die(2)
    target.reply(() => 200)
    live.replace({ destinations: [{ ...destination, enabled: false }] })
    const id = await recoverFrom()
    // Meanwhile the desk works and recoveries are looked at.
    await line.append([line.aCall({ userId: 'sentinel' })])
    await drained(line)
    expect(await found(id)).toMatchObject({ state: 'running', recovered: 0 })
    live.replace({ destinations: [] })
    await until(async () => (await found(id)).state === 'cancelled')
    expect(target.requests).toEqual([])
  })
})
