// One request from its first byte to its answer: read · judge every call · append · acknowledge.
import type { Logger } from 'pino'
import type { Flag } from '../domain/rejection.ts'
import { acknowledge } from './acknowledge.ts'
import { type Answer, answerRefusal, type Refusal, success } from './answer/answer.ts'
import { openTally, type Tally } from './count.ts'
import type { Deps } from './deps.ts'
import { beyondOwn, overQuota, secondsToWait, shedHistorical, shedLate } from './gate/admit.ts'
import type { Share } from './gate/pressure.ts'
import { type Judged, judgeCalls } from './judge/judge.ts'
import { tellRefused } from './judge/watch.ts'
import { limitsOf } from './limits.ts'
import {
  authenticate,
  type Claim,
  type Speaker,
  speakerOf,
  unknownKey,
} from './request/authenticate.ts'
import { parseJson, readBody } from './request/body.ts'
import { clientOf } from './request/client.ts'
import { type Envelope, openBatch, openCall } from './request/envelope.ts'
import type { Request } from './request/request.ts'
import { keyOfHeader } from './request/write-key.ts'

/** `null` when the client went away before its body ended. */
export const receive = async (deps: Deps, request: Request): Promise<Answer | null> => {
  const late = shedLate(deps)
  if (late) {
    tellRefused(deps, late, request)
    return answerRefused(deps, late, request)
  }
  const share = deps.pressure.open()
  const outcome = await take(deps, request, share).catch((error: unknown) => {
    share.close()
    throw error
  })
  if (outcome === null || 'status' in outcome) return outcome
  return answerRefused(deps, outcome, request)
}

export const answerRefused = (
  deps: Deps,
  refusal: Refusal,
  { userAgent }: Pick<Request, 'userAgent'>,
): Answer => {
  const { refused: code, about } = refusal
  deps.count('requests.refused', { code }, 1)
  deps.logger.info({ code, ...clientOf(userAgent, null), ...about }, 'request.refused')
  const answer = answerRefusal(refusal)
  if (deps.always200 && (answer.status === 400 || answer.status === 401)) return success
  if (answer.status !== 429) return answer
  const seconds = refusal.retryAfterSeconds ?? secondsToWait(deps, deps.limits.inFlightBytesMax)
  const resetAt = Math.ceil(deps.clock().getTime() / 1_000) + seconds
  return {
    ...answer,
    headers: { 'retry-after': String(seconds), 'x-ratelimit-reset': String(resetAt) },
  }
}

const take = async (deps: Deps, request: Request, share: Share) => {
  const startedAt = performance.now()
  const read = await readCalls(deps, request, share)
  const judged = read === null || 'refused' in read ? read : judge(deps, request, read)
  if (judged === null || 'refused' in judged) {
    share.close()
    if (judged !== null) tellRefused(deps, judged, request)
    return judged
  }
  const shed = shedHistorical(deps, judged, share)
  if (shed) tellRefused(deps, shed, request)
  const outcome = shed ?? (await acknowledge(deps, judged, share))
  // What nothing was taken of comes again, and must find room then.
  if ('refused' in outcome && answerRefusal(outcome).status >= 429)
    deps.quotas.giveBack(judged.source, judged.calls)
  logCollected(deps.logger, judged, {
    outcome: 'refused' in outcome ? outcome.refused : 'acknowledged',
    durationMs: Math.round(performance.now() - startedAt),
  })
  return outcome
}

type Read = {
  readonly speaker: Speaker
  readonly envelope: Envelope
  readonly bytes: number
  readonly receivedAt: number
  readonly flags: Tally<Flag>
}

const readCalls = async (
  deps: Deps,
  request: Request,
  share: Share,
): Promise<Read | Refusal | null> => {
  const { encoding, queryKey, origin } = request
  const headerKey = keyOfHeader(request.authorization)
  // An unknown key is refused before its body costs anything, and so is who has nothing left of a quota.
  const speaker =
    headerKey === null
      ? null
      : (speakerOf(deps, headerKey) ?? (await newSpeakerOf(deps, headerKey)))
  if (headerKey !== null && !speaker) return unknownKey
  const spent = speaker && spentQuota(deps, speaker)
  if (spent) return spent
  const bodyBytesMax = speaker
    ? limitsOf(deps.limits, speaker.source).bodyBytesMax
    : deps.bodyBytesMax(deps.live.now())
  const { ratioMax } = deps.limits
  const body = await readBody(request.stream, { encoding, bodyBytesMax, ratioMax, share })
  if (!Buffer.isBuffer(body)) return body
  const receivedAt = deps.clock().getTime()
  const parsed = parseJson(body)
  if ('refused' in parsed) return parsed
  const flags = openTally<Flag>()
  const envelope = request.type
    ? openCall(parsed.json, queryKey)
    : openBatch(parsed.json, { limits: deps.limits, flag: flags.add, queryKey })
  if ('refused' in envelope) return envelope
  const claim = { speaker, envelope, origin }
  const first = authenticate(deps, claim)
  const found = first === unknownKey ? await authenticateAgain(deps, claim) : first
  if ('refused' in found)
    return { ...found, about: { ...found.about, ...clientOf(request.userAgent, envelope) } }
  return { speaker: found, envelope, bytes: body.length, receivedAt, flags }
}

/** A key made a moment ago is in no snapshot of before: it is not refused unseen. */
const newSpeakerOf = async (deps: Deps, key: string): Promise<Speaker | null> => {
  await deps.lookAgain()
  return speakerOf(deps, key)
}

const authenticateAgain = async (deps: Deps, claim: Claim): Promise<Speaker | Refusal> => {
  await deps.lookAgain()
  return authenticate(deps, claim)
}

const spentQuota = (deps: Deps, { source }: Speaker) =>
  source.settings.callsPerSecondMax === null
    ? null
    : overQuota(deps, source, { calls: null, at: deps.clock().getTime() })

const judge = (deps: Deps, request: Request, read: Read): Judged | Refusal => {
  const { envelope, bytes, receivedAt, flags } = read
  const { source, isSecret } = read.speaker
  const limits = limitsOf(deps.limits, source)
  const calls = envelope.calls.length
  const beyond =
    beyondOwn(limits, { bytes, calls }) ?? overQuota(deps, source, { calls, at: receivedAt })
  if (beyond)
    return { ...beyond, about: { sourceId: source.id, ...clientOf(request.userAgent, envelope) } }
  const judged = judgeCalls(deps, envelope, {
    ...request,
    ...envelope,
    source: request.isPixel ? { ...source, class: 'web' } : source,
    mayDelete: isSecret,
    receivedAt,
    messageId: deps.messageId,
    flag: flags.add,
    // A disabled source's calls go nowhere, whatever they hold.
    plan: source.enabled ? deps.plans.of(source, receivedAt) : undefined,
    limits,
  })
  flags.each((flag, amount) => deps.count('calls.changed', { flag }, amount))
  return judged
}

type Line = { readonly outcome: string; readonly durationMs: number }

const logCollected = (logger: Logger, judged: Judged, line: Line) => {
  const { source, rejected, storedBytes, client } = judged
  const level = rejected.length > 0 || line.outcome !== 'acknowledged' ? 'info' : 'debug'
  if (!logger.isLevelEnabled(level)) return
  logger[level](
    {
      sourceId: source.id,
      calls: judged.live.length,
      historical: judged.historical.length,
      rejected: rejected.length,
      storedBytes,
      ...client,
      ...line,
    },
    'calls.collected',
  )
}
