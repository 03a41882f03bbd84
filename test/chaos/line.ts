// A log under load, receivers that remember everything, and deliver processes to kill: what must hold afterwards.
import { type ChildProcess, fork } from 'node:child_process'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect } from 'vitest'
import { type LedgerLine, loadLedger, sumLedger } from '../../src/deliver/ledger.ts'
import { digestOf, logKey } from '../../src/domain/message.ts'
import { openCodecs } from '../../src/log/avro.ts'
import { postgresAppender } from '../../src/log/postgres.ts'
import type { Database } from '../support/database.ts'
import { isFixedPoint } from '../support/receiver.ts'
import { until } from '../support/until.ts'
import type { ChildStart, Failpoint } from './failpoint.ts'

const codecs = await openCodecs({})

/** How a destination answers: a status, after so long. */
export type Manner = () => { readonly status: number; readonly afterMs: number }

type Options = {
  readonly database: Database
  /** One for each destination. */
  readonly manners: readonly Manner[]
  readonly users: number
  readonly callsPerSecond: number
  /** Of the processes' clocks. */
  readonly speed: number
}

/** A request that was, or would have been, answered 2xx. */
type Success = {
  readonly pair: string
  readonly at: number
  endedAt: number | null
  /** The one before it of the same pair. */
  readonly before: Success | null
}

/** What came again because of a kill: of all that were under way, and those sent within an interval before it. */
export type Kill = {
  readonly at: number
  readonly duplicates: number
  readonly inFlight: number
  readonly lately: number
  /** Of those that had been answered the one answered longest before the kill: so long before. */
  readonly oldestMs: number
}

export const openLine = async (options: Options) => {
  const { database, manners, speed } = options
  const seen = openSeen(manners)
  const port = await seen.listen()
  const urls = manners.map((_, at) => `http://127.0.0.1:${port}/${at + 1}`)
  const from = Date.now()
  const appender = postgresAppender({ pool: database.pool, clock: () => new Date() })
  let appended = 0
  const append = async (count: number) => {
    const calls = Array.from({ length: count }, () => aCall(++appended, options.users))
    await appender.append(
      'calls',
      calls.map((call) => ({ key: logKey(call), value: codecs.call.encode(call) })),
    )
  }
  let isLoading = true
  const load = (async () => {
    const everyMs = 50
    while (isLoading) {
      await append(Math.max(1, Math.round((options.callsPerSecond * everyMs) / 1_000)))
      await sleep(everyMs)
    }
  })()
  const lives = new Set<ChildProcess>()
  const start = async (fail: { at: Failpoint; times: number } | null = null): Promise<Life> => {
    const given: ChildStart = { databaseUrl: database.url, urls, fail, clock: { from, speed } }
    return startChild(given, lives)
  }
  const balanced = async () => {
    const lines = await loadLedger(database.pool)
    const wrong = lines.filter(({ gap }) => gap !== 0n)
    expect(wrong, 'the ledger has a gap').toEqual([])
    const { consumed, gap: _, ...outcomes } = sumLedger(lines)
    expect(Object.values(outcomes).reduce((sum, some) => sum + some, 0n)).toBe(consumed)
    return lines
  }
  return {
    seen,
    start,
    balanced,
    appended: () => appended,
    endLoad: async () => {
      isLoading = false
      await load
    },
    /** Every pair has been delivered, as receivers saw it and as the ledger says. */
    settled: async (): Promise<readonly LedgerLine[]> => {
      const pairs = appended * manners.length
      const ledger = async () => sumLedger(await loadLedger(database.pool))
      await until(() => seen.pairs() >= pairs, 'every pair has succeeded once', 240_000)
      await until(
        async () => {
          const { inFlight, parked, consumed } = await ledger()
          return inFlight === 0n && parked === 0n && consumed >= BigInt(pairs)
        },
        'nothing is in flight or parked',
        240_000,
      )
      expect(seen.pairs()).toBe(pairs)
      const lines = await balanced()
      const { delivered, dead, consumed } = sumLedger(lines)
      const repeated = lines.reduce((sum, line) => sum + line.repeated, 0n)
      expect(dead).toBe(0n)
      expect(delivered - repeated).toBe(BigInt(pairs))
      expect(consumed - repeated).toBe(BigInt(pairs))
      expect(seen.unstable).toEqual([])
      return lines
    },
    close: async () => {
      isLoading = false
      await load
      for (const child of lives) child.kill('SIGKILL')
      await seen.close()
      await appender.close()
    },
  }
}

export type Life = {
  readonly done: Promise<void>
  kill9(): Promise<void>
  stop(): Promise<void>
}

const startChild = async (given: ChildStart, lives: Set<ChildProcess>): Promise<Life> => {
  const child = fork(new URL('./deliver-child.ts', import.meta.url), [JSON.stringify(given)], {
    execArgv: [],
    stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
  })
  lives.add(child)
  let tail = ''
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    tail = (tail + text).slice(-8_192)
  })
  const done = new Promise<void>((resolve) => child.once('exit', () => resolve())).then(() => {
    lives.delete(child)
  })
  await Promise.race([
    new Promise((resolve) => child.once('message', resolve)),
    done.then(() => {
      if (child.signalCode !== 'SIGKILL') throw new Error(`deliver did not start:\n${tail}`)
    }),
  ])
  return {
    done,
    kill9: async () => {
      child.kill('SIGKILL')
      await done
    },
    stop: async () => {
      child.kill('SIGTERM')
      await done
      if (child.exitCode !== 0) throw new Error(`deliver ended with ${child.exitCode}:\n${tail}`)
    },
  }
}

const aCall = (n: number, users: number) => {
  const now = Date.now()
  const message = {
    messageId: `m${n}`,
    type: 'track' as const,
    workspaceId: 1,
    sourceId: 1,
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

const isBetween = (time: number, to: number, from: number) => time > from && time <= to

/** One server for all destinations; a chain is a destination and a user, whose numbers must first come in order. */
const openSeen = (manners: readonly Manner[]) => {
  const successes: Success[] = []
  const last = new Map<string, Success>()
  const taken = new Set<string>()
  const chains = new Map<string, number[]>()
  const outOfOrder: string[] = []
  const unstable: string[] = []
  let requests = 0
  /** The first time a message comes, all before it in its chain must have been taken. */
  const checkOrder = (destination: number, userId: string, n: number) => {
    const key = `${destination} ${userId}`
    const known = chains.get(key) ?? []
    chains.set(key, known)
    if (known.includes(n)) return
    known.push(n)
    for (const before of known)
      if (before < n && !taken.has(`${destination} ${before}`))
        outOfOrder.push(`${key}: ${n} while ${before} is not settled`)
      else if (before > n) outOfOrder.push(`${key}: ${n} first after ${before}`)
  }
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = []
    response.on('error', () => undefined)
    try {
      for await (const chunk of request) chunks.push(chunk as Buffer)
    } catch {
      // Its sender was killed before it was whole.
      return
    }
    requests += 1
    const body = Buffer.concat(chunks)
    if (!isFixedPoint(body)) unstable.push(body.toString())
    const destination = Number(request.url?.slice(1))
    const { userId, properties } = JSON.parse(body.toString())
    const pair = `${destination} ${properties.n}`
    checkOrder(destination, userId, properties.n)
    const { status, afterMs } = (manners[destination - 1] as Manner)()
    const before = last.get(pair) ?? null
    const success: Success = { pair, at: performance.now(), endedAt: null, before }
    if (status === 200) {
      successes.push(success)
      last.set(pair, success)
    }
    if (afterMs > 0) await sleep(afterMs)
    if (response.destroyed) return
    if (status === 200) {
      success.endedAt = performance.now()
      taken.add(pair)
    }
    response.writeHead(status).end()
  })
  return {
    outOfOrder,
    unstable,
    listen: () =>
      new Promise<number>((resolve) =>
        server.listen(0, '127.0.0.1', () => resolve((server.address() as AddressInfo).port)),
      ),
    pairs: () => taken.size,
    requests: () => requests,
    /** Each repeat belongs to the kill that came next after the success before it. */
    killsAt: (times: readonly number[], positionEveryMs: number): readonly Kill[] =>
      times.map((at, index) => {
        const from = times[index - 1] ?? Number.NEGATIVE_INFINITY
        const isOf = ({ at: began, endedAt }: Success) =>
          (endedAt ?? began) > from && (endedAt ?? began) <= at
        const repeated = successes.flatMap(({ before }) => (before && isOf(before) ? [before] : []))
        const ages = repeated.flatMap(({ endedAt }) => (endedAt === null ? [] : [at - endedAt]))
        return {
          at,
          duplicates: repeated.length,
          inFlight: successes.filter((one) => isOf(one) && one.endedAt === null).length,
          lately: successes.filter(
            ({ endedAt }) => endedAt !== null && isBetween(endedAt, at, at - positionEveryMs),
          ).length,
          oldestMs: Math.max(0, ...ages),
        }
      }),
    /** Repeats that came without a kill after the success before them. */
    repeatsSince: (time: number) =>
      successes.filter(({ before }) => before && (before.endedAt ?? before.at) > time).length,
    close: () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}
