// Who is sent away, in this order: everybody while the loop is late, who is over a limit or quota of their own, imports.
import type { Source } from '../../domain/configuration.ts'
import { type Refusal, refuse } from '../answer/answer.ts'
import type { Judged } from '../judge/judge.ts'
import type { CollectLimits } from '../limits.ts'
import { tooLarge } from '../request/body.ts'
import type { Load } from './load.ts'
import type { Pressure, Share } from './pressure.ts'
import type { Quotas } from './quota.ts'
import { whenCalmer, whenRoom } from './retry-after.ts'

export type Gates = {
  readonly limits: CollectLimits
  readonly load: Load
  readonly pressure: Pressure
  readonly quotas: Quotas
}

const calmer = ({ limits }: Pick<Gates, 'limits'>, excess: number): number =>
  whenCalmer({ seconds: limits.retryAfterSeconds, excess, random: Math.random() })

/** For a request that found no room among those in flight, when its bound is `bytesMax`. */
export const secondsToWait = (gates: Omit<Gates, 'load' | 'quotas'>, bytesMax: number): number =>
  calmer(gates, gates.pressure.demanded() / bytesMax)

export const shedLate = (gates: Gates): Refusal | null => {
  const excess = gates.load.excess()
  if (excess === 0) return null
  return {
    ...refuse('overloaded', 'the service is busy; retry after the given seconds'),
    retryAfterSeconds: calmer(gates, excess),
  }
}

/** Imports wait for what others hold: what they tell of happened long ago. */
export const shedHistorical = (gates: Gates, judged: Judged, share: Share): Refusal | null => {
  const { pressure, limits } = gates
  if (judged.historical.length === 0) return null
  if (pressure.held() - share.held() <= limits.historicalBytesMax) return null
  share.close()
  pressure.refused(judged.storedBytes)
  return {
    ...refuse('overloaded', 'historical calls wait first; retry after the given seconds'),
    retryAfterSeconds: secondsToWait(gates, limits.historicalBytesMax),
    about: { sourceId: judged.source.id },
  }
}

type Asked = {
  /** `null` before that is known. */
  readonly calls: number | null
  readonly at: number
}

export const overQuota = (
  { quotas }: Gates,
  source: Source,
  { calls, at }: Asked,
): Refusal | null => {
  // A disabled source learns nothing, and costs nothing.
  if (source.settings.callsPerSecondMax === null || !source.enabled) return null
  const waitMs = calls === null ? quotas.spentMs(source, at) : quotas.take(source, { calls, at })
  if (waitMs === 0) return null
  return {
    ...refuse('over_quota', 'the source is over its quota; retry after the given seconds'),
    retryAfterSeconds: whenRoom(waitMs),
    about: { sourceId: source.id },
  }
}

type Sent = { readonly bytes: number; readonly calls: number }

/** What names no key in its header was read as far as any source may go. */
export const beyondOwn = (limits: CollectLimits, { bytes, calls }: Sent): Refusal | null => {
  if (bytes > limits.bodyBytesMax) return tooLarge(limits.bodyBytesMax)
  return calls > limits.batchCallsMax
    ? refuse('too_many_calls', `the batch has over ${limits.batchCallsMax} calls`)
    : null
}
