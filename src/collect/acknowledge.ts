// Appends what was judged good and answers for it: 200 only after the log has everything durably.
import type { Logger } from 'pino'
import { Fault } from '../fault.ts'
import { type Answer, answerBatch, type Refusal, refuse, success } from './answer/answer.ts'
import { countFates } from './count.ts'
import type { Deps } from './deps.ts'
import type { Share } from './gate/pressure.ts'
import type { Judged } from './judge/judge.ts'

export const acknowledge = async (
  deps: Deps,
  judged: Judged,
  share: Share,
): Promise<Answer | Refusal> => {
  const { source, rejected, fates } = judged
  const appended = judged.live.length + judged.historical.length - judged.metered
  const accepted = appended + judged.filtered.length + judged.suppressed
  // A disabled source learns nothing; neither does whoever guesses its key.
  const isAppended = source.enabled ? await append(deps, judged, share) : drop(share)
  countFates(deps.pipeline, fates, { sourceId: source.id, isEnabled: source.enabled, isAppended })
  judged.watched?.tell(isAppended)
  if (!isAppended)
    return refuse('log_unavailable', 'the calls could not be stored; send them again')
  if (judged.isBatch) return answerBatch(accepted, rejected)
  const [only] = rejected
  return only ? refuse(only.code, `the call was refused: ${only.code}`) : success
}

const drop = (share: Share) => {
  share.close()
  return true
}

/** False when the log did not take everything in time. What it holds is released only when it settles. */
const append = (deps: Deps, judged: Judged, share: Share): Promise<boolean> => {
  share.replace(judged.storedBytes)
  return new Promise((resolve) => {
    const late = setTimeout(() => resolve(false), deps.limits.appendMsMax)
    const settle = (error: unknown, isAppended: boolean) => {
      clearTimeout(late)
      share.close()
      deps.appended(isAppended)
      if (!isAppended) logUnavailable(deps.logger, error)
      resolve(isAppended)
    }
    appendAll(deps, judged).then(
      () => settle(null, true),
      (error: unknown) => settle(error, false),
    )
  })
}

/** Settles when all have: what one of them still holds must not be forgotten because another failed. */
const appendAll = async ({ appender }: Deps, { live, historical }: Judged): Promise<unknown> => {
  if (historical.length === 0) return live.length > 0 ? appender.append('calls', live) : null
  const results = await Promise.allSettled([
    live.length > 0 ? appender.append('calls', live) : null,
    appender.append('calls.import', historical),
  ])
  const failed = results.find((result) => result.status === 'rejected')
  if (failed) throw failed.reason
  return null
}

const logUnavailable = (logger: Logger, error: unknown) =>
  logger.warn(
    { code: error instanceof Fault ? error.code : undefined, err: error },
    'append.failed',
  )
