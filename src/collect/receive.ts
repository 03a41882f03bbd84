// One request from its first byte to its answer: read · judge every call · append · acknowledge.
import type { Readable } from 'node:stream'
import type { Logger } from 'pino'
import { isCollectedIn, type Live, type Region, type Source } from '../domain/configuration.ts'
import { type CallType, logKey, type Message } from '../domain/message.ts'
import { normalise, type Receipt } from '../domain/normalise.ts'
import type { Flag, RejectionCode } from '../domain/rejection.ts'
import { isHistorical } from '../domain/routing.ts'
import { Fault } from '../fault.ts'
import type { Appender, Codec, Entry } from '../log/log.ts'
import type { Clock } from '../running.ts'
import {
  type Answer,
  answerBatch,
  answerRefusal,
  type Refusal,
  type Rejected,
  refuse,
  success,
} from './answer.ts'
import { parseJson, readBody } from './body.ts'
import { type Count, openTally } from './count.ts'
import { type Envelope, openBatch, openCall } from './envelope.ts'
import type { CollectLimits } from './limits.ts'
import type { Pressure, Share } from './pressure.ts'
import { keyOfHeader } from './write-key.ts'

export type Deps = {
  readonly appender: Appender
  readonly codec: Codec<Message>
  readonly live: Live
  readonly clock: Clock
  readonly logger: Logger
  readonly limits: CollectLimits
  readonly region: Region
  readonly count: Count
  readonly messageId: () => string
  readonly pressure: Pressure
  /** Told of every append's end, for readiness. */
  readonly appended: (isAcknowledged: boolean) => void
}

export type Request = {
  /** `null` for a batch, whose calls name their own. */
  readonly type: CallType | null
  readonly stream: Readable
  readonly authorization: string | undefined
  readonly encoding: string | undefined
  readonly retryCount: number
  readonly ip: string | null
  readonly userAgent: string | null
}

/** `null` when the client went away before its body ended. */
export const receive = async (deps: Deps, request: Request): Promise<Answer | null> => {
  const share = deps.pressure.open()
  const outcome = await take(deps, request, share).catch((error: unknown) => {
    share.close()
    throw error
  })
  if (outcome === null || 'status' in outcome) return outcome
  return answerRefused(deps, outcome)
}

const answerRefused = (deps: Deps, refusal: Refusal): Answer => {
  deps.count('requests.refused', { code: refusal.refused }, 1)
  deps.logger.info({ code: refusal.refused }, 'request.refused')
  const answer = answerRefusal(refusal)
  if (answer.status !== 429) return answer
  const { retryAfterSeconds } = deps.limits
  const resetAt = Math.ceil(deps.clock().getTime() / 1_000) + retryAfterSeconds
  return {
    ...answer,
    headers: { 'retry-after': String(retryAfterSeconds), 'x-ratelimit-reset': String(resetAt) },
  }
}

const take = async (deps: Deps, request: Request, share: Share) => {
  const startedAt = performance.now()
  const judged = await readAndJudge(deps, request, share)
  if (judged === null || 'refused' in judged) {
    share.close()
    return judged
  }
  const outcome = await acknowledge(deps, judged, share)
  logCollected(deps.logger, judged, {
    outcome: 'refused' in outcome ? outcome.refused : 'acknowledged',
    durationMs: Math.round(performance.now() - startedAt),
  })
  return outcome
}

type Judged = {
  readonly source: Source
  readonly isBatch: boolean
  readonly live: readonly Entry[]
  readonly historical: readonly Entry[]
  readonly storedBytes: number
  readonly rejected: readonly Rejected[]
}

const readAndJudge = async (
  deps: Deps,
  request: Request,
  share: Share,
): Promise<Judged | Refusal | null> => {
  const headerKey = keyOfHeader(request.authorization)
  // An unknown key is refused before its body costs anything.
  if (headerKey !== null && !sourceOf(deps, headerKey)) return unknownKey
  const { encoding } = request
  const body = await readBody(request.stream, { encoding, limits: deps.limits, share })
  if (!Buffer.isBuffer(body)) return body
  const receivedAt = deps.clock().getTime()
  const parsed = parseJson(body)
  if ('refused' in parsed) return parsed
  const flags = openTally<Flag>()
  const envelope = request.type
    ? openCall(parsed.json)
    : openBatch(parsed.json, { limits: deps.limits, flag: flags.add })
  if ('refused' in envelope) return envelope
  const source = authenticate(deps, headerKey, envelope)
  if ('refused' in source) return source
  const judged = judgeCalls(deps, envelope, {
    ...request,
    ...envelope,
    source,
    receivedAt,
    messageId: deps.messageId,
    flag: flags.add,
    limits: deps.limits,
  })
  flags.each((flag, amount) => deps.count('calls.changed', { flag }, amount))
  return judged
}

const elsewhere = refuse(
  'region_not_allowed',
  'the workspace of this source has no access to this region: send its calls to the default region',
)

const unknownKey = refuse('unknown_write_key', 'no source has this write key')

const sourceOf = (deps: Deps, key: string) => deps.live.now().sourceByWriteKey.get(key)

const authenticate = (deps: Deps, headerKey: string | null, envelope: Envelope) => {
  const key = headerKey ?? envelope.writeKey
  if (key === null)
    return refuse('no_write_key', 'send the write key by Basic authentication or as "writeKey"')
  if (envelope.writeKey !== null && envelope.writeKey !== key) deps.count('keys.differed', {}, 1)
  const source = sourceOf(deps, key)
  if (!source) return unknownKey
  return isCollectedIn(deps.region, source, deps.live.now()) ? source : elsewhere
}

const judgeCalls = (deps: Deps, envelope: Envelope, receipt: Receipt): Judged | Refusal => {
  const live: Entry[] = []
  const historical: Entry[] = []
  const rejected: Rejected[] = []
  let storedBytes = 0
  for (const [index, call] of envelope.calls.entries()) {
    const judged = normalise(call, receipt)
    if ('rejected' in judged) {
      rejected.push({ index, messageId: judged.messageId, code: judged.rejected })
      continue
    }
    const value = deps.codec.encode(judged)
    storedBytes += value.length
    if (storedBytes > deps.limits.storedBytesMax)
      return refuse('request_too_large', "the batch's context is too large for so many calls")
    const topic = isHistorical(judged, deps.limits.liveMsMax) ? historical : live
    topic.push({ key: logKey(judged), value })
  }
  const isBatch = receipt.type === null
  return { source: receipt.source, isBatch, live, historical, storedBytes, rejected }
}

const acknowledge = async (deps: Deps, judged: Judged, share: Share): Promise<Answer | Refusal> => {
  const { rejected } = judged
  const sourceId = String(judged.source.id)
  const accepted = judged.live.length + judged.historical.length
  countRejected(deps, sourceId, rejected)
  // A disabled source learns nothing; neither does whoever guesses its key.
  const isAppended = judged.source.enabled ? await append(deps, judged, share) : drop(share)
  if (!isAppended)
    return refuse('log_unavailable', 'the calls could not be stored; send them again')
  deps.count(judged.source.enabled ? 'calls.accepted' : 'calls.dropped', { sourceId }, accepted)
  if (judged.isBatch) return answerBatch(accepted, rejected)
  const [only] = rejected
  return only ? refuse(only.code, `the call was refused: ${only.code}`) : success
}

const countRejected = (deps: Deps, sourceId: string, rejected: readonly Rejected[]) => {
  const codes = openTally<RejectionCode>()
  for (const { code } of rejected) codes.add(code)
  codes.each((code, amount) => deps.count('calls.rejected', { sourceId, code }, amount))
}

const drop = (share: Share) => {
  share.close()
  return true
}

/** False when the log did not take everything in time. What it holds is released only when it settles. */
const append = async (deps: Deps, { live, historical, storedBytes }: Judged, share: Share) => {
  share.replace(storedBytes)
  const appends = [
    live.length > 0 ? deps.appender.append('calls', live) : null,
    historical.length > 0 ? deps.appender.append('calls.import', historical) : null,
  ]
  const settled = Promise.allSettled(appends).then((results) => {
    share.close()
    const failed = results.find((result) => result.status === 'rejected')
    deps.appended(!failed)
    if (failed) logUnavailable(deps.logger, failed.reason)
    return !failed
  })
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<boolean>((resolve) => {
    timer = setTimeout(() => resolve(false), deps.limits.appendMsMax)
  })
  const isAppended = await Promise.race([settled, late])
  clearTimeout(timer)
  return isAppended
}

const logUnavailable = (logger: Logger, error: unknown) =>
  logger.warn(
    { code: error instanceof Fault ? error.code : undefined, err: error },
    'append.failed',
  )

type Line = { readonly outcome: string; readonly durationMs: number }

const logCollected = (logger: Logger, judged: Judged, line: Line) => {
  const { source, rejected, storedBytes } = judged
  const level = rejected.length > 0 || line.outcome !== 'acknowledged' ? 'info' : 'debug'
  if (!logger.isLevelEnabled(level)) return
  logger[level](
    {
      sourceId: source.id,
      calls: judged.live.length,
      historical: judged.historical.length,
      rejected: rejected.length,
      storedBytes,
      ...line,
    },
    'calls.collected',
  )
}
