// Decides what becomes of each call found: pure but for the duplicates, whose verdict is the log's.
import type { Destination } from '../domain/configuration.ts'
import { rendererFor, type WithheldReason } from '../domain/replay.ts'
import { isDropped, type Suppressions } from '../domain/suppression.ts'
import type { Found } from './read.ts'

export type Decided = Found & {
  /** What is sent; else why nothing is. */
  readonly body: Buffer | null
  readonly why: WithheldReason | 'duplicate' | 'suppressed' | null
}

type Deciding = {
  readonly destination: Destination
  readonly suppressions: Suppressions
  /** By index of the calls found. */
  readonly duplicate: readonly boolean[]
}

export const decide = (found: readonly Found[], deciding: Deciding): readonly Decided[] => {
  const render = rendererFor(deciding.destination)
  return found.map((one, at) => {
    const { message } = one
    if (deciding.duplicate[at] === true) return { ...one, body: null, why: 'duplicate' }
    if (isDropped(deciding.suppressions, message)) return { ...one, body: null, why: 'suppressed' }
    const rendered = render(message)
    return 'withheld' in rendered
      ? { ...one, body: null, why: rendered.withheld }
      : { ...one, body: rendered.body, why: null }
  })
}

/** So many of the calls that the ones to be sent among them are `room` at the most. */
export const portionOf = (decided: readonly Decided[], room: number): readonly Decided[] => {
  let sends = 0
  const end = decided.findIndex(({ body }) => {
    if (body !== null) sends += 1
    return sends > room
  })
  return end < 0 ? decided : decided.slice(0, end)
}
