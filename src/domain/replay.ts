// Which past calls a replay is about, and what its destination gets of each: pure, from the record alone.
import { readCall } from './call-text.ts'
import type { Destination } from './configuration.ts'
import { filterCall, filteringOf } from './filter.ts'
import type { CallType, JsonObject, Message } from './message.ts'
import { render, renderFull } from './payload.ts'
import { renderText } from './payload-text.ts'
import { isHistorical } from './routing.ts'

export type Selection = {
  /** Which of a call's times is compared. */
  readonly by: 'receivedAt' | 'timestamp'
  /** Epoch ms, `until` excluded. */
  readonly from: number
  readonly until: number
  readonly sourceIds: ReadonlySet<number>
  /** `null`: any. */
  readonly types: ReadonlySet<CallType> | null
  /** Names of track calls. */
  readonly events: ReadonlySet<string> | null
  /** Calls of any of these users or visitors. */
  readonly userIds: ReadonlySet<string> | null
  readonly anonymousIds: ReadonlySet<string> | null
  /** Calls that are dead at the destination for any of these; what is written there decides, not the record. */
  readonly reasons: ReadonlySet<string> | null
}

type Subject = Pick<
  Message,
  'type' | 'sourceId' | 'event' | 'userId' | 'anonymousId' | 'receivedAt' | 'timestamp' | 'filtered'
>

export const isSelected = (selection: Selection, message: Subject): boolean => {
  // An order to the service, and what was stopped at its source, are nobody's messages.
  if (message.type === 'delete' || message.filtered !== null) return false
  const at = message[selection.by]
  if (at < selection.from || at >= selection.until) return false
  const { sourceIds, types, events } = selection
  return (
    sourceIds.has(message.sourceId) &&
    (types === null || types.has(message.type)) &&
    (events === null || (message.event !== null && events.has(message.event))) &&
    isOfAny(selection, message)
  )
}

const isOfAny = ({ userIds, anonymousIds }: Selection, { userId, anonymousId }: Subject): boolean =>
  (userIds === null && anonymousIds === null) ||
  (userId !== null && (userIds?.has(userId) ?? false)) ||
  (anonymousId !== null && (anonymousIds?.has(anonymousId) ?? false))

/** Why a destination does not get a call that was selected for it. */
export const withheldReasons = ['historical', 'filtered', 'unsendable'] as const
export type WithheldReason = (typeof withheldReasons)[number]

export type Rendered = { readonly body: Buffer } | { readonly withheld: WithheldReason }

/**
 * What the destination takes of a call when it alone is named: its filters and its historical switch hold as
 * they did the first time, the call's own integrations do not.
 */
export const rendererFor = (destination: Destination): ((message: Message) => Rendered) => {
  const { filters, payload, historical, historicalAfterMs } = destination
  const isPlain = filters.length === 0 && payload === 'spec'
  const filtering = filteringOf(destination.id, filters)
  const renderWhole = payload === 'full' ? renderFull : render
  return (message) => {
    if (!historical && isHistorical(message, historicalAfterMs)) return { withheld: 'historical' }
    try {
      const stored = bufferOf(message.body)
      const text = isPlain ? readCall(stored) : null
      const body = text && renderText(message, text)
      if (body) return { body }
      const call = JSON.parse(stored.toString('utf8')) as JsonObject
      const taken = filterCall(filtering, message, call)
      return 'withheld' in taken
        ? { withheld: 'filtered' }
        : { body: renderWhole(message, taken.call) }
    } catch {
      // Nobody is told the error: a parser's message quotes the body.
      return { withheld: 'unsendable' }
    }
  }
}

const bufferOf = (bytes: Uint8Array): Buffer =>
  Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
