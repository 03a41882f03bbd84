// What delivery counts for its metrics: plain numbers, added up where things happen and read when asked.

import type { Verdict } from '../domain/round.ts'
import type { PostResult } from '../http/post.ts'

/** Seconds; cumulative counts are made when they are read. */
export type Histogram = {
  readonly bounds: readonly number[]
  /** One more than bounds: what is above the last. */
  readonly counts: Float64Array
  sum: number
}

const openHistogram = (bounds: readonly number[]): Histogram => ({
  bounds,
  counts: new Float64Array(bounds.length + 1),
  sum: 0,
})

const observe = (histogram: Histogram, seconds: number): void => {
  const { bounds, counts } = histogram
  let at = 0
  while (at < bounds.length && seconds > (bounds[at] as number)) at += 1
  counts[at] = (counts[at] as number) + 1
  histogram.sum += seconds
}

const phaseBounds = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]
const lagBounds = [0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1_800, 3_600, 14_400]

export const phases = ['dns', 'connect', 'tls', 'ttfb', 'total'] as const
export type Phase = (typeof phases)[number]

/** How URLs stand: those that are well, by breaker; else by their state. */
export const urlStandings = ['closed', 'open', 'ramp', 'rejecting', 'held_tls', 'disabled'] as const
export type UrlStanding = (typeof urlStandings)[number]

export type Standing = {
  readonly urls: Readonly<Record<UrlStanding, number>>
  /** Requests at a time that URLs on their way back bear, added up. */
  readonly rampLimit: number
  /** Destinations with something in memory. */
  readonly lanes: number
  readonly partitions: readonly {
    readonly name: string
    readonly uncommitted: number
    readonly paused: string | null
  }[]
}

/** Of all processes, read from the tables by one of them. */
export type Figures = {
  readonly ledgerGap: number
  readonly parked: readonly { readonly reason: string; readonly rows: number }[]
  readonly parkedOldestSeconds: number
  /** What is left to the message whose window ends first; `null`: none has begun. */
  readonly headroomSeconds: number | null
  /** How long the oldest transaction of the database has run. */
  readonly xminAgeSeconds: number
}

export type Meter = {
  readonly rounds: Map<string, number>
  /** By class, then by reason. */
  readonly attempts: Map<string, Map<string, number>>
  readonly dead: Map<string, number>
  /** Of operators: sent, given up, dropped. */
  readonly alerts: Map<string, number>
  readonly phaseSeconds: Readonly<Record<Phase, Histogram>>
  readonly firstLag: Histogram
  readonly endToEnd: Histogram
  reusedConnections: number
  newConnections: number
  orderSuspended: number
  duplicatesSuspected: number
  positionBytes: number
  /** `null`: another process reads them. */
  figures: Figures | null
  /** Set by the stage; `null` before it started and after it stopped. */
  standing: (() => Standing) | null
}

export const openMeter = (): Meter => ({
  rounds: new Map(),
  attempts: new Map(),
  dead: new Map(),
  alerts: new Map(),
  phaseSeconds: {
    dns: openHistogram(phaseBounds),
    connect: openHistogram(phaseBounds),
    tls: openHistogram(phaseBounds),
    ttfb: openHistogram(phaseBounds),
    total: openHistogram(phaseBounds),
  },
  firstLag: openHistogram(lagBounds),
  endToEnd: openHistogram(lagBounds),
  reusedConnections: 0,
  newConnections: 0,
  orderSuspended: 0,
  duplicatesSuspected: 0,
  positionBytes: 0,
  figures: null,
  standing: null,
})

/** Reasons are our own words and statuses of receivers: further ones share a label. */
const reasonsMax = 60

const addTo = (counts: Map<string, number>, reason: string): void => {
  const known = counts.get(reason)
  if (known !== undefined) counts.set(reason, known + 1)
  else if (counts.size < reasonsMax) counts.set(reason, 1)
  else counts.set('other', (counts.get('other') ?? 0) + 1)
}

/** The receiver may have taken the message although its answer did not arrive, and gets it again. */
const isSuspect = (reason: string): boolean => reason === 'timeout' || reason === 'connection_reset'

export const meterAttempt = (meter: Meter, { answer, phases: took, reused }: PostResult): void => {
  const reason = answer.type === 'delivered' ? 'none' : answer.reason
  let reasons = meter.attempts.get(answer.type)
  if (!reasons) {
    reasons = new Map()
    meter.attempts.set(answer.type, reasons)
  }
  addTo(reasons, reason)
  if (answer.type === 'temporary' && isSuspect(reason)) meter.duplicatesSuspected += 1
  if (reused) meter.reusedConnections += 1
  else if (took.connectMs !== null) meter.newConnections += 1
  const { dns, connect, tls, ttfb, total } = meter.phaseSeconds
  if (took.dnsMs !== null) observe(dns, took.dnsMs / 1_000)
  if (took.connectMs !== null) observe(connect, took.connectMs / 1_000)
  if (took.tlsMs !== null) observe(tls, took.tlsMs / 1_000)
  if (took.firstByteMs !== null) observe(ttfb, took.firstByteMs / 1_000)
  observe(total, took.totalMs / 1_000)
}

type Round = {
  readonly verdict: Verdict['type']
  /** Its first one. */
  readonly isFirst: boolean
  /** Milliseconds: since the call was received, until its round began and until it was over. */
  readonly lagMs: number
  readonly sinceMs: number
}

export const meterRound = (meter: Meter, { verdict, isFirst, lagMs, sinceMs }: Round): void => {
  meter.rounds.set(verdict, (meter.rounds.get(verdict) ?? 0) + 1)
  if (isFirst && verdict !== 'ours') observe(meter.firstLag, Math.max(0, lagMs) / 1_000)
  if (verdict === 'delivered') observe(meter.endToEnd, Math.max(0, sinceMs) / 1_000)
}

export const meterDeath = (meter: Meter, reason: string): void => addTo(meter.dead, reason)

/** Observations above a bound, and all: what a share is made of. */
export const countAbove = ({ bounds, counts }: Histogram, bound: number) => {
  let [above, all] = [0, 0]
  counts.forEach((count, at) => {
    all += count
    if (at > bounds.indexOf(bound)) above += count
  })
  return { above, all }
}
