// The stretches of the log a replay reads, one after the other, and how far it has come in all of them: one number.

export type Span = {
  readonly topic: 'calls' | 'calls.import'
  readonly partition: number
  readonly from: number
  readonly until: number
}

export const lengthOf = (spans: readonly Span[]): number =>
  spans.reduce((sum, { from, until }) => sum + until - from, 0)

/** A span with the number of offsets in those before it. */
export type Placed = Span & { readonly before: number }

/** What is left when so many offsets have been read; of the first only its rest. */
export const restOf = (spans: readonly Span[], read: number): readonly Placed[] => {
  const rest: Placed[] = []
  let before = 0
  for (const span of spans) {
    const done = Math.max(0, read - before)
    const length = span.until - span.from
    if (done < length) rest.push({ ...span, from: span.from + done, before: before + done })
    before += length
  }
  return rest
}

/** How many offsets have been read once everything below `offset` of a span has. */
export const readAt = ({ before, from }: Placed, offset: number): number => before + offset - from
