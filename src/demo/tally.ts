// What the demo sent and what arrived: a line for each arrival, and the account at the end.
import type { Arrival } from './receiver.ts'
import type { CallKind } from './shop.ts'
import { audienceNames } from './target.ts'

export type Tally = {
  sent(kinds: readonly CallKind[]): void
  /** The line to print. */
  arrived(arrival: Arrival): string
  /** Every call of this run has arrived. */
  isComplete(): boolean
  summary(): { readonly lines: readonly string[]; readonly ok: boolean }
}

/** Names of the shop's customers and a run's suffix. */
const whoWidth = 12

type Counts = Map<string, number>

export const openTally = (run: string, began: number): Tally => {
  const sent: Counts = new Map()
  const received: Counts = new Map()
  const seen = new Set<string>()
  const latencies: number[] = []
  let unsigned = 0
  let twice = 0
  let joined = 0
  let left = 0
  const total = (counts: Counts) => [...counts.values()].reduce((sum, count) => sum + count, 0)
  const noteAudience = (isMember: boolean) => {
    if (isMember) joined++
    else left++
  }
  const noteCall = ({ at, message }: Arrival) => {
    const id = serialOf(message)
    if (id !== null && seen.has(id)) {
      twice++
      return
    }
    if (id !== null) seen.add(id)
    add(received, String(message['type']))
    latencies.push(at - Date.parse(String(message['timestamp'])))
  }
  return {
    sent: (kinds) => {
      for (const kind of kinds) add(sent, kind)
    },
    arrived: (arrival) => {
      const { message, signed, at } = arrival
      if (!signed) unsigned++
      const audience = audienceOf(message)
      const who = String(message['userId'] ?? message['User ID'])
      const time = `${((at - began) / 1_000).toFixed(1).padStart(6)} s`
      const mark = signed ? 'signature ok' : 'SIGNATURE WRONG'
      if (audience) {
        noteAudience(audience.isMember)
        const verb = audience.isMember ? 'joined' : 'left'
        return `${time}  ${'audience'.padEnd(9)} ${who.padEnd(whoWidth)} ${verb} ${audience.name}  ${mark}`
      }
      if (!who.endsWith(run)) return `${time}  of an earlier run: ${message['type']}`
      noteCall(arrival)
      return `${time}  ${String(message['type']).padEnd(9)} ${who.padEnd(whoWidth)} ${detailOf(message)}  ${mark}`
    },
    isComplete: () => total(received) >= total(sent),
    summary: () => {
      const kinds = [...sent].map(([kind, count]) => `${kind} ${received.get(kind) ?? 0}/${count}`)
      const ok = total(received) === total(sent) && unsigned === 0 && twice === 0
      return {
        ok,
        lines: [
          '',
          `Calls sent ${total(sent)}, arrived ${total(received)}, twice ${twice}, wrongly signed ${unsigned}.`,
          `By kind (arrived/sent): ${kinds.join(', ')}.`,
          `From call to webhook: median ${quantile(latencies, 0.5)} ms, 99 of 100 within ${quantile(latencies, 0.99)} ms.`,
          `Audiences: ${joined} joined, ${left} left.`,
          ok ? 'Every call arrived exactly once.' : 'NOT every call arrived exactly once.',
        ],
      }
    },
  }
}

const add = (counts: Counts, key: string) => counts.set(key, (counts.get(key) ?? 0) + 1)

/** The serial number the shop put into the call; an alias has no room for one. */
const serialOf = (message: Arrival['message']): string | null => {
  const { properties, traits } = message as {
    properties?: { n?: number }
    traits?: { n?: number }
  }
  const n = properties?.n ?? traits?.n
  return n === undefined ? null : `${message['type']} ${n}`
}

const audienceOf = (message: Arrival['message']) => {
  if (message['type'] !== 'identify') return null
  const [trait, ...others] = Object.entries((message['traits'] ?? {}) as Record<string, unknown>)
  const name = trait === undefined ? undefined : audienceNames[trait[0]]
  if (trait === undefined || name === undefined || others.length > 0) return null
  return { name, isMember: trait[1] === true }
}

const detailOf = (message: Arrival['message']): string => {
  const { event, name, groupId, traits, properties } = message as {
    event?: string
    name?: string
    groupId?: string
    traits?: { plan?: string }
    properties?: { price?: number; product?: string; name?: string }
  }
  const price = properties?.price === undefined ? '' : ` for ${properties.price.toFixed(2)}`
  const product = properties?.product === undefined ? '' : `: ${properties.product}`
  const plan = traits?.plan === undefined ? undefined : `plan ${traits.plan}`
  return `${event ?? name ?? properties?.name ?? groupId ?? plan ?? ''}${product}${price}`
}

const quantile = (values: readonly number[], share: number): number => {
  const sorted = [...values].sort((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0
}
