// Alerts: signed events to an operator's own URL about URLs that fail, dead messages, the ledger and lag.
// Told once an hour over all processes, and durable: they are written with what they tell of, and sent from there.
import { randomUUID } from 'node:crypto'
import type { Logger } from 'pino'
import type { Live } from '../domain/configuration.ts'
import { isOwnFault } from '../domain/round.ts'
import type { Post, PostResult } from '../http/post.ts'
import type { Pool, Sql } from '../postgres/sql.ts'
import type { Clock } from '../running.ts'
import { aboutDestination, bareKey, bareUrl, levelEvent, recoveredKeys } from './alert-about.ts'
import { openSender, type Sender, senderLimits } from './alert-sender.ts'
import { type About, type AlertRow, type Written, writeAlerts } from './alert-store.ts'
import type { UrlOf } from './episode-store.ts'
import { type Episodes, openEpisodes } from './episodes.ts'
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

/** What is to be told, as of when it happened. */
export type News = AlertRow & { readonly type: AlertType }

export type Died = { readonly destinationId: number; readonly reason: string }

export type Alerts = {
  /** Of a URL's change of state, to be written with it; `null`: that is for another process, or nobody, to tell. */
  urlNews(event: UrlEvent): News | null
  /** Of messages given up, to be written with them. */
  deathNews(died: readonly Died[], at: Date): readonly News[]
  /** In the transaction of what they tell of; of those told lately nothing is written. */
  write(tx: Sql, news: readonly News[]): Promise<readonly Written[]>
  /** After the commit, and never without one. */
  written(all: readonly Written[]): void
  /** Of every request: must cost next to nothing. */
  answered(destinationId: number, url: string, result: PostResult): void
  quotaChanged(change: QuotaChange): void
  gapFound(gap: number): void
  lagging(seconds: number): void
  /** Waits for what is being sent; what still waits goes out after the next start, or from another process. */
  stop(): Promise<void>
}

export const alertLimits = {
  ...senderLimits,
  /** The same thing is told again after this. */
  againAfterMs: 3_600_000,
  /** Alerts that wait to be sent. */
  rowsMax: 1_000,
  /** Where there was no room, it is looked again after this. */
  fullMs: 60_000,
  /** Deaths are added up this long before they are told. */
  gatherMs: 5_000,
  /** Who watches URLs that fail says so this often, and is gone after so long without. */
  watchEveryMs: 10_000,
  watchDeadMs: 60_000,
}

export type AlertDeps = {
  readonly url: string
  readonly secret: string | null
  readonly post: Post
  readonly pool: Pool
  readonly live: Live
  readonly clock: Clock
  readonly logger: Logger
  readonly meter?: { readonly alerts: Map<string, number> }
  readonly limits?: Partial<typeof alertLimits>
}

type Desk = {
  readonly deps: AlertDeps
  readonly limits: typeof alertLimits
  readonly failing: Failing
  readonly episodes: Episodes
  /** What is known to be told, and when: no statement is needed to find that out again. */
  readonly told: Map<string, number>
  /** What is in no transaction of its own, until it is written: by key. */
  readonly pending: Map<string, News>
  readonly sender: Sender
  writing: Promise<void> | null
  stopping: boolean
}

export const openAlerts = (deps: AlertDeps): Alerts => {
  const limits = { ...alertLimits, ...deps.limits }
  const desk: Desk = {
    deps,
    limits,
    failing: openFailing(),
    episodes: openEpisodes({
      ...deps,
      owner: randomUUID(),
      now: deps.clock,
      limits,
      newsOf: (level, at) => ({
        ...levelEvent(deps.live, level),
        ...{ id: randomUUID(), at, nextAt: at },
      }),
      recoveredKeys: ({ destinationId, url }) => recoveredKeys(destinationId, url),
      refused: (level, error) => dropped(desk, levelEvent(deps.live, level).type, error),
    }),
    told: new Map(),
    pending: new Map(),
    sender: openSender({
      ...deps,
      sql: deps.pool,
      limits,
      ended: (result) => meter(deps, result),
      looked: () => look(desk),
    }),
    writing: null,
    stopping: false,
  }
  return {
    urlNews: (event) => urlNews(desk, event),
    deathNews: (died, at) => deathNews(desk, died, at),
    write: (tx, news) => write(desk, tx, news),
    written: (all) => remember(desk, all),
    answered: (destinationId, url, { answer }) => {
      // What this machine could not send says nothing of who was to get it.
      if (isOwnFault(answer)) return
      const level = desk.failing.note(destinationId, url, answer.type !== 'delivered')
      if (level === null || desk.stopping) return
      desk.episodes.put({ destinationId, url, level, answer })
      void writeSoon(desk)
    },
    quotaChanged: (change) => tellQuota(desk, change),
    gapFound: (gap) => put(desk, { type: 'ledger.gap', key: 'ledger.gap', about: { gap } }),
    lagging: (seconds) => put(desk, { type: 'lag', key: 'lag', about: { seconds } }),
    stop: async () => {
      desk.stopping = true
      await desk.writing
      await writePending(desk)
      for (const { type } of desk.pending.values()) dropped(desk, type)
      await desk.sender.stop()
      await desk.episodes
        .end()
        .catch((error) => deps.logger.warn({ err: error }, 'alert.not_handed_over'))
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
const urlNews = (desk: Desk, event: UrlEvent): News | null => {
  const { from, to, destinationId, reason, status, origin } = event
  if (from.state === to.state || origin !== 'here') return null
  const url = bareUrl(event.url)
  const about = { ...aboutDestination(desk.deps.live, destinationId), url, reason, status }
  const type = stateTypes[to.state]
  return newsOf(desk, { type, key: `${type} ${destinationId} ${bareKey(event.url)}`, about })
}

/** How many they are is counted when they are told. */
const deathNews = (desk: Desk, died: readonly Died[], at: Date): readonly News[] => {
  const news = new Map<string, News>()
  for (const { destinationId, reason } of died) {
    const key = `dead_letter ${destinationId} ${reason}`
    if (news.has(key) || isTold(desk, key, at)) continue
    const about = { ...aboutDestination(desk.deps.live, destinationId), reason }
    const nextAt = new Date(at.getTime() + desk.limits.gatherMs)
    news.set(key, { id: randomUUID(), type: 'dead_letter', key, about, at, nextAt })
  }
  return [...news.values()]
}

/** Told anew when it worsens or ends; which of the two it was is in the type. */
const tellQuota = (desk: Desk, { destinationId, state, rows, bytes }: QuotaChange): void => {
  const type = `quota.${state}` as const
  const about = {
    ...aboutDestination(desk.deps.live, destinationId),
    parkedRows: rows,
    parkedBytes: bytes,
  }
  put(desk, { type, key: `${type} ${destinationId}`, about })
}

type Event = { readonly type: AlertType; readonly key: string; readonly about: About }

const newsOf = ({ deps }: Desk, event: Event): News => {
  const at = deps.clock()
  return { ...event, id: randomUUID(), at, nextAt: at }
}

const isTold = ({ told, limits }: Desk, key: string, at: Date): boolean => {
  const before = told.get(key)
  return before !== undefined && at.getTime() - before < limits.againAfterMs
}

const write = async (desk: Desk, tx: Sql, news: readonly News[]): Promise<readonly Written[]> => {
  const { againAfterMs, rowsMax: max } = desk.limits
  const rows = new Map<string, News>()
  for (const one of news)
    if (!rows.has(one.key) && !isTold(desk, one.key, one.at)) rows.set(one.key, one)
  if (rows.size === 0) return []
  return writeAlerts(tx, { rows: [...rows.values()], againAfterMs, max })
}

const toldMax = 20_000

const remember = (desk: Desk, all: readonly Written[]): void => {
  const { told, limits, deps } = desk
  if (told.size > toldMax) told.clear()
  for (const { key, type, outcome, toldAt } of all) {
    if (toldAt) told.set(key, toldAt.getTime())
    if (outcome !== 'full') continue
    // Looking for room with every message would hold up those who have nothing to tell.
    told.set(key, deps.clock().getTime() - limits.againAfterMs + limits.fullMs)
    dropped(desk, type)
  }
  if (all.some(({ outcome }) => outcome === 'new')) desk.sender.ring()
}

const dropped = ({ deps }: Desk, type: string, err?: unknown): void => {
  meter(deps, 'dropped')
  deps.logger.warn({ type, err }, 'alert.dropped')
}

const meter = ({ meter: of }: AlertDeps, result: string): void => {
  of?.alerts.set(result, (of.alerts.get(result) ?? 0) + 1)
}

const put = (desk: Desk, event: Event): void => {
  const news = newsOf(desk, event)
  if (desk.stopping || desk.pending.has(news.key) || isTold(desk, news.key, news.at)) return
  if (desk.pending.size < desk.limits.rowsMax) desk.pending.set(news.key, news)
  else dropped(desk, news.type)
  void writeSoon(desk)
}

const writeSoon = (desk: Desk): Promise<void> => {
  desk.writing ??= writePending(desk).finally(() => {
    desk.writing = null
  })
  return desk.writing
}

const look = async (desk: Desk): Promise<void> => {
  await inherit(desk)
  await writeSoon(desk)
}

const writeAtOnce = 100

/** What cannot be written now is written with the sender's next look. */
const writePending = async (desk: Desk): Promise<void> => {
  try {
    while (desk.pending.size > 0) {
      const some = [...desk.pending.values()].slice(0, writeAtOnce)
      remember(desk, await write(desk, desk.deps.pool, some))
      for (const { key } of some) desk.pending.delete(key)
    }
    if (await desk.episodes.write()) desk.sender.ring()
  } catch (error) {
    desk.deps.logger.error({ err: error, waiting: desk.pending.size }, 'alert.failed')
  }
}

const inherit = async ({ deps, episodes, failing }: Desk): Promise<void> => {
  const isConfigured = ({ destinationId, url }: UrlOf) =>
    deps.live
      .now()
      .destinations.get(destinationId)
      ?.webhooks.some((one) => one.url === url) ?? false
  try {
    for (const { destinationId, url, level } of await episodes.inherit(isConfigured))
      failing.inherit(destinationId, url, level)
  } catch (error) {
    deps.logger.error({ err: error }, 'alert.failed')
  }
}
