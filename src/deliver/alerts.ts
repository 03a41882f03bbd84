// Alerts: signed events to an operator's own URL about URLs that fail, dead messages, the ledger and lag.
// Bounded, told once an hour over all processes, and beside the line: nothing waits for them.
import { randomUUID } from 'node:crypto'
import type { Logger } from 'pino'
import type { Live } from '../domain/configuration.ts'
import { isOwnFault } from '../domain/round.ts'
import { sign } from '../domain/signature.ts'
import type { Post, PostResult } from '../http/post.ts'
import type { Sql } from '../postgres/sql.ts'
import type { Clock } from '../running.ts'
import { claimAlert, forgetAlerts } from './alert-store.ts'
import { type Failing, openFailing } from './failing.ts'
import type { QuotaChange } from './quota.ts'
import type { UrlEvent } from './url-change.ts'

export const alertTypes = [
  'destination.failing',
  'destination.recovered',
  'url.disabled',
  'url.rejecting',
  'url.held_tls',
  'dead_letter',
  'quota.spilling',
  'quota.braked',
  'quota.free',
  'ledger.gap',
  'lag',
] as const

export type AlertType = (typeof alertTypes)[number]

type About = Readonly<Record<string, string | number | null>>

export type Alerts = {
  urlChanged(event: UrlEvent): void
  /** Of every request: must cost next to nothing. */
  answered(destinationId: number, url: string, result: PostResult): void
  died(destinationId: number, reason: string): void
  quotaChanged(change: QuotaChange): void
  gapFound(gap: number): void
  lagging(seconds: number): void
  /** Waits for what is being sent; what still waits for its next try is given up, and logged. */
  stop(): Promise<void>
}

export const alertLimits = {
  /** The same thing is told again after this. */
  againAfterMs: 3_600_000,
  /** How long it is remembered that something was told. */
  keepMs: 86_400_000,
  queueMax: 1_000,
  /** Pauses before the tries of one alert; after the last it is given up. */
  pausesMs: [0, 1_000, 5_000, 30_000, 120_000] as readonly number[],
  /** Deaths are added up this long before they are told. */
  gatherMs: 5_000,
}

type Deps = {
  readonly url: string
  readonly secret: string | null
  readonly post: Post
  readonly sql: Sql
  readonly live: Live
  readonly clock: Clock
  readonly logger: Logger
  readonly limits?: Partial<typeof alertLimits>
}

type News = { readonly type: AlertType; readonly key: string; readonly about: About }

/** As of when it happened: it may wait here until another time. */
type Event = News & { readonly at: Date }

type Desk = {
  readonly deps: Deps
  readonly limits: typeof alertLimits
  readonly queue: Event[]
  readonly failing: Failing
  readonly deaths: Map<string, Death>
  readonly halt: AbortController
  sending: Promise<void> | null
  gathering: NodeJS.Timeout | null
}

type Death = { readonly destinationId: number; readonly reason: string; count: number }

export const openAlerts = (deps: Deps): Alerts => {
  const desk: Desk = {
    deps,
    limits: { ...alertLimits, ...deps.limits },
    queue: [],
    failing: openFailing(),
    deaths: new Map(),
    halt: new AbortController(),
    sending: null,
    gathering: null,
  }
  return {
    urlChanged: (event) => tellUrl(desk, event),
    answered: (destinationId, url, { answer }) => {
      // What this machine could not send says nothing of who was to get it.
      if (isOwnFault(answer)) return
      const level = desk.failing.note(destinationId, url, answer.type !== 'delivered')
      if (level !== null) tellLevel(desk, { destinationId, url, level, answer })
    },
    died: (destinationId, reason) => gather(desk, destinationId, reason),
    quotaChanged: (change) => tellQuota(desk, change),
    gapFound: (gap) => put(desk, { type: 'ledger.gap', key: 'ledger.gap', about: { gap } }),
    lagging: (seconds) => put(desk, { type: 'lag', key: 'lag', about: { seconds } }),
    stop: async () => {
      if (desk.gathering) clearTimeout(desk.gathering)
      desk.halt.abort()
      await desk.sending
    },
  }
}

const stateTypes = {
  disabled: 'url.disabled',
  rejecting: 'url.rejecting',
  held_tls: 'url.held_tls',
  ok: 'destination.recovered',
} as const satisfies Record<UrlEvent['to']['state'], AlertType>

/** Told by the process that found it; a breaker alone is told by the share of failures. */
const tellUrl = (desk: Desk, event: UrlEvent): void => {
  const { from, to, destinationId, reason, status, origin } = event
  if (from.state === to.state || origin !== 'here') return
  const url = bareUrl(event.url)
  const about = { ...aboutDestination(desk, destinationId), url, reason, status }
  const type = stateTypes[to.state]
  put(desk, { type, key: `${type} ${destinationId} ${url}`, about })
}

type Level = {
  readonly destinationId: number
  readonly url: string
  readonly level: number
  readonly answer: PostResult['answer']
}

const tellLevel = (desk: Desk, { destinationId, url: whole, level, answer }: Level): void => {
  const url = bareUrl(whole)
  const type = level === 0 ? 'destination.recovered' : 'destination.failing'
  const reason = answer.type === 'delivered' ? null : answer.reason
  const status = answer.type === 'delivered' ? null : answer.status
  const percent = level === 0 ? {} : { failurePercent: level }
  const about = { ...aboutDestination(desk, destinationId), url, ...percent, reason, status }
  put(desk, { type, key: `${type} ${destinationId} ${url} ${level}`, about })
}

/** Told anew when it worsens or ends; which of the two it was is in the type. */
const tellQuota = (desk: Desk, { destinationId, state, rows, bytes }: QuotaChange): void => {
  const type = `quota.${state}` as const
  const about = { ...aboutDestination(desk, destinationId), parkedRows: rows, parkedBytes: bytes }
  put(desk, { type, key: `${type} ${destinationId}`, about })
}

/** Distinct kinds of death gathered at once; further ones are told with the next. */
const deathsMax = 1_000

const gather = (desk: Desk, destinationId: number, reason: string): void => {
  const key = `${destinationId} ${reason}`
  const known = desk.deaths.get(key)
  if (known) known.count += 1
  else if (desk.deaths.size < deathsMax) desk.deaths.set(key, { destinationId, reason, count: 1 })
  if (desk.gathering || desk.halt.signal.aborted) return
  desk.gathering = setTimeout(() => {
    desk.gathering = null
    for (const [each, death] of desk.deaths) {
      const { count } = death
      const about = { ...aboutDestination(desk, death.destinationId), reason: death.reason, count }
      put(desk, { type: 'dead_letter', key: `dead_letter ${each}`, about })
    }
    desk.deaths.clear()
  }, desk.limits.gatherMs)
}

const aboutDestination = ({ deps }: Desk, destinationId: number): About => {
  const destination = deps.live.now().destinations.get(destinationId)
  return {
    workspaceId: destination?.workspaceId ?? null,
    destinationId,
    destination: destination?.name ?? null,
  }
}

/** A query and a password may be secrets. */
const bareUrl = (url: string): string => {
  const parsed = URL.parse(url)
  return parsed ? `${parsed.origin}${parsed.pathname}` : 'invalid'
}

const put = (desk: Desk, news: News): void => {
  if (desk.halt.signal.aborted) return
  if (desk.queue.length >= desk.limits.queueMax) {
    desk.deps.logger.warn({ type: news.type }, 'alert.dropped')
    return
  }
  desk.queue.push({ ...news, at: desk.deps.clock() })
  desk.sending ??= work(desk).finally(() => {
    desk.sending = null
  })
}

const work = async (desk: Desk): Promise<void> => {
  for (let event = desk.queue.shift(); event; event = desk.queue.shift()) {
    if (desk.halt.signal.aborted) {
      desk.deps.logger.warn({ type: event.type }, 'alert.dropped')
      continue
    }
    try {
      if (await isNews(desk, event)) await tell(desk, event)
    } catch (error) {
      desk.deps.logger.error({ err: error, type: event.type }, 'alert.failed')
    }
  }
}

/** Of all processes the first one tells it, once in its time. */
const isNews = async ({ deps, limits }: Desk, { key, at }: Event): Promise<boolean> => {
  const before = new Date(at.getTime() - limits.againAfterMs)
  if (!(await claimAlert(deps.sql, { key, at, before }))) return false
  // Another process may still have what happened long before this.
  await forgetAlerts(deps.sql, new Date(at.getTime() - limits.keepMs))
  return true
}

const tell = async (desk: Desk, { type, about, at }: Event): Promise<void> => {
  const { deps, limits } = desk
  const event = { version: 1, id: randomUUID(), type, timestamp: at, ...about }
  const body = Buffer.from(JSON.stringify(event))
  const signature = deps.secret === null ? {} : { 'X-Signature': sign(deps.secret, body) }
  const headers = { 'Content-Type': 'application/json', ...signature }
  for (const pauseMs of limits.pausesMs) {
    if (!(await pause(pauseMs, desk.halt.signal))) break
    const { answer, status } = await deps.post({ url: deps.url, headers, body })
    if (answer.type === 'delivered') {
      deps.logger.info({ type, ...about }, 'alert.sent')
      return
    }
    deps.logger.warn({ type, status, reason: answer.reason }, 'alert.refused')
  }
  deps.logger.error({ type }, 'alert.given_up')
}

/** `false`: stopped meanwhile. */
const pause = (ms: number, signal: AbortSignal): Promise<boolean> => {
  if (signal.aborted) return Promise.resolve(false)
  if (ms === 0) return Promise.resolve(true)
  return new Promise((resolve) => {
    const end = (isOver: boolean) => () => {
      clearTimeout(timer)
      signal.removeEventListener('abort', stopped)
      resolve(isOver)
    }
    const stopped = end(false)
    const timer = setTimeout(end(true), ms)
    signal.addEventListener('abort', stopped, { once: true })
  })
}
