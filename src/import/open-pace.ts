// Looks at the line now and again, and lets imports have the share of the time that leaves live calls alone.
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Logger } from 'pino'
import type { History } from '../log/log.ts'
import type { Sql } from '../postgres/sql.ts'
import { type Pace, paceLimits, pauseOf, type Signs, shareOf } from './pace.ts'

type Deps = {
  readonly sql: Sql
  readonly history: Pick<History, 'bounds'>
  readonly logger: Logger
}

const lookEveryMs = 1_000
/** Loops are looked at this often: what is later than that is delay. */
const resolutionMs = 10

export const openPace = (deps: Deps): Pace & { close(): void } => {
  const loop = monitorEventLoopDelay({ resolution: resolutionMs })
  let looked: { readonly at: number; readonly ends: Ends } | null = null
  let looking: Promise<void> | null = null
  let share = 1
  let owedMs = 0
  let isClosed = false
  const look = async () => {
    loop.enable()
    const at = performance.now()
    const delayMs = Math.max(0, loop.percentile(90) / 1e6 - resolutionMs)
    loop.reset()
    const ends = await readEnds(deps)
    const seconds = looked === null ? 0 : (at - looked.at) / 1_000
    // What came in between is live traffic; a first look, or one after a long rest, knows of none.
    const isKnown = looked !== null && seconds < 10
    const came = isKnown ? Number(ends.calls - (looked?.ends.calls ?? 0n)) / seconds : 0
    looked = { at, ends }
    share = shareOf(share, signsOf(ends, { livePerSecond: came, loopDelayMs: delayMs }))
  }
  const lookNowAndAgain = async () => {
    if (looked !== null && performance.now() - looked.at < lookEveryMs) return
    looking ??= look()
      .catch((error: unknown) => deps.logger.warn({ err: error }, 'import.not_paced'))
      .finally(() => {
        looking = null
      })
    await looking
  }
  return {
    wait: async () => {
      await lookNowAndAgain()
      while (owedMs > 0 && !isClosed) {
        const pauseMs = Math.min(owedMs, lookEveryMs)
        owedMs -= pauseMs
        await sleep(pauseMs)
        await lookNowAndAgain()
        if (share >= 1) owedMs = 0
      }
      const startedAt = performance.now()
      while (share === 0 && !isClosed && performance.now() - startedAt < paceLimits.waitMsMax) {
        await sleep(lookEveryMs)
        await lookNowAndAgain()
      }
      return share > 0 && !isClosed
    },
    working: async (work) => {
      const startedAt = performance.now()
      try {
        return await work()
      } finally {
        owedMs = Math.min(
          paceLimits.waitMsMax,
          owedMs + pauseOf(share, performance.now() - startedAt),
        )
      }
    },
    close: () => {
      isClosed = true
      loop.disable()
    },
  }
}

type Ends = { readonly calls: bigint; readonly liveLag: number; readonly importLag: number }

const signsOf = (
  { liveLag, importLag }: Ends,
  own: Pick<Signs, 'livePerSecond' | 'loopDelayMs'>,
): Signs => ({ ...own, liveLag, importLag })

const readEnds = async ({ sql, history }: Deps): Promise<Ends> => {
  const [calls, imported, { rows }] = await Promise.all([
    history.bounds('calls'),
    history.bounds('calls.import'),
    sql.query<{ reader: string; topic: string; partition: number; next: bigint }>(
      `select reader, topic, partition, next from position where topic in ('calls', 'calls.import')`,
    ),
  ])
  const lagOf = (topic: string, bounds: readonly { readonly end: bigint }[]) => {
    const behind = new Map<string, number>()
    for (const { reader, topic: own, partition, next } of rows)
      if (own === topic)
        behind.set(
          reader,
          (behind.get(reader) ?? 0) + Number((bounds[partition]?.end ?? next) - next),
        )
    return Math.max(0, ...behind.values())
  }
  return {
    calls: calls.reduce((sum, { end }) => sum + end, 0n),
    liveLag: lagOf('calls', calls),
    importLag: lagOf('calls.import', imported),
  }
}
