// What one round means: a message posted to every usable URL of a destination at once.
import { type DeadReason, isDeadReason } from './dead-reason.ts'
import type { Standing } from './url-health.ts'

/** How one URL answered, in the words that decide. */
export type Answer =
  | { readonly type: 'delivered' }
  | {
      readonly type: 'temporary'
      readonly reason: string
      readonly status: number | null
      readonly retryAfterMs: number | null
    }
  | { readonly type: 'final'; readonly reason: DeadReason; readonly status: number | null }

/** Descriptors, ports or memory of this machine ran out: the receiver had no part in it. */
export const isOwnFault = (answer: Answer): boolean =>
  answer.type === 'temporary' && answer.reason === 'local_resources'

/** No name server said anything of the name: a try that failed, though not at the receiver. */
export const isUnresolved = (answer: Answer): boolean =>
  answer.type === 'temporary' && answer.reason === 'dns_failed'

export type Verdict =
  | { readonly type: 'delivered' }
  /** Nobody was really asked: no try. */
  | { readonly type: 'ours'; readonly reason: string }
  | {
      readonly type: 'temporary'
      readonly reason: string
      readonly status: number | null
      readonly retryAfterMs: number | null
      /** Which answers were final: later rounds leave those URLs out. */
      readonly final: readonly number[]
    }
  | { readonly type: 'final'; readonly reason: DeadReason; readonly status: number | null }

/**
 * Any one success settles the message; one temporary failure keeps it alive, and so does a URL that was not
 * asked. Answers are in URL order.
 */
export const decideRound = (answers: readonly Answer[], isUntried = false): Verdict => {
  if (answers.some(({ type }) => type === 'delivered')) return { type: 'delivered' }
  if (answers.length > 0 && answers.every(isOwnFault))
    return { type: 'ours', reason: 'local_resources' }
  const final = answers.flatMap((answer, at) => (answer.type === 'final' ? [at] : []))
  const temporary = answers.filter((answer) => answer.type === 'temporary')
  const [first] = temporary
  if (first) {
    const asked = temporary.map(({ retryAfterMs }) => retryAfterMs).filter((ms) => ms !== null)
    // The URL that asks for least decides: the others' limits are their own, tried together or not at all.
    const isAsked = asked.length === temporary.length && !isUntried
    const retryAfterMs = isAsked ? Math.min(...asked) : null
    return { type: 'temporary', reason: first.reason, status: first.status, retryAfterMs, final }
  }
  const [worst] = answers.filter((answer) => answer.type === 'final')
  if (worst && isUntried) {
    const { reason, status } = worst
    return { type: 'temporary', reason, status, retryAfterMs: null, final }
  }
  return { type: 'final', reason: worst?.reason ?? 'no_url', status: worst?.status ?? null }
}

/** A URL as a message about to be sent finds it; `refused`: it refused this message for good. */
export type Usable = {
  readonly standing: Standing | 'refused'
  /** Why its certificate is held, or it is disabled. */
  readonly reason: string | null
  /** Whether a last try may go there, whatever its standing. */
  readonly mayTryLast: boolean
}

export type Plan =
  /**
   * Those at these places are asked; those that are well and have no room now, `later`, when these failed.
   * `isUntried`: another one may be, another time.
   */
  | {
      readonly type: 'post'
      readonly at: readonly number[]
      readonly later: readonly number[]
      readonly isUntried: boolean
    }
  /** Those that are left are well, and have no room now. */
  | { readonly type: 'wait' }
  /** Those that are left are not asked at present. */
  | { readonly type: 'hold' }
  /** None is left that could take it. */
  | { readonly type: 'die'; readonly reason: DeadReason }

/** Whom to ask. A last try asks even those whose breaker is open, as far as they have room. */
export const planRound = (urls: readonly Usable[], isLast: boolean): Plan => {
  const uses = urls.map((url) => useOf(url, isLast))
  const placesOf = (kind: (typeof uses)[number]) =>
    uses.flatMap((use, place) => (use === kind ? [place] : []))
  const at = placesOf('ask')
  const isBusy = uses.includes('wait')
  const isOpen = uses.includes('hold')
  if (at.length > 0) return { type: 'post', at, later: placesOf('wait'), isUntried: isOpen }
  if (isBusy) return { type: 'wait' }
  if (isOpen) return { type: 'hold' }
  const held = urls.find(({ standing }) => standing === 'held')
  if (held) {
    const { reason } = held
    const isKnown = reason !== null && isDeadReason(reason)
    return { type: 'die', reason: isKnown ? reason : 'tls_self_signed' }
  }
  const isDisabled = urls.some(({ standing }) => standing === 'disabled')
  return { type: 'die', reason: isDisabled ? 'url_disabled' : 'no_url' }
}

const useOf = ({ standing, mayTryLast }: Usable, isLast: boolean) => {
  switch (standing) {
    case 'free':
    case 'probe':
      return 'ask'
    case 'full':
    case 'paced':
      return 'wait'
    case 'open':
      if (!isLast) return 'hold'
      return mayTryLast ? 'ask' : 'wait'
    default:
      return 'none'
  }
}
