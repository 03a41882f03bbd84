// What an answer teaches about its URL: the breaker, the ramp, the limit, and the states an operator sees.
import { type Answer, isOwnFault, isUnresolved } from './round.ts'
import {
  type Breaker,
  isWell,
  type UrlHealth,
  type UrlState,
  urlHealthLimits,
} from './url-health.ts'

export type UrlChange = {
  readonly from: { readonly state: UrlState; readonly breaker: Breaker }
  readonly to: { readonly state: UrlState; readonly breaker: Breaker }
  readonly at: number
  readonly reason: string | null
  readonly status: number | null
}

export type Answered = {
  readonly answer: Answer
  readonly now: number
  /** It was a last try, begun through an open breaker. */
  readonly isLast: boolean
  /** Uniform in [0, 1). */
  readonly random: () => number
}

/** Takes in an answer; tells what it changed. */
export const answered = (health: UrlHealth, request: number, event: Answered): UrlChange | null => {
  const { answer, now } = event
  const { state, breaker } = health
  health.inFlight -= 1
  const isProbe = request === health.probe
  if (isProbe) health.probe = 0
  learn(health, request, { ...event, isProbe })
  if (health.state === state && health.breaker === breaker) return null
  health.since = now
  health.reason = answer.type === 'delivered' ? null : answer.reason
  health.status = answer.type === 'delivered' ? null : answer.status
  return changeOf(health, { state, breaker })
}

const changeOf = (health: UrlHealth, from: UrlChange['from']): UrlChange => {
  const { state, breaker, since, reason, status } = health
  return { from, to: { state, breaker }, at: since, reason, status }
}

type Lesson = Answered & { readonly isProbe: boolean }

const learn = (health: UrlHealth, request: number, lesson: Lesson): void => {
  const { answer, now, isProbe, isLast } = lesson
  if (answer.type === 'final' && answer.status === 410) shut(health, 'disabled')
  else if (health.state === 'disabled') return
  else if (answer.type === 'final' && isTlsRefusal(answer.reason)) shut(health, 'held_tls')
  else if (health.state === 'held_tls') return
  // Nobody was asked: the fault is in this machine, its name servers, the message or the settings.
  else if (isNobodyAsked(answer)) {
    if (isProbe) askAfter(health, lesson, health.probeMs)
  } else if (isWell(health)) observe(health, request, { answer, now, random: lesson.random })
  else if (answer.type === 'delivered' || (answer.type === 'final' && health.state === 'ok')) {
    if (isProbe || isLast) ramp(health)
  } else if (isProbe) probeFailed(health, lesson)
}

const isNobodyAsked = (answer: Answer): boolean =>
  isOwnFault(answer) || isUnresolved(answer) || (answer.type === 'final' && answer.status === null)

const isTlsRefusal = (reason: string): boolean =>
  reason === 'tls_self_signed' || reason === 'tls_private_root'

const shut = (health: UrlHealth, state: 'disabled' | 'held_tls'): void => {
  health.state = state
  health.breaker = 'closed'
  health.probe = 0
  forgetResults(health)
}

const probeFailed = (health: UrlHealth, lesson: Lesson): void => {
  if (health.state === 'rejecting') askAfter(health, lesson, urlHealthLimits.rejectingProbeMs)
  else askLater(health, lesson)
}

const askLater = (health: UrlHealth, when: When): void => {
  askAfter(health, when, health.probeMs)
  health.probeMs = Math.min(2 * health.probeMs, urlHealthLimits.probeMaxMs)
}

type When = Pick<Answered, 'now' | 'random'>

/** Spread by a tenth each way, so that many URLs that failed together are not asked together. */
const askAfter = (health: UrlHealth, { now, random }: When, ms: number): void => {
  health.probeAt = now + Math.ceil(ms * (0.9 + 0.2 * random()))
}

const ramp = (health: UrlHealth): void => {
  health.state = 'ok'
  health.breaker = 'ramp'
  health.limit = 1
  health.halvedAt = health.begun
  health.stepResults = 0
  health.stepFailures = 0
  forgetResults(health)
  if (health.limit >= health.cap) close(health)
}

const close = (health: UrlHealth): void => {
  health.breaker = 'closed'
  health.limit = health.cap
  health.probeMs = urlHealthLimits.probeMs
}

const forgetResults = (health: UrlHealth): void => {
  health.seconds.fill(0)
  health.connectFailures = 0
  health.refusals = 0
}

type Observation = Pick<Answered, 'answer' | 'now' | 'random'>

const observe = (health: UrlHealth, request: number, { answer, now, random }: Observation) => {
  const isFailure = answer.type === 'temporary'
  note(health, now, isFailure)
  if (answer.type === 'final') {
    if (health.refusals === 0) health.refusedSince = now
    health.refusals += 1
  } else health.refusals = 0
  health.connectFailures = isFailure && isConnectFailure(answer) ? health.connectFailures + 1 : 0
  adapt(health, request, answer)
  if (isFailure && isBroken(health)) {
    health.breaker = 'open'
    askLater(health, { now, random })
    forgetResults(health)
  } else if (isRefusing(health, now)) {
    health.state = 'rejecting'
    health.breaker = 'closed'
    askAfter(health, { now, random }, urlHealthLimits.rejectingProbeMs)
    forgetResults(health)
  }
}

const isRefusing = ({ refusals, refusedSince }: UrlHealth, now: number): boolean =>
  refusals >= urlHealthLimits.refusalsMax ||
  (refusals > 1 && now - refusedSince >= urlHealthLimits.refusalsMs)

const connectReasons: ReadonlySet<string> = new Set([
  'connection_refused',
  'connect_timeout',
  'unreachable',
  'dns_not_found',
  'tls_incomplete_chain',
  'tls_expired',
  'tls_not_yet_valid',
  'tls_wrong_name',
  'tls_failed',
])

const isConnectFailure = (answer: Answer): boolean =>
  answer.type === 'temporary' && connectReasons.has(answer.reason)

const note = (health: UrlHealth, now: number, isFailure: boolean): void => {
  const { windowSeconds } = urlHealthLimits
  const { seconds } = health
  const second = Math.floor(now / 1_000)
  if (second > health.second) {
    const passed = Math.min(second - health.second, windowSeconds)
    for (let ago = 0; ago < passed; ago += 1) {
      const at = 2 * ((second - ago) % windowSeconds)
      seconds[at] = 0
      seconds[at + 1] = 0
    }
    health.second = second
  }
  const at = 2 * (health.second % windowSeconds)
  seconds[at] = (seconds[at] as number) + 1
  if (isFailure) seconds[at + 1] = (seconds[at + 1] as number) + 1
}

const isBroken = ({ connectFailures, seconds }: UrlHealth): boolean => {
  const { connectFailuresMax, resultsMin, failureShare } = urlHealthLimits
  if (connectFailures >= connectFailuresMax) return true
  let results = 0
  let failures = 0
  for (let at = 0; at < seconds.length; at += 2) {
    results += seconds[at] as number
    failures += seconds[at + 1] as number
  }
  return results >= resultsMin && failures >= failureShare * results
}

/** A ramp doubles step by step and halves at a failure; a closed one grows slowly back after a 429. */
const adapt = (health: UrlHealth, request: number, answer: Answer): void => {
  const isRamp = health.breaker === 'ramp'
  if (answer.type === 'temporary') {
    if (isRamp) {
      health.stepResults += 1
      health.stepFailures += 1
    }
    if (!isRamp && answer.status !== 429) return
    if (request <= health.halvedAt) return
    health.limit = Math.max(1, health.limit / 2)
    health.halvedAt = health.begun
    if (isRamp) {
      health.stepResults = 1
      health.stepFailures = 1
    }
    return
  }
  if (!isRamp) {
    if (health.limit < health.cap)
      health.limit = Math.min(health.cap, health.limit + 1 / health.limit)
    return
  }
  health.stepResults += 1
  const successes = health.stepResults - health.stepFailures
  const isGood = successes >= urlHealthLimits.successShare * health.stepResults
  if (successes < Math.floor(health.limit) || !isGood) return
  health.limit *= 2
  health.stepResults = 0
  health.stepFailures = 0
  if (health.limit >= health.cap) close(health)
}

/** A handshake went through, or an operator says that it is well: carefully, from one at a time. */
export const heal = (health: UrlHealth, now: number): UrlChange | null => {
  const { state, breaker } = health
  if (state === 'ok') return null
  ramp(health)
  health.since = now
  health.reason = null
  health.status = null
  return changeOf(health, { state, breaker })
}

export type Told = {
  readonly state: Exclude<UrlState, 'ok'>
  readonly reason: string | null
  readonly status: number | null
  readonly since: number
}

/** Another process, or this one before it was started again, found it so. */
export const adopt = (health: UrlHealth, told: Told, probeAt: number): UrlChange | null => {
  const { state, breaker } = health
  if (state === told.state) return null
  if (told.state !== 'rejecting') shut(health, told.state)
  else {
    health.state = 'rejecting'
    health.breaker = 'closed'
    health.probe = 0
    health.probeAt = probeAt
    forgetResults(health)
  }
  health.since = told.since
  health.reason = told.reason
  health.status = told.status
  return changeOf(health, { state, breaker })
}
