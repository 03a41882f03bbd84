// Decides once for each call which destinations get it, and as which bytes; why the others do not is counted.
import { type CallText, readCall, valueAt } from '../domain/call-text.ts'
import type { Destination } from '../domain/configuration.ts'
import { chooseProperties, type Filtering, filterCall, filteringOf } from '../domain/filter.ts'
import type { JsonObject, Message } from '../domain/message.ts'
import { render, renderFull } from '../domain/payload.ts'
import { renderText } from '../domain/payload-text.ts'
import { type Unrouted, unrouted } from '../domain/routing.ts'
import { isDropped, nobodySuppressed } from '../domain/suppression.ts'
import type { Stage } from './stage.ts'

export type Withheld = {
  readonly destinationId: number
  readonly reason: Unrouted | 'sampled' | 'dropped' | 'suppressed'
}

export type Fanned = {
  readonly destinationIds: readonly number[]
  readonly body: Buffer
  /** Bodies of destinations whose filters made theirs another one. */
  readonly own: ReadonlyMap<number, Buffer>
  /** Destinations it cannot be made into a message for: dead at once, so that the partition goes on. */
  readonly poisoned: ReadonlySet<number>
  readonly withheld: readonly Withheld[]
}

const nobody: ReadonlySet<number> = new Set()
const noBodies: ReadonlyMap<number, Buffer> = new Map()

const nothing = Buffer.alloc(0)

const nowhere: Fanned = {
  destinationIds: [],
  body: nothing,
  own: noBodies,
  poisoned: nobody,
  withheld: [],
}

/** Of a message the service made itself: no filter is asked. */
export const fanOne = (destinationId: number, body: Buffer, isPoisoned: boolean): Fanned => ({
  ...nowhere,
  destinationIds: [destinationId],
  body,
  poisoned: isPoisoned ? new Set([destinationId]) : nobody,
})

/** Decided once, at fan-out: destinations, integrations, filters, the historical switch and the body's bytes. */
export const fanOut = (stage: Stage, message: Message): Fanned => {
  const destinations = stage.deps.live.now().destinationsBySource.get(message.sourceId)
  // A deletion request is an order to the service, not a call to pass on.
  if (!destinations || destinations.length === 0 || message.type === 'delete') return nowhere
  // Stopped at its source, and in the log only because it counts towards usage.
  if (message.filtered !== null) return nowhere
  if (isDropped(stage.deps.suppressions ?? nobodySuppressed, message))
    return { ...nowhere, withheld: destinations.map(suppressedOf) }
  const stored = bufferOf(message.body)
  try {
    const text = destinations.some(isChoosy) ? null : readCall(stored)
    const fanned = text && routeText(message, text, destinations)
    if (fanned) return fanned
    const call = JSON.parse(stored.toString('utf8')) as JsonObject
    return route(message, call, destinations)
  } catch {
    // Nobody is told the error: a parser's message quotes the body. The burial names the message.
    const destinationIds = destinations.filter(({ enabled }) => enabled).map(({ id }) => id)
    return { ...nowhere, destinationIds, body: stored, poisoned: new Set(destinationIds) }
  }
}

const suppressedOf = ({ id }: Destination): Withheld => ({
  destinationId: id,
  reason: 'suppressed',
})

const nothingAsked: JsonObject = {}

/** The usual case, in which the call need not be parsed; `null`: it must be. */
const routeText = (
  message: Message,
  text: CallText,
  destinations: readonly Destination[],
): Fanned | null => {
  const destinationIds: number[] = []
  const withheld: Withheld[] = []
  const { integrations } = text
  const call = integrations ? { integrations: valueAt(text, integrations) } : nothingAsked
  for (const destination of destinations) {
    const reason = unrouted(destination, message, call)
    if (reason === null) destinationIds.push(destination.id)
    else withheld.push({ destinationId: destination.id, reason })
  }
  if (destinationIds.length === 0) return { ...nowhere, withheld }
  const body = renderText(message, text)
  return body && { destinationIds, body, own: noBodies, poisoned: nobody, withheld }
}

const route = (
  message: Message,
  call: JsonObject,
  destinations: readonly Destination[],
): Fanned => {
  const destinationIds: number[] = []
  const withheld: Withheld[] = []
  const choosy: Destination[] = []
  for (const destination of destinations) {
    const reason = unrouted(destination, message, call)
    if (reason !== null) withheld.push({ destinationId: destination.id, reason })
    else if (isChoosy(destination)) choosy.push(destination)
    else destinationIds.push(destination.id)
  }
  if (choosy.length > 0) return routeChoosy({ message, call, choosy, destinationIds, withheld })
  if (destinationIds.length === 0) return { ...nowhere, withheld }
  const body = render(message, call)
  return { destinationIds, body, own: noBodies, poisoned: nobody, withheld }
}

/** Whether its body may differ from the one everybody gets. */
const isChoosy = ({ filters, payload }: Destination): boolean =>
  filters.length > 0 || payload !== 'spec'

type Choosing = {
  readonly message: Message
  readonly call: JsonObject
  readonly choosy: readonly Destination[]
  readonly destinationIds: number[]
  readonly withheld: Withheld[]
}

const routeChoosy = (choosing: Choosing): Fanned => {
  const { message, call, choosy, destinationIds, withheld } = choosing
  const own = new Map<number, Buffer>()
  const poisoned = new Set<number>()
  const bodies = bodiesOf(message, call)
  const body = bodies.spec()
  for (const destination of choosy) {
    const { id } = destination
    const taken = takenBy(destination, message, call)
    if (taken !== null && 'withheld' in taken) {
      withheld.push({ destinationId: id, reason: taken.withheld })
      continue
    }
    destinationIds.push(id)
    if (taken === null) {
      poisoned.add(id)
      own.set(id, nothing)
      continue
    }
    const chosen =
      taken.call === call
        ? bodies[destination.payload]()
        : bodiesOf(message, taken.call)[destination.payload]()
    if (chosen !== body && !chosen.equals(body)) own.set(id, chosen)
  }
  return { destinationIds, body, own, poisoned, withheld }
}

/** Each made once at most: destinations that get the same share one buffer. */
const bodiesOf = (message: Message, call: JsonObject) => {
  let spec: Buffer | null = null
  let full: Buffer | null = null
  return {
    spec: () => {
      spec ??= render(message, call)
      return spec
    },
    full: () => {
      full ??= renderFull(message, call)
      return full
    },
  } satisfies Record<Destination['payload'], () => Buffer>
}

/** `null`: filters that this version cannot evaluate, which must not let through what they should hold. */
const takenBy = (destination: Destination, message: Message, call: JsonObject) => {
  try {
    return filterCall(readyFor(destination), message, call)
  } catch {
    return null
  }
}

/** A snapshot's destinations are the same objects for as long as it holds. */
const ready = new WeakMap<Destination, Filtering>()

const readyFor = (destination: Destination): Filtering => {
  const known = ready.get(destination)
  if (known) return known
  const filtering = filteringOf(destination.id, destination.filters)
  ready.set(destination, filtering)
  return filtering
}

/**
 * The body once more, of a call that was parked by its coordinates: that it goes was decided, what of it goes
 * is decided by the filters of now. `null` when it cannot be made.
 */
export const renderAgain = (
  message: Message,
  destination: Destination | undefined,
): Buffer | null => {
  try {
    const call = JSON.parse(bufferOf(message.body).toString('utf8')) as JsonObject
    if (!destination || !isChoosy(destination)) return render(message, call)
    const chosen = chooseProperties(readyFor(destination), message, call)
    return bodiesOf(message, chosen)[destination.payload]()
  } catch {
    return null
  }
}

export const bufferOf = (bytes: Uint8Array): Buffer =>
  Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
