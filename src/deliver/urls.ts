// The URLs this process posts to, and whether a lane may start anything at them now.
import type { Destination, Webhook } from '../domain/configuration.ts'
import type { Usable } from '../domain/round.ts'
import {
  isWell,
  mayTryLast,
  openUrlHealth,
  setPace,
  standingOf,
  type UrlHealth,
} from '../domain/url-health.ts'
import type { PostTls } from '../http/post.ts'
import type { News } from './alerts.ts'
import { openSignal, type Signal } from './signal.ts'
import type { Lane, Row, Stage } from './stage.ts'

export type UrlEntry = {
  readonly destinationId: number
  readonly url: string
  readonly health: UrlHealth
  tls: PostTls | null
  /** Its state changed here, and the table does not say so yet. */
  isUnsaved: boolean
  /** What operators are to be told of that. */
  news: readonly News[]
  usedAt: number
  /** Rounds under way that wait for it to have room, and what wakes them. */
  waiting: number
  readonly room: Signal
}

export type Urls = {
  readonly entries: Map<string, UrlEntry>
  /** Resolves once the states that outlived the last process are known. */
  ready: Promise<void> | null
  /** When it was last looked for what nobody needs any more. */
  sweptAt: number
}

export const openUrls = (): Urls => ({ entries: new Map(), ready: null, sweptAt: 0 })

/** A destination as it is configured now, with how its URLs are doing; kept with its lane. */
export type Target = { readonly destination: Destination; readonly urls: readonly UrlEntry[] }

const keyOf = (destinationId: number, url: string): string => `${destinationId} ${url}`

export const findUrl = ({ urls }: Stage, destinationId: number, url: string) =>
  urls.entries.get(keyOf(destinationId, url))

/** `null`: the destination is gone. */
export const targetOf = (stage: Stage, lane: Lane): Target | null => {
  const destination = stage.deps.live.now().destinations.get(lane.destinationId)
  if (!destination) return null
  if (lane.target?.destination === destination) return lane.target
  const urls = destination.webhooks.map((webhook) => entryOf(stage, destination.id, webhook))
  lane.target = { destination, urls }
  return lane.target
}

export const entryOf = (stage: Stage, destinationId: number, webhook: Webhook): UrlEntry => {
  const { url, concurrencyMax, requestsPerSecondMax } = webhook
  const pace = { cap: concurrencyMax ?? stage.limits.urlConcurrencyMax, rate: requestsPerSecondMax }
  const key = keyOf(destinationId, url)
  const known = stage.urls.entries.get(key)
  if (known) {
    setPace(known.health, pace)
    known.tls = tlsOf(webhook)
    return known
  }
  const now = stage.deps.clock().getTime()
  const entry = {
    destinationId,
    url,
    health: openUrlHealth(pace, now),
    tls: tlsOf(webhook),
    isUnsaved: false,
    news: [],
    usedAt: now,
    waiting: 0,
    room: openSignal(),
  }
  stage.urls.entries.set(key, entry)
  return entry
}

const tlsOf = ({ ca, clientCertificate }: Webhook): PostTls | null =>
  ca === null && clientCertificate === null
    ? null
    : { ...(ca === null ? {} : { ca }), ...(clientCertificate ?? {}) }

/**
 * `go`: a round may start. `full`, `paced`: when one of its own ends, or time has passed. `probe`: one
 * delivery may find out. `shut`: nothing but last tries.
 */
export type Gate = 'go' | 'full' | 'paced' | 'probe' | 'shut'

export const gateOf = (stage: Stage, lane: Lane, now: number): Gate => {
  const target = targetOf(stage, lane)
  // What is switched off, or held for its certificate, has nothing to wait for: its messages are given up.
  if (!target || (!target.destination.enabled && lane.replaying === 0)) return 'go'
  let gate: Gate | null = null
  for (const { health, waiting } of target.urls) {
    // Those under way come first.
    if (waiting > 0) return 'full'
    const standing = standingOf(health, now)
    if (standing === 'free') return 'go'
    const own = gates[standing]
    if (own && (gate === null || ranks.indexOf(own) < ranks.indexOf(gate))) gate = own
  }
  return gate ?? 'go'
}

const gates: Readonly<Partial<Record<string, Gate>>> = {
  full: 'full',
  paced: 'paced',
  probe: 'probe',
  open: 'shut',
}

/** With several URLs the one with the best prospects decides. */
const ranks: readonly Gate[] = ['go', 'probe', 'paced', 'full', 'shut']

/** In the usual case nothing more needs to be known. */
export const isWellAll = ({ target }: Lane): boolean =>
  target?.urls.every(({ health }) => isWell(health)) ?? false

/** Whether a last try may start in spite of a shut gate. */
export const hasRoomForLast = (lane: Lane, now: number): boolean =>
  lane.target?.urls.some(({ health }) => mayTryLast(health, now)) ?? false

export const usableOf = (target: Target, row: Row | null, now: number): readonly Usable[] =>
  target.urls.map(({ url, health }) => ({
    standing: row?.finalUrls.includes(url) ? 'refused' : standingOf(health, now),
    reason: health.reason,
    mayTryLast: mayTryLast(health, now),
  }))

const lookMs = 100
const waitMaxMs = 10_000

type Wait<T> = { readonly until: number; readonly go: () => Promise<T> }

/** Goes when the URL has room; `null` when it is not well any more, or there is no time left. */
export const whenRoom = async <T>(
  stage: Stage,
  entry: UrlEntry,
  { until, go }: Wait<T>,
): Promise<T | null> => {
  const giveUpAt = performance.now() + waitMaxMs
  for (;;) {
    const now = stage.deps.clock().getTime()
    const standing = standingOf(entry.health, now)
    if (standing !== 'free' && standing !== 'full' && standing !== 'paced') return null
    if (stage.stopping || now > until || performance.now() > giveUpAt) return null
    // At once: others are woken too, and the room is for one.
    if (standing === 'free') return go()
    entry.waiting += 1
    await entry.room.wait(lookMs)
    entry.waiting -= 1
  }
}

/** Requests its URLs bear at a time now. */
export const limitOf = ({ target }: Lane): number =>
  target?.urls.reduce(
    (sum, { health }) => sum + (isWell(health) ? Math.floor(health.limit) : 0),
    0,
  ) ?? 1
