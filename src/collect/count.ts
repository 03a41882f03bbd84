// What the collect stage counts; the process that runs it turns these into metrics.

export type CountName =
  /** By source. */
  | 'calls.accepted'
  /** By flag: kept, but not exactly as they came. */
  | 'calls.changed'
  /** By source: answered as accepted, because their source is disabled. */
  | 'calls.dropped'
  /** By source and code. */
  | 'calls.rejected'
  /** The header and the body named different write keys; the header won. */
  | 'keys.differed'
  /** By code. */
  | 'requests.refused'

export type Count = (
  name: CountName,
  labels: Readonly<Record<string, string>>,
  amount: number,
) => void

export const countNothing: Count = () => undefined

/** Adds up within one request, so that a batch costs one count per label and not one per call. */
export type Tally<Label extends string> = {
  add(label: Label): void
  each(use: (label: Label, amount: number) => void): void
}

export const openTally = <Label extends string>(): Tally<Label> => {
  let amounts: Map<Label, number> | null = null
  return {
    add: (label) => {
      amounts ??= new Map()
      amounts.set(label, (amounts.get(label) ?? 0) + 1)
    },
    each: (use) => {
      for (const [label, amount] of amounts ?? []) use(label, amount)
    },
  }
}
