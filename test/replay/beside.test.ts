// Replays beside live messages that fill the lane, and beside each other where their receivers are slow.
import { afterEach, describe, expect, test } from 'vitest'
import { loadLedger, sumLedger } from '../../src/deliver/ledger.ts'
import { aDestination, aLive, to } from '../support/configuration.ts'
import { until } from '../support/until.ts'
import { numberOf, numbersOf, useReplays } from './rig.ts'

describe('a replay', async () => {
  const { receiver, open, pool, drained, startReplays, ask, found, reached } = await useReplays()
  afterEach(async () => {
    expect(sumLedger(await loadLedger(pool)).gap).toBe(0n)
  })

  const inOrder = (numbers: readonly number[]) => numbers.toSorted((a, b) => a - b)

  test('lets all live messages of its destination pass, and goes on after them', async () => {
    const hook = await receiver()
    const live = aLive({ destinations: [aDestination({ webhooks: to(hook.url) })] })
    const limits = { recoverEveryMs: 20, positionEveryMs: 10, urlConcurrencyMax: 4 }
    const line = open(live, { partitions: 1, limits })
    const past = Array.from({ length: 200 }, (_, n) => line.aCall({ userId: `past${n % 40}` }))
    await line.append(past)
    const before = line.start()
    await drained(line)
    await before.running.stop()
    hook.requests.splice(0)
    // Both wait in the log before anything is delivered, and all live ones are read together: which comes first is
    // the lanes' decision alone.
    startReplays(line, live)
    const id = await ask(line)
    await until(async () => {
      line.setNow(line.now() + 1_000)
      return (await found(id)).sent === 200
    }, 'all of it is on its way')
    const lives = Array.from({ length: 200 }, (_, n) => line.aCall({ userId: `live${n % 40}` }))
    await line.append(lives)
    line.start()
    await until(() => hook.requests.length >= 400, 'all are delivered', 60_000)
    await reached(line, id, 'finished')
    const isLive = hook.requests.map(({ json }) => String(json['userId']).startsWith('live'))
    // But for what was under way before the first of them was read, and while the next ones are.
    const whileLive = isLive.slice(isLive.indexOf(true), isLive.lastIndexOf(true))
    expect(whileLive.filter((is) => !is).length).toBeLessThan(50)
    const got = [...new Set(numbersOf(hook.requests))]
    expect(inOrder(got)).toEqual(inOrder([...past, ...lives].map(numberOf)))
  })

  test('goes on though live messages of its destination never cease', async () => {
    const hook = await receiver()
    const live = aLive({ destinations: [aDestination({ webhooks: to(hook.url) })] })
    const limits = { recoverEveryMs: 20, positionEveryMs: 10, urlConcurrencyMax: 2 }
    const line = open(live, { partitions: 2, limits })
    const past = Array.from({ length: 15 }, (_, n) => line.aCall({ userId: `past${n}` }))
    await line.append(past)
    line.start()
    await drained(line)
    hook.requests.splice(0)
    // One comes for each that is answered: so many wait at any time.
    const waiting = 150
    let isCeasing = false
    const appending: Promise<unknown>[] = []
    const more = (amount: number) =>
      Array.from({ length: amount }, (_, n) =>
        line.aCall({ userId: `live${(appending.length + n) % 50}` }),
      )
    const isLive = (json: Record<string, unknown>) => String(json['userId']).startsWith('live')
    hook.reply(({ json }) => {
      if (!isCeasing && isLive(json)) appending.push(line.append(more(1)))
      return 200
    })
    await line.append(more(waiting))
    startReplays(line, live)
    const id = await ask(line, { userIds: past.map(({ userId }) => String(userId)) })
    await reached(line, id, 'finished')
    isCeasing = true
    await Promise.all(appending)
    await drained(line)
    const replayed = hook.requests.filter(({ json }) => !isLive(json))
    expect(inOrder([...new Set(numbersOf(replayed))])).toEqual(past.map(numberOf))
  }, 120_000)

  test('whose receiver is down holds up no other one, and both are whole in the end', async () => {
    const [ill, well] = [await receiver(), await receiver()]
    const destinations = [
      aDestination({ id: 1, name: 'ill', webhooks: to(ill.url) }),
      aDestination({ id: 2, name: 'well', webhooks: to(well.url) }),
    ]
    const live = aLive({ destinations })
    // So little room that what cannot be delivered at once overflows.
    const limits = { recoverEveryMs: 20, positionEveryMs: 10, replayLaneMax: 10, fullMs: 20 }
    const line = open(live, { partitions: 1, limits })
    const calls = Array.from({ length: 150 }, (_, n) => line.aCall({ userId: `u${n % 30}` }))
    await line.append(calls)
    line.start()
    await drained(line)
    for (const hook of [ill, well]) hook.requests.splice(0)
    ill.reply(() => 503)
    startReplays(line, live)
    const first = await ask(line, { destinationId: 1 })
    await until(async () => {
      line.setNow(line.now() + 1_000)
      return (await found(first)).sent === 150
    }, 'the first one is in the topic')
    const second = await ask(line, { destinationId: 2 })
    await reached(line, second, 'finished')
    expect(inOrder([...new Set(numbersOf(well.requests))])).toEqual(calls.map(numberOf))
    expect(await found(second)).toMatchObject({ sent: 150, delivered: 150, givenUp: 0 })
    expect((await found(first)).delivered).toBe(0)
    ill.reply(() => 200)
    ill.requests.splice(0)
    await reached(line, first, 'finished')
    expect(await found(first)).toMatchObject({ sent: 150, delivered: 150, givenUp: 0 })
    expect(inOrder([...new Set(numbersOf(ill.requests))])).toEqual(calls.map(numberOf))
  })
})
