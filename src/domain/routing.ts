// Which destinations take a call: its integrations map and the destination's historical switch.
import type { Destination } from './configuration.ts'
import { isObject, type Json, type JsonObject, type Message } from './message.ts'

/** The name an integrations map may use for every destination of a type. */
const typeNames = { webhook: 'Webhooks' } as const satisfies Record<Destination['type'], string>

type Named = Pick<Destination, 'name' | 'type'>

/**
 * The destination's own name wins, then its type's name, then `All`; by default everything is on.
 * Names are case sensitive. A value that is neither boolean nor object says nothing.
 */
export const isIntegrated = (integrations: Json | undefined, destination: Named): boolean => {
  if (!isObject(integrations)) return true
  for (const name of [destination.name, typeNames[destination.type], 'All']) {
    const value = Object.hasOwn(integrations, name) ? integrations[name] : undefined
    if (typeof value === 'boolean') return value
    if (typeof value === 'object' && value !== null) return true
  }
  return true
}

/** From the record alone, never the clock, so that a replay decides as the first time. */
export const isHistorical = (
  message: Pick<Message, 'receivedAt' | 'timestamp'>,
  afterMs: number,
): boolean => message.receivedAt - message.timestamp > afterMs

type Takes = Named & Pick<Destination, 'enabled' | 'historical' | 'historicalAfterMs'>

/** Why a destination of the call's source does not get it, were it without filters; `null`: it does. */
export type Unrouted = 'destination_disabled' | 'integrations' | 'historical'

export const unrouted = (
  destination: Takes,
  message: Pick<Message, 'receivedAt' | 'timestamp'>,
  call: JsonObject,
): Unrouted | null => {
  if (!destination.enabled) return 'destination_disabled'
  if (!isIntegrated(call['integrations'], destination)) return 'integrations'
  return !destination.historical && isHistorical(message, destination.historicalAfterMs)
    ? 'historical'
    : null
}
