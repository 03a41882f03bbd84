// Judges the records of a chunk as collected calls are judged, and makes of them what is appended.
import { setImmediate } from 'node:timers/promises'
import type { Source } from '../domain/configuration.ts'
import { callTypes, isObject, type Json, logKey, type Message } from '../domain/message.ts'
import { type CallLimits, normalise } from '../domain/normalise.ts'
import { normaliseText } from '../domain/normalise-text.ts'
import type { Pipeline } from '../domain/pipeline.ts'
import type { Suppressions } from '../domain/suppression.ts'
import type { Plan } from '../domain/tracking-plan.ts'
import type { Codec, Entry } from '../log/log.ts'
import { messageIdOf } from './identity.ts'
import { importLimits } from './limits.ts'
import { readLine } from './ndjson.ts'
import {
  type LineCall,
  type LineRecord,
  type LineRejection,
  type LineText,
  reasonOf,
} from './record.ts'

export type Prepared = { readonly entry: Entry; readonly digest: Uint8Array }

export type JudgedChunk = {
  readonly entries: readonly Prepared[]
  readonly rejected: readonly LineRejection[]
  readonly accepted: number
  readonly filtered: number
  readonly suppressed: number
  /** Of those accepted, the ones that bring no time, or none that can be read or has been: theirs is now. */
  readonly untimed: number
  /** Once it is known that the log has them. */
  count(pipeline: Pipeline): void
}

export type Judging = {
  readonly source: Source
  readonly limits: CallLimits & { readonly entryBytesMax: number }
  readonly plan: Plan | undefined
  readonly codec: Codec<Message>
  readonly suppressions: Suppressions
  /** Whether filtered calls count as usage, and are appended for it. */
  readonly metersFiltered: boolean
  readonly receivedAt: number
  readonly key: Uint8Array
}

export const judgeRecords = async (
  records: Iterable<LineRecord | LineText>,
  judging: Judging,
): Promise<JudgedChunk> => {
  const chunk = openChunk(judging)
  let sliceEnds = performance.now() + importLimits.sliceMs
  for (const _ of stepsOf(records, chunk)) {
    if (performance.now() < sliceEnds) continue
    await setImmediate()
    sliceEnds = performance.now() + importLimits.sliceMs
  }
  return chunk.judged()
}

/** A step a call: a line may hold a batch of tens of thousands. */
function* stepsOf(
  records: Iterable<LineRecord | LineText>,
  chunk: ReturnType<typeof openChunk>,
): Generator<void> {
  for (const record of records) {
    if (!('text' in record)) chunk.add(record)
    else if (!chunk.addText(record))
      for (const one of readLine(record)) {
        chunk.add(one)
        yield
      }
    yield
  }
}

type Step = 'rejected' | 'filtered' | 'appended'
type Kind = (typeof callTypes)[number] | 'unknown'
type Counted = {
  readonly step: Step
  readonly type: Kind
  readonly reason: string | null
  amount: number
}

const openChunk = (judging: Judging) => {
  const { source, codec, metersFiltered } = judging
  const entries: Prepared[] = []
  const rejected: LineRejection[] = []
  const amounts = { accepted: 0, filtered: 0, suppressed: 0, untimed: 0 }
  const counts: Counted[] = []
  let last: Counted | undefined
  const count = (step: Step, type: Kind, reason: string | null) => {
    const isIt = (held: Counted | undefined) =>
      held?.step === step && held.type === type && held.reason === reason
    // Neighbours are mostly alike.
    const held = isIt(last) ? last : counts.find(isIt)
    last = held ?? { step, type, reason, amount: 0 }
    if (held === undefined) counts.push(last)
    last.amount += 1
  }
  const keep = (message: Message) => {
    const value = codec.encode(message)
    entries.push({ entry: { key: logKey(message), value }, digest: message.digest })
  }
  const accept = (message: Message) => {
    if (isSuppressed(message, judging)) amounts.suppressed += 1
    else if (message.filtered !== null) {
      amounts.filtered += 1
      count('filtered', message.type, message.filtered)
      if (metersFiltered) keep(message)
    } else {
      amounts.accepted += 1
      if (message.timestamp === judging.receivedAt) amounts.untimed += 1
      count('appended', message.type, null)
      keep(message)
    }
  }
  return {
    add: (record: LineRecord) => {
      const judged = judgeRecord(record, judging)
      if (!('code' in judged)) return accept(judged)
      rejected.push(judged)
      count('rejected', 'call' in record ? kindOf(record.call) : 'unknown', judged.code)
    },
    /** `false`: it must be parsed. */
    addText: (record: LineText): boolean => {
      const message = judgeText(record, judging)
      if (message !== null) accept(message)
      return message !== null
    },
    judged: (): JudgedChunk => ({
      entries,
      rejected,
      ...amounts,
      count: (pipeline) => {
        for (const { amount, ...fate } of counts) {
          const counted = { sourceId: source.id, destinationId: null, type: fate.type }
          pipeline.count({ ...counted, step: 'received', reason: null }, amount)
          pipeline.count({ ...counted, step: fate.step, reason: fate.reason }, amount)
        }
      },
    }),
  }
}

/** What nearly all lines are; a plan looks into a call's properties. */
const judgeText = ({ line, text }: LineText, judging: Judging): Message | null => {
  const { source, receivedAt, limits, plan, key } = judging
  if (plan !== undefined) return null
  const messageId = () => messageIdOf(key, line, 0)
  const message = normaliseText(text, { source, receivedAt, limits, messageId })
  return message && message.body.length + 3 * (message.event?.length ?? 0) <= limits.entryBytesMax
    ? message
    : null
}

const judgeRecord = (record: LineRecord, judging: Judging): Message | LineRejection => {
  if ('code' in record) return record
  const { limits, receivedAt, plan, key } = judging
  const judged = normalise(withoutReceipt(record.call), {
    source: judging.source,
    type: null,
    receivedAt,
    sentAt: undefined,
    retryCount: 0,
    context: {},
    integrations: {},
    ip: null,
    userAgent: null,
    messageId: () => messageIdOf(key, record.line, record.index),
    flag: () => undefined,
    plan,
    limits,
  })
  if ('rejected' in judged) return rejection(record, judged.rejected)
  return judged.body.length + 3 * (judged.event?.length ?? 0) <= limits.entryBytesMax
    ? judged
    : rejection(record, 'call_too_large')
}

/** Whoever received it before has corrected its `timestamp` already. */
const withoutReceipt = (call: Json): Json => {
  if (!isObject(call) || !('receivedAt' in call)) return call
  const { receivedAt: _, ...rest } = call
  return rest
}

const rejection = ({ line, index }: LineCall, code: LineRejection['code']): LineRejection => ({
  line,
  index,
  code,
  reason: reasonOf[code],
})

/** What happened before a user asked to be forgotten does not bring the user back. */
const isSuppressed = (
  { workspaceId, userId, anonymousId, previousId, timestamp }: Message,
  { suppressions }: Judging,
) => {
  const sentAt = new Date(timestamp)
  return suppressions.isSuppressed({ workspaceId, userId, anonymousId, previousId, sentAt })
}

const kindOf = (call: Json): Kind => {
  const said = isObject(call) ? call['type'] : null
  return callTypes.find((known) => known === said) ?? 'unknown'
}
