// One entry of the debugger as it is stored and streamed: what became of a call, masked.
import type { Json } from '../domain/message.ts'
import type { DebuggerStep, Told } from './debugger.ts'
import { maskCall, shownMessageId } from './mask.ts'
import { shown } from './scrub.ts'

export type Entry = {
  readonly at: string
  readonly step: DebuggerStep
  readonly reason: string | null
  readonly type: string
  readonly event: string | null
  readonly messageId: string | null
  readonly call: Json
  /** The call had more than is shown. */
  readonly isCut: boolean
}

export const entryOf = ({ at, step, reason, type, event, messageId, call }: Told): Entry => {
  const masked = maskCall(
    call instanceof Uint8Array ? (JSON.parse(Buffer.from(call).toString()) as Json) : call,
  )
  return {
    at: new Date(at).toISOString(),
    step,
    reason,
    type,
    event: event === null ? null : shown(event),
    messageId: messageId === null ? null : shownMessageId(messageId),
    ...masked,
  }
}
