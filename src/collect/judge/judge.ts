// Judges every call of a request: what is appended to which topic, and what is rejected with which code.
import type { Source } from '../../domain/configuration.ts'
import { type Json, logKey, type Message } from '../../domain/message.ts'
import { normalise, type Receipt } from '../../domain/normalise.ts'
import type { Rejection } from '../../domain/rejection.ts'
import { isHistorical } from '../../domain/routing.ts'
import { isDropped } from '../../domain/suppression.ts'
import type { Entry } from '../../log/log.ts'
import { type Refusal, type Rejected, refuse } from '../answer/answer.ts'
import { type Fates, kindOf, openFates } from '../count.ts'
import type { Deps } from '../deps.ts'
import type { CollectLimits } from '../limits.ts'
import { type Client, clientOf } from '../request/client.ts'
import type { Envelope } from '../request/envelope.ts'
import { type Watched, watch } from './watch.ts'

export type Judged = {
  readonly source: Source
  readonly isBatch: boolean
  /** How many came. */
  readonly calls: number
  readonly live: readonly Entry[]
  readonly historical: readonly Entry[]
  readonly storedBytes: number
  readonly rejected: readonly Rejected[]
  /** Named where something was rejected. */
  readonly client: Client | null
  /** Answered as accepted, and appended only where they count as usage. */
  readonly filtered: readonly Message[]
  /** Answered as accepted; neither appended nor shown to anybody. */
  readonly suppressed: number
  /** How many of `filtered` stand in `live` and `historical`. */
  readonly metered: number
  readonly fates: Fates
  /** `null` when nobody watches the source. */
  readonly watched: Watched | null
}

type Judging = Receipt & { readonly limits: CollectLimits }

export const judgeCalls = (deps: Deps, envelope: Envelope, receipt: Judging): Judged | Refusal => {
  const live: Entry[] = []
  const historical: Entry[] = []
  const rejected: Rejected[] = []
  const filtered: Message[] = []
  const fates = openFates()
  const watched = watch(deps.debugger, receipt)
  const isMetered = metersFiltered(deps, receipt.source)
  let storedBytes = 0
  let suppressed = 0
  for (const [index, call] of envelope.calls.entries()) {
    const judged = judgeCall(call, receipt)
    if ('rejected' in judged) {
      rejected.push({ index, messageId: judged.messageId, code: judged.rejected })
      fates.reject(kindOf(call, receipt.type), judged.rejected)
      watched?.reject(judged, call)
      continue
    }
    if (isDropped(deps.suppressions, judged)) {
      suppressed += 1
      fates.filter(judged.type, 'suppressed')
      continue
    }
    if (judged.filtered !== null) {
      filtered.push(judged)
      fates.filter(judged.type, judged.filtered)
      watched?.filter(judged, call)
      if (!isMetered) continue
    } else {
      fates.append(judged.type)
      watched?.accept(judged)
    }
    const value = deps.codec.encode(judged)
    storedBytes += value.length
    if (storedBytes > receipt.limits.storedBytesMax)
      return {
        ...refuse('request_too_large', "the batch's context is too large for so many calls"),
        about: { sourceId: receipt.source.id },
      }
    const topic = isHistorical(judged, receipt.limits.liveMsMax) ? historical : live
    topic.push({ key: logKey(judged), value })
  }
  const isBatch = receipt.type === null
  const metered = isMetered ? filtered.length : 0
  return {
    source: receipt.source,
    isBatch,
    calls: envelope.calls.length,
    live,
    historical,
    storedBytes,
    rejected,
    client: rejected.length > 0 ? clientOf(receipt.userAgent, envelope) : null,
    filtered,
    suppressed,
    metered,
    fates,
    watched,
  }
}

const judgeCall = (call: Json, receipt: Judging): Message | Rejection => {
  const judged = normalise(call, receipt)
  if ('rejected' in judged || entryBytes(judged) <= receipt.limits.entryBytesMax) return judged
  return { messageId: judged.messageId, rejected: 'call_too_large' }
}

/** At most: an event's name stands beside the body, too. */
const entryBytes = ({ body, event }: Message) => body.length + 3 * (event?.length ?? 0)

/** The source as configured: a pixel's call of a server source is still the server source's. */
const metersFiltered = ({ live }: Deps, { id, workspaceId }: Source): boolean => {
  const { workspaces, sources } = live.now()
  return (
    (workspaces.get(workspaceId)?.grandfathered ?? false) && sources.get(id)?.class === 'server'
  )
}
