// A log under load, receivers that remember everything, and deliver processes to kill: what must hold afterwards.
import type { ChildProcess } from 'node:child_process'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect } from 'vitest'
import { type LedgerLine, loadLedger, sumLedger } from '../../src/deliver/ledger.ts'
import type { DeliverLimits } from '../../src/deliver/limits.ts'
import { digestOf, logKey } from '../../src/domain/message.ts'
import { openCodecs } from '../../src/log/avro.ts'
import type { Database } from '../support/database.ts'
import { until } from '../support/until.ts'
import { openCommittedCheck } from './committed.ts'
import type { ChildStart, Failpoint } from './failpoint.ts'
import { type Life, startLife } from './life.ts'
import { type LineLog, postgresLog } from './line-log.ts'
import { type Manner, openSeen } from './seen.ts'

const codecs = await openCodecs({})

type Options = {
  readonly database: Database
  /** On the database when absent. */
  readonly log?: LineLog
  /** One for each destination. */
  readonly manners: readonly Manner[]
  readonly users: number
  readonly callsPerSecond: number
  /** No more is appended while so many pairs have not arrived: on a machine that does much else; no bound when absent. */
  readonly aheadMax?: number
  /** Of the processes' clocks. */
  readonly speed: number
  readonly limits?: Partial<DeliverLimits>
}

const loadEveryMs = 50
const againMs = 100

export const openLine = async (options: Options) => {
  const { database, manners, speed } = options
  const log = options.log ?? postgresLog(database.pool)
  const seen = openSeen(manners)
  const port = await seen.listen()
  const targets = manners.map((_, at) => ({
    url: `http://127.0.0.1:${port}/${at + 1}`,
    sourceId: 1,
  }))
  const from = Date.now()
  const { aheadMax = Number.POSITIVE_INFINITY } = options
  const isAhead = (appended: number) => appended * manners.length - seen.pairs() > aheadMax
  const load = openLoad(log, { ...options, isAhead })
  const lives = new Set<ChildProcess>()
  const start = async (fail: { at: Failpoint; times: number } | null = null): Promise<Life> => {
    const given: ChildStart = {
      databaseUrl: database.url,
      log: log.choice,
      targets,
      fail,
      clock: { from, speed },
      limits: options.limits ?? {},
    }
    return startLife(given, lives)
  }
  const balanced = async () => {
    const lines = await loadLedger(database.pool)
    const wrong = lines.filter(({ gap }) => gap !== 0n)
    expect(wrong, 'the ledger has a gap').toEqual([])
    const { consumed, gap: _, ...outcomes } = sumLedger(lines)
    expect(Object.values(outcomes).reduce((sum, some) => sum + some, 0n)).toBe(consumed)
    return lines
  }
  /** With all that says why. */
  const buried = async () => {
    const { rows } = await database.pool.query(
      `select d.destination_id, d.topic, d.partition, d.log_offset, d.message_id, d.reason, d.status, d.attempts,
         d.first_try_at, d.dead_at, (select array_agg(a.started_at::text || ' ' || a.outcome order by a.started_at)
           from attempt a where a.message_id = d.message_id and a.destination_id = d.destination_id) as tries
         from dead d order by d.dead_at limit 20`,
    )
    return rows
  }
  return {
    seen,
    start,
    balanced,
    appended: load.appended,
    failedAppends: load.failed,
    endLoad: load.end,
    /** No position, and no offset committed, is beyond a message that is not settled. */
    committed: openCommittedCheck({ log, pool: database.pool, seen, destinations: manners.length }),
    /** Every pair has been delivered, as receivers saw it and as the ledger says. */
    settled: async (): Promise<readonly LedgerLine[]> => {
      const pairs = load.appended() * manners.length
      const ledger = async () => sumLedger(await loadLedger(database.pool))
      await untilAll(seen.pairs, pairs)
      await until(
        async () => {
          const { inFlight, parked, consumed, duplicate } = await ledger()
          return inFlight === 0n && parked === 0n && consumed - duplicate >= BigInt(pairs)
        },
        'nothing is in flight or parked',
        240_000,
      )
      expect(seen.pairs()).toBe(pairs)
      const lines = await balanced()
      const { delivered, dead, consumed, duplicate } = sumLedger(lines)
      const repeated = lines.reduce((sum, line) => sum + line.repeated, 0n)
      expect(await buried()).toEqual([])
      expect(dead).toBe(0n)
      expect(delivered - repeated).toBe(BigInt(pairs))
      // An append that failed may have been written all the same, and was made again.
      expect(consumed - repeated - duplicate).toBe(BigInt(pairs))
      expect(seen.unstable).toEqual([])
      return lines
    },
    close: async () => {
      await load.giveUp()
      for (const child of lives) child.kill('SIGKILL')
      await seen.close()
      await log.close()
    },
  }
}

const stuckMs = 240_000
const lookMs = 50

/** However much waits, and however slow the machine is: it must only go on. */
const untilAll = async (count: () => number, all: number): Promise<void> => {
  let [known, since] = [-1, 0]
  while (count() < all) {
    const now = performance.now()
    if (count() > known) [known, since] = [count(), now]
    if (now - since > stuckMs)
      throw new Error(`${known} of ${all} pairs, and no more in ${stuckMs} ms`)
    await sleep(lookMs)
  }
}

type Loading = Options & { readonly isAhead: (appended: number) => boolean }

/** Appends all the time; what failed is appended again until it is there. */
const openLoad = ({ appender }: LineLog, { users, callsPerSecond, isAhead }: Loading) => {
  let appended = 0
  let failed = 0
  let isLoading = true
  let isGivenUp = false
  const append = async (count: number) => {
    const calls = Array.from({ length: count }, (_, at) => aCall(appended + at + 1, { users }))
    const entries = calls.map((call) => ({ key: logKey(call), value: codecs.call.encode(call) }))
    for (;;) {
      try {
        await appender.append('calls', entries)
        break
      } catch {
        failed += 1
        if (isGivenUp) return
        await sleep(againMs)
      }
    }
    appended += count
  }
  const loading = (async () => {
    while (isLoading) {
      if (!isAhead(appended))
        await append(Math.max(1, Math.round((callsPerSecond * loadEveryMs) / 1_000)))
      await sleep(loadEveryMs)
    }
  })()
  return {
    appended: () => appended,
    failed: () => failed,
    end: async () => {
      isLoading = false
      await loading
    },
    /** Also when the log is away. */
    giveUp: async () => {
      isLoading = false
      isGivenUp = true
      await loading
    },
  }
}

type Caller = { readonly users: number; readonly sourceId?: number }

export const aCall = (n: number, { users, sourceId = 1 }: Caller) => {
  const now = Date.now()
  const message = {
    messageId: `m${n}`,
    type: 'track' as const,
    workspaceId: 1,
    sourceId,
    userId: `u${n % users}`,
    anonymousId: null,
    previousId: null,
    groupId: null,
    event: 'Order Completed',
    timestamp: now,
    originalTimestamp: now,
    sentAt: null,
    receivedAt: now,
    body: Buffer.from(JSON.stringify({ properties: { n } })),
    filtered: null,
  }
  return { ...message, digest: digestOf(message) }
}
