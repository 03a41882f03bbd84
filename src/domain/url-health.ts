// How one URL of a destination is doing, and so whether it may be asked now. What answers change: url-answer.ts.

export const urlHealthLimits = {
  /** The breaker opens at so many results within this time of which this share failed for a time. */
  windowSeconds: 30,
  resultsMin: 10,
  failureShare: 0.7,
  /** Or when so many connections in a row did not come about. */
  connectFailuresMax: 5,
  /** After opening, and after each probe that failed twice as long. */
  probeMs: 5_000,
  probeMaxMs: 60_000,
  /** A ramp doubles its limit only while this share succeeds. */
  successShare: 0.95,
  /** Refusals in a row, or this long of nothing else: then it is not the messages that are wrong. */
  refusalsMax: 20,
  refusalsMs: 300_000,
  rejectingProbeMs: 60_000,
} as const

export const urlStates = ['ok', 'rejecting', 'held_tls', 'disabled'] as const

export type UrlState = (typeof urlStates)[number]

export const breakers = ['closed', 'open', 'ramp'] as const

export type Breaker = (typeof breakers)[number]

export type UrlHealth = {
  state: UrlState
  breaker: Breaker
  /** When state or breaker last changed, and the answer that did it. */
  since: number
  reason: string | null
  status: number | null
  /** While open or rejecting: when one delivery may find out, and what the next wait will be. */
  probeAt: number
  probeMs: number
  /** The request that finds out; 0: none is on its way. */
  probe: number
  /** Requests at a time: the operator's, and how many of them it bears now. */
  cap: number
  limit: number
  inFlight: number
  /** Requests begun since ever: each is known by its number. */
  begun: number
  /** Those begun before the limit was halved say nothing more about it. */
  halvedAt: number
  /** Requests a second; `null`: as many as there are. */
  rate: number | null
  tokens: number
  tokensAt: number
  /** Of the ramp's current step. */
  stepResults: number
  stepFailures: number
  connectFailures: number
  refusals: number
  refusedSince: number
  /** Results and failures of each of the last seconds, and the second that the last ones are of. */
  readonly seconds: Int32Array
  second: number
}

export type UrlPace = { readonly cap: number; readonly rate: number | null }

export const openUrlHealth = ({ cap, rate }: UrlPace, now: number): UrlHealth => ({
  state: 'ok',
  breaker: 'closed',
  since: now,
  reason: null,
  status: null,
  probeAt: 0,
  probeMs: urlHealthLimits.probeMs,
  probe: 0,
  cap,
  limit: cap,
  inFlight: 0,
  begun: 0,
  halvedAt: 0,
  rate,
  tokens: burstOf(rate),
  tokensAt: now,
  stepResults: 0,
  stepFailures: 0,
  connectFailures: 0,
  refusals: 0,
  refusedSince: 0,
  seconds: new Int32Array(2 * urlHealthLimits.windowSeconds),
  second: 0,
})

/** So little may be saved up that no second sees more than 1.1 times the rate. */
const burstOf = (rate: number | null): number => (rate === null ? 0 : Math.max(1, rate / 10))

/** The operator changed it; what was learnt stays. */
export const setPace = (health: UrlHealth, { cap, rate }: UrlPace): void => {
  const isAtCap = health.limit >= health.cap
  health.limit = isAtCap && health.breaker === 'closed' ? cap : Math.min(health.limit, cap)
  health.cap = cap
  if (health.rate === rate) return
  health.tokens = health.rate === null ? burstOf(rate) : Math.min(health.tokens, burstOf(rate))
  health.rate = rate
}

/**
 * `free`: ask it. `full`, `paced`: it is well, and will have room. `probe`: one request may find out.
 * `open`: it is not asked. `held`: its certificate is refused. `disabled`: it said that it is gone.
 */
export type Standing = 'free' | 'full' | 'paced' | 'probe' | 'open' | 'held' | 'disabled'

export const standingOf = (health: UrlHealth, now: number): Standing => {
  if (health.state === 'disabled') return 'disabled'
  if (health.state === 'held_tls') return 'held'
  if (health.state === 'rejecting' || health.breaker === 'open')
    return health.probe === 0 && now >= health.probeAt ? 'probe' : 'open'
  if (health.inFlight >= Math.floor(health.limit)) return 'full'
  return hasToken(health, now) ? 'free' : 'paced'
}

/** Whether nothing about it needs a closer look. */
export const isWell = ({ state, breaker }: UrlHealth): boolean =>
  state === 'ok' && breaker !== 'open'

/** A message's last try goes out whatever the breaker says, as many at a time as the cap allows. */
export const mayTryLast = (health: UrlHealth, now: number): boolean => {
  if (health.state === 'disabled' || health.state === 'held_tls') return false
  return health.inFlight < health.cap && hasToken(health, now)
}

const hasToken = ({ rate, tokens, tokensAt }: UrlHealth, now: number): boolean =>
  rate === null || tokens + ((now - tokensAt) * rate) / 1_000 >= 1

/** A request is on its way; its number comes back with its answer. */
export const begin = (health: UrlHealth, now: number): number => {
  const isProbe = !isWell(health) && standingOf(health, now) === 'probe'
  health.begun += 1
  health.inFlight += 1
  if (isProbe) health.probe = health.begun
  const { rate } = health
  if (rate !== null) {
    const saved = health.tokens + ((now - health.tokensAt) * rate) / 1_000
    health.tokens = Math.min(saved, burstOf(rate)) - 1
    health.tokensAt = now
  }
  return health.begun
}
