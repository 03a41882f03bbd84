// A replay of what is dead at its destination, by the reason: that and nothing else, once, and again what died again.
import { afterEach, describe, expect, test } from 'vitest'
import { insertRecovery } from '../../src/admin/recovery-store.ts'
import { loadLedger, sumLedger } from '../../src/deliver/ledger.ts'
import { nobodySuppressed } from '../../src/domain/suppression.ts'
import { countReplay } from '../../src/replay/count.ts'
import { aDestination, aLive, to } from '../support/configuration.ts'
import { until } from '../support/until.ts'
import { numberOf, numbersOf, useReplays } from './rig.ts'

type Dead = {
  readonly topic: string
  readonly reason: string
  readonly replayed_at: Date | null
}

describe('a replay by the reason of death', async () => {
  const { receiver, open, pool, codecs, drained, startReplays, ask, found, reached } =
    await useReplays()
  afterEach(async () => {
    expect(sumLedger(await loadLedger(pool)).gap).toBe(0n)
  })

  /** Of 30 calls ten die of 400, and five of 422: by the number of the event's name. */
  const setUp = async () => {
    const hook = await receiver()
    const destination = aDestination({ webhooks: to(hook.url) })
    const live = aLive({ destinations: [destination] })
    const line = open(live, { partitions: 2, limits: { recoverEveryMs: 20, positionEveryMs: 10 } })
    const call = (event: string, user: number) =>
      line.aCall({ userId: `u${user}`, event }, { event })
    const statusOf = ({ json }: { readonly json: Record<string, unknown> }) =>
      Number(/^Refused (\d+)$/.exec(String(json['event']))?.[1] ?? 200)
    hook.reply(statusOf)
    const calls = Array.from({ length: 30 }, (_, n) =>
      call(n % 3 === 0 ? 'Refused 400' : n % 6 === 1 ? 'Refused 422' : 'Fine', n),
    )
    line.start()
    // Never so many refusals in a row that the URL is held.
    for (let at = 0; at < calls.length; at += 3) {
      await line.append(calls.slice(at, at + 3))
      await drained(line)
    }
    hook.requests.splice(0)
    const of = (event: string) => calls.filter((one) => one.event === event).map(numberOf)
    const count = async (over: object) => {
      const { selected, sendable } = await countReplay(
        { history: line.log.source(), codecs, suppressions: nobodySuppressed, pool },
        {
          ...{ destination, at: new Date(line.now()), before: null, msMax: 60_000 },
          selection: {
            ...{ by: 'receivedAt', from: 0, until: line.now() + 1, sourceIds: new Set([1]) },
            ...{ types: null, events: null, userIds: null, anonymousIds: null, reasons: null },
            ...over,
          },
        },
      )
      return { selected, sendable }
    }
    const deadOf = async () =>
      (await pool.query<Dead>('select topic, reason, replayed_at from dead order by id')).rows
    return { hook, live, line, of, count, deadOf, statusOf }
  }
  const sorted = (numbers: readonly number[]) => numbers.toSorted((a, b) => a - b)

  test('sends that again and nothing else, and it is dead no more', async () => {
    const { hook, live, line, of, count, deadOf } = await setUp()
    expect(await deadOf()).toHaveLength(15)
    line.setNow(line.now() + 60_000)
    const reasons = new Set(['status_400'])
    expect(await count({ reasons })).toEqual({ selected: 10, sendable: 10 })
    expect(await count({ reasons: new Set(['status_400', 'status_422']) })).toMatchObject({
      selected: 15,
    })
    expect(await count({ reasons, userIds: new Set(['u0', 'u1', 'u3']) })).toMatchObject({
      selected: 2,
    })
    expect(await count({ reasons: new Set(['expired']) })).toMatchObject({ selected: 0 })
    hook.reply(() => 200)
    startReplays(line, live)
    const id = await ask(line, { since: new Date(0), reasons: ['status_400'] })
    await reached(line, id, 'finished')
    expect(sorted(numbersOf(hook.requests))).toEqual(of('Refused 400'))
    expect(await found(id)).toMatchObject({ selected: 10, sent: 10, delivered: 10, givenUp: 0 })
    expect(await count({ reasons })).toEqual({ selected: 0, sendable: 0 })
    const left = (await deadOf()).filter(({ replayed_at }) => replayed_at === null)
    expect(left.map(({ reason }) => reason)).toEqual(Array(5).fill('status_422'))
  })

  test('made again, takes up what died again, and what went out not', async () => {
    const { hook, live, line, of, count, deadOf, statusOf } = await setUp()
    line.setNow(line.now() + 60_000)
    // Three of the ten are still refused.
    const stubborn = of('Refused 400').slice(0, 3)
    hook.reply((request) => {
      const { n } = request.json['properties'] as { readonly n: number }
      return stubborn.includes(n) ? statusOf(request) : 200
    })
    startReplays(line, live)
    const wish = { since: new Date(0), reasons: ['status_400'] }
    const first = await ask(line, wish)
    await reached(line, first, 'finished')
    expect(await found(first)).toMatchObject({ sent: 10, delivered: 7, givenUp: 3 })
    const again = (await deadOf()).filter(({ topic }) => topic === 'outbound.replay')
    expect(again).toHaveLength(3)
    hook.requests.splice(0)
    hook.reply(() => 200)
    line.setNow(line.now() + 60_000)
    expect(await count({ reasons: new Set(['status_400']) })).toMatchObject({ selected: 3 })
    const second = await ask(line, { ...wish, at: new Date(line.now()) })
    await reached(line, second, 'finished')
    expect(sorted(numbersOf(hook.requests))).toEqual(stubborn)
    expect((await deadOf()).filter(({ replayed_at }) => replayed_at === null)).toHaveLength(5)
  })

  test('does not send what was sent again before its turn came', async () => {
    const { hook, live, line, of } = await setUp()
    line.setNow(line.now() + 60_000)
    hook.reply(() => 200)
    startReplays(line, live)
    const id = await ask(line, { since: new Date(0), reasons: ['status_400'], ratePerSecond: 1 })
    const sent = async () =>
      (
        await pool.query<{ n: number; partition: number }>(
          `select count(*)::int as n, max(partition) as partition from dead
            where replayed_at is not null`,
        )
      ).rows[0]
    // Never so much time that there is room for a second one.
    await until(async () => {
      const ends = await line.log.source().bounds('outbound.replay')
      const appended = ends.some(({ end }) => end > 0n)
      if (!appended) line.setNow(line.now() + 600)
      return appended && (await sent())?.n === 1
    }, 'the first is sent again')
    // Found with the first, and waiting for their turn.
    const { rows: taken } = await pool.query<{ id: string }>(
      `update dead set replayed_at = $1
        where replayed_at is null and reason = 'status_400' and partition = $2 returning id`,
      [new Date(line.now()), (await sent())?.partition],
    )
    expect(taken.length).toBeGreaterThan(0)
    await until(async () => {
      line.setNow(line.now() + 1_000)
      return (await found(id)).state === 'finished'
    }, 'the replay ends')
    await drained(line)
    const received = numbersOf(hook.requests)
    expect(received).toHaveLength(of('Refused 400').length - taken.length)
    expect(await found(id)).toMatchObject({ sent: received.length, duplicate: taken.length })
  })

  test('takes over what a recovery could not bring home, and its figures stay true', async () => {
    const { hook, live, line, count } = await setUp()
    line.setNow(line.now() + 60_000)
    const at = new Date(line.now())
    const recoveryId = await insertRecovery(pool, {
      filter: {
        ...{ destinationId: 1, reason: 'status_422', type: null, status: null },
        ...{ messageId: null, since: null, until: null },
      },
      ...{ actor: 'test', ratePerSecond: 1_000, matched: 5, at },
    })
    const standing = async () => {
      const { rows } = await pool.query<{ state: string; died: number }>(
        `select r.state, r.passed_on::int + (select count(*)::int from dead
            where recovery_id = r.id and replayed_at is null) as died
           from recovery r where id = $1`,
        [recoveryId],
      )
      return rows[0]
    }
    await until(async () => {
      line.setNow(line.now() + 1_000)
      const now = await standing()
      return now?.state === 'finished' && now.died === 5
    }, 'all of it died again')
    hook.reply(() => 200)
    hook.requests.splice(0)
    line.setNow(line.now() + 60_000)
    expect(await count({ reasons: new Set(['status_422']) })).toMatchObject({ selected: 5 })
    startReplays(line, live)
    const id = await ask(line, { since: new Date(0), reasons: ['status_422'] })
    await reached(line, id, 'finished')
    expect(hook.requests).toHaveLength(5)
    expect(await standing()).toEqual({ state: 'finished', died: 5 })
  })
})
