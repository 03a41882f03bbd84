// A deliver process of the chaos tests, from its start to whatever end it comes to.
import { type ChildProcess, fork } from 'node:child_process'
import { setTimeout as sleep } from 'node:timers/promises'
import { startFlags } from '../support/start-flags.ts'
import type { ChildStart, News } from './failpoint.ts'
import type { Blow } from './seen.ts'

export type Life = {
  readonly done: Promise<void>
  readonly seen: Told
  /** Resolves when it is gone. */
  kill9(): Promise<void>
  /** Rejects when it does not end with 0. */
  stop(): Promise<void>
  logTail(): string
}

/** What it told, by this process's time. */
export type Told = {
  /** What had been settled by then is in its last position. */
  settledAt: number
  /** How long it, its database or the machine hung at the most, by what it told later than it should. */
  lateMs: number
  /** Whenever partitions were taken from it, and what was in its last position then. */
  readonly lost: Blow[]
  /** How long it had fewer partitions than before, in all. */
  awayMs(): number
  /** Partitions that stand still now, by reason; every such state it had, and since when. */
  paused: Readonly<Record<string, number>>
  readonly pauses: { readonly at: number; readonly paused: Readonly<Record<string, number>> }[]
  rss: number
  rssMax: number
  /** URLs whose breaker is open, and of those asked now, those asked more than once at a time. */
  shut: number
  crowded: number
  /** Requests that were given up, whose receivers may have answered all the same. */
  unheard: number
}

const tailMax = 8_192

export const startLife = async (given: ChildStart, lives: Set<ChildProcess>): Promise<Life> => {
  const child = fork(new URL('./deliver-child.ts', import.meta.url), [], {
    execArgv: [...startFlags],
    stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
  })
  lives.add(child)
  let tail = ''
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    tail = (tail + text).slice(-tailMax)
  })
  const seen = openTold(child)
  const done = new Promise<void>((resolve) => child.once('exit', () => resolve())).then(() => {
    lives.delete(child)
  })
  child.send(given)
  await Promise.race([
    new Promise((resolve) => child.once('message', resolve)),
    done.then(() => {
      if (child.signalCode !== 'SIGKILL') throw new Error(`deliver did not start:\n${tail}`)
    }),
  ])
  return {
    done,
    seen,
    logTail: () => tail,
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

/** As the process tells it. */
const standingEveryMs = 100

/** From when partitions are lost until as many are read again. */
const openAway = () => {
  let [held, most, sum] = [0, 0, 0]
  let since: number | null = null
  return {
    ms: () => sum + (since === null ? 0 : performance.now() - since),
    gained: (at: number) => {
      held += 1
      most = Math.max(most, held)
      if (since === null || held < most) return
      sum += at - since
      since = null
    },
    lost: (at: number) => {
      held -= 1
      since ??= at
    },
  }
}

const openTold = (child: ChildProcess): Told => {
  const away = openAway()
  const told: Told = {
    settledAt: performance.now(),
    lateMs: 0,
    lost: [],
    awayMs: away.ms,
    paused: {},
    pauses: [],
    rss: 0,
    rssMax: 0,
    shut: 0,
    crowded: 0,
    unheard: 0,
  }
  let toldAt: number | null = null
  child.on('message', (news: News) => {
    const at = performance.now()
    if (news.type === 'standing') {
      if (toldAt !== null) told.lateMs = Math.max(told.lateMs, at - toldAt - standingEveryMs)
      toldAt = at
    }
    if (news.type === 'position') {
      told.settledAt = at - news.tookMs
      told.lateMs = Math.max(told.lateMs, news.tookMs)
    } else if (news.type === 'lost') {
      told.lost.push({ at, settledAt: told.settledAt })
      away.lost(at)
    } else if (news.type === 'gained') away.gained(at)
    else if (news.type === 'standing') {
      if (JSON.stringify(news.paused) !== JSON.stringify(told.paused))
        told.pauses.push({ at, paused: news.paused })
      told.paused = news.paused
      const { rss, shut, crowded, unheard } = news
      Object.assign(told, { rss, shut, crowded, unheard, rssMax: Math.max(told.rssMax, rss) })
    }
  })
  return told
}

export type Supervised = {
  /** The one that lives now. */
  now(): Life
  /** All there were: one more for each that ended by itself. */
  readonly lives: readonly Life[]
  stop(): Promise<void>
}

const againMs = 500

/** As a service manager does: one that ended by itself is started again. */
export const supervise = async (start: () => Promise<Life>): Promise<Supervised> => {
  const lives = [await start()]
  let isStopping = false
  const now = () => lives.at(-1) as Life
  const watching = (async () => {
    while (!isStopping) {
      await now().done
      if (isStopping) return
      await sleep(againMs)
      lives.push(await start())
    }
  })()
  return {
    now,
    lives,
    stop: async () => {
      isStopping = true
      await now().stop()
      await watching
    },
  }
}
