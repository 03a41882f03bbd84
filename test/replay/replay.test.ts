// A replay from the log to a receiver: what is selected, once each, in order, and what it says of itself.
import { afterEach, describe, expect, test } from 'vitest'
import { loadLedger, sumLedger } from '../../src/deliver/ledger.ts'
import type { Message } from '../../src/domain/message.ts'
import { aDestination, aLive, to } from '../support/configuration.ts'
import { until } from '../support/until.ts'
import { numberOf, numbersOf, useReplays } from './rig.ts'

describe('a replay', async () => {
  const { receiver, open, pool, drained, startReplays, ask, found, reached } = await useReplays()
  afterEach(async () => {
    expect(sumLedger(await loadLedger(pool)).gap).toBe(0n)
  })

  const setUp = async (over: Parameters<typeof aDestination>[0] = {}) => {
    const hook = await receiver()
    const destination = aDestination({ webhooks: to(hook.url), ...over })
    const live = aLive({ destinations: [destination] })
    const line = open(live, { partitions: 2, limits: { recoverEveryMs: 20, positionEveryMs: 10 } })
    const calls = (count: number, call = {}) =>
      Array.from({ length: count }, (_, n) => line.aCall({ userId: `u${n % 7}`, ...call }))
    return { hook, live, line, calls }
  }

  test('sends again what was sent before, in each visitor’s order, once', async () => {
    const { hook, live, line, calls } = await setUp()
    line.start()
    const sent = calls(100)
    await line.append(sent)
    await drained(line)
    expect(hook.requests).toHaveLength(100)
    hook.requests.splice(0)
    startReplays(line, live)
    const id = await ask(line)
    await reached(line, id, 'finished')
    const numbers = numbersOf(hook.requests)
    expect(numbers.toSorted((a, b) => a - b)).toEqual(sent.map(numberOf))
    for (let user = 0; user < 7; user += 1) {
      const of = hook.requests.filter(({ json }) => json['userId'] === `u${user}`)
      const own = numbersOf(of)
      expect(own, `u${user}`).toEqual(own.toSorted((a, b) => a - b))
    }
    expect(hook.badSignatures).toEqual([])
    expect(await found(id)).toMatchObject({
      ...{ selected: 100, sent: 100, delivered: 100, waiting: 0, parked: 0, givenUp: 0 },
      ...{ duplicate: 0, expired: 0, total: 100, read: 100 },
    })
  })

  test('takes what its filters name, and of users no others', async () => {
    const { hook, live, line, calls } = await setUp()
    startReplays(line, live)
    const [a, b, c] = [
      calls(3, { event: 'Bought', userId: 'ada' }),
      calls(3, { event: 'Seen', userId: 'ada' }),
      calls(3, { event: 'Bought', userId: null, anonymousId: 'x' }),
    ]
    const others = [
      ...calls(2, { event: 'Bought', userId: 'bob' }),
      ...calls(2, { type: 'identify', event: null, userId: 'ada' }),
      ...calls(2, { sourceId: 2, event: 'Bought', userId: 'ada' }),
      ...calls(2, { event: 'Bought', userId: 'ada', filtered: 'plan' }),
    ]
    await line.append([...a, ...b, ...c, ...others])
    line.start()
    await drained(line)
    hook.requests.splice(0)
    const id = await ask(line, {
      types: ['track'],
      events: ['Bought'],
      userIds: ['ada'],
      anonymousIds: ['x'],
    })
    await reached(line, id, 'finished')
    expect(numbersOf(hook.requests).toSorted((x, y) => x - y)).toEqual([...a, ...c].map(numberOf))
  })

  test('compares the receipt or the call’s own time, the end excluded', async () => {
    const { hook, live, line } = await setUp()
    const start = line.now()
    const hour = 3_600_000
    const all: Message[] = []
    for (let n = 0; n < 4; n += 1) {
      line.setNow(start + n * hour)
      all.push(line.aCall({ timestamp: start - n * hour }))
      await line.append(all.slice(-1))
    }
    line.start()
    await drained(line)
    hook.requests.splice(0)
    startReplays(line, live)
    const span = { since: new Date(start + hour), until: new Date(start + 3 * hour) }
    await reached(line, await ask(line, span), 'finished')
    expect(numbersOf(hook.requests)).toEqual([all[1], all[2]].map((call) => call && numberOf(call)))
    hook.requests.splice(0)
    const own = { since: new Date(start - 2 * hour), until: new Date(start) }
    await reached(line, await ask(line, { by: 'timestamp', ...own }), 'finished')
    expect(numbersOf(hook.requests)).toEqual([all[1], all[2]].map((call) => call && numberOf(call)))
  })

  test('integrations of a call do not count; filters and the historical switch of its destination do', async () => {
    const { hook, live, line, calls } = await setUp({
      historical: false,
      filters: [{ kind: 'drop', if: { events: ['Secret'] } }],
    })
    const off = line.aCall({}, { integrations: { All: false } })
    const old = line.aCall({ timestamp: line.now() - 48 * 3_600_000 })
    const secret = calls(1, { event: 'Secret' })
    await line.append([off, old, ...secret])
    line.start()
    await drained(line)
    expect(hook.requests).toHaveLength(0)
    startReplays(line, live)
    const id = await ask(line)
    await reached(line, id, 'finished')
    expect(numbersOf(hook.requests)).toEqual([numberOf(off)])
    expect(await found(id)).toMatchObject({ selected: 3, sent: 1, historical: 1, filtered: 1 })
  })

  test('goes to a destination that is switched off, whose live messages do not', async () => {
    const { hook, live, line, calls } = await setUp({ enabled: false })
    line.start()
    await line.append(calls(10))
    await drained(line)
    expect(hook.requests).toHaveLength(0)
    // One fails for a time, so that it is parked and claimed again as well.
    let refused = false
    hook.reply(() => {
      if (refused) return 200
      refused = true
      return 503
    })
    startReplays(line, live)
    const id = await ask(line)
    await reached(line, id, 'finished')
    expect(new Set(numbersOf(hook.requests)).size).toBe(10)
    expect(await found(id)).toMatchObject({ sent: 10, delivered: 10, givenUp: 0 })
  })

  test('leaves out whom the installation has forgotten', async () => {
    const { hook, live, line, calls } = await setUp()
    await line.append([...calls(7), ...calls(1, { userId: null, anonymousId: 'x' })])
    startReplays(line, live, {
      suppressions: {
        isSuppressed: ({ userId, anonymousId }) => userId === 'u3' || anonymousId === 'x',
      },
    })
    const id = await ask(line)
    line.start()
    await reached(line, id, 'finished')
    expect(await found(id)).toMatchObject({ selected: 8, sent: 6, suppressed: 2, delivered: 6 })
    expect(hook.requests.filter(({ json }) => json['userId'] === 'u3').length).toBe(1)
  })

  test('leaves out what a forgotten user sent with a clock that is ahead, and who is named as the previous id', async () => {
    const { line, live, calls } = await setUp()
    const asked = line.now() + 1_000
    await line.append([
      ...calls(1, { userId: 'gone', sentAt: line.now() + 86_400_000 }),
      ...calls(1, { userId: 'gone', timestamp: 0, receivedAt: asked + 1 }),
      ...calls(1, { userId: 'u1', type: 'alias', previousId: 'gone' }),
      ...calls(1, { userId: 'u1' }),
      ...calls(1, { userId: 'gone', timestamp: asked + 1, receivedAt: asked + 1 }),
    ])
    startReplays(line, live, {
      suppressions: {
        isSuppressed: ({ userId, previousId, sentAt }) =>
          (userId === 'gone' || previousId === 'gone') && sentAt.getTime() < asked,
      },
    })
    const id = await ask(line)
    line.start()
    await reached(line, id, 'finished')
    expect(await found(id)).toMatchObject({ selected: 5, sent: 2, suppressed: 3 })
  })

  test('takes what is told of before somebody was deleted as told before it', async () => {
    const { live, line } = await setUp()
    const deletedAt = line.now() - 3_600_000
    // Imported after the deletion, and of before it; the second is of after it.
    await line.append([
      line.aCall({ userId: 'ada', timestamp: deletedAt - 30 * 86_400_000 }),
      line.aCall({ userId: 'ada', timestamp: deletedAt + 1 }),
    ])
    startReplays(line, live, {
      suppressions: {
        isSuppressed: ({ userId, sentAt }) => userId === 'ada' && sentAt.getTime() < deletedAt,
      },
    })
    const id = await ask(line)
    line.start()
    await reached(line, id, 'finished')
    expect(await found(id)).toMatchObject({ selected: 2, sent: 1, suppressed: 1, delivered: 1 })
  })

  test('withholds what stands in its topic of whom the installation forgets then, visitors too', async () => {
    const { hook, live, line, calls } = await setUp()
    const kept = [...calls(2, { userId: 'ada' }), ...calls(2, { userId: null, anonymousId: 'y:1' })]
    const forgotten = [
      ...calls(1, { userId: null, anonymousId: 'x:1' }),
      ...calls(1, { userId: 'ada', anonymousId: 'x:1' }),
      // A clock that is ahead does not carry it past the deletion.
      ...calls(1, { userId: 'bob', timestamp: line.now() + 86_400_000 }),
      ...calls(1, { type: 'alias', event: null, userId: 'ada', previousId: 'bob' }),
    ]
    await line.append([...kept, ...forgotten])
    startReplays(line, live)
    const id = await ask(line)
    await until(async () => {
      line.setNow(line.now() + 1_000)
      return (await found(id)).state === 'draining'
    }, 'all of it is in the topic')
    expect((await found(id)).sent).toBe(8)
    const deletedAt = line.now()
    line.start({}, 5_000, {
      suppressions: {
        isSuppressed: ({ userId, anonymousId, previousId, sentAt }) =>
          sentAt.getTime() < deletedAt &&
          (userId === 'bob' || anonymousId === 'x:1' || previousId === 'bob'),
      },
    })
    await reached(line, id, 'finished')
    await drained(line)
    const numbers = kept.map(numberOf)
    expect(hook.requests.filter(({ json }) => json['type'] === 'alias')).toEqual([])
    expect(numbersOf(hook.requests).toSorted((a, b) => a - b)).toEqual(
      [...numbers, ...numbers].toSorted((a, b) => a - b),
    )
    expect(sumLedger(await loadLedger(pool)).suppressed).toBe(4n)
  })

  test('what a client sent twice is replayed once, and a second replay sends it again', async () => {
    const { hook, live, line, calls } = await setUp()
    const first = calls(5)
    await line.append([...first, ...first.slice(0, 3)])
    line.start()
    await drained(line)
    expect(hook.requests).toHaveLength(5)
    startReplays(line, live)
    for (let replay = 1; replay <= 2; replay += 1) {
      const id = await ask(line)
      await reached(line, id, 'finished')
      expect(hook.requests).toHaveLength(5 * (replay + 1))
      expect(await found(id)).toMatchObject({ selected: 8, sent: 5, duplicate: 3 })
    }
    expect(
      (await pool.query('select from duplicate_chunk where reader like $1', ['replay:%'])).rows,
    ).toEqual([])
  })
})
