// What the collect stage counts: flags and refusals as metrics, and the fates of calls for the pipeline.
import { callTypes, isObject, type Json } from '../domain/message.ts'
import type { Counted, Pipeline } from '../domain/pipeline.ts'

export type CountName =
  /** By flag: kept, but not exactly as they came. */
  | 'calls.changed'
  /** By metric: what clients count about themselves. */
  | 'clients.counted'
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

type Kind = Counted['type']

/** What became of the calls of one request: each has exactly one fate, beside having been received. */
export type Fates = {
  /** To be appended: whether it was is known only when the log has answered. */
  append(type: Kind): void
  reject(type: Kind, code: string): void
  filter(type: Kind, reason: string): void
  each(use: (fate: Fate, amount: number) => void): void
}

export type Fate = Pick<Counted, 'step' | 'type' | 'reason'>

export const openFates = (): Fates => {
  const fates = new Map<string, { readonly fate: Fate; amount: number }>()
  const appended = new Map<Kind, number>()
  const add = (step: 'rejected' | 'filtered', type: Kind, reason: string) => {
    const name = `${step} ${type} ${reason}`
    const held = fates.get(name)
    if (held === undefined) fates.set(name, { fate: { step, type, reason }, amount: 1 })
    else held.amount += 1
  }
  return {
    append: (type) => void appended.set(type, (appended.get(type) ?? 0) + 1),
    reject: (type, code) => add('rejected', type, code),
    filter: (type, reason) => add('filtered', type, reason),
    each: (use) => {
      for (const [type, amount] of appended) use({ step: 'appended', type, reason: null }, amount)
      for (const { fate, amount } of fates.values()) use(fate, amount)
    },
  }
}

/** The path's type, else what the call itself says it is. */
export const kindOf = (call: Json, type: Kind | null): Kind => {
  const said = type ?? (isObject(call) ? call['type'] : null)
  return callTypes.find((known) => known === said) ?? 'unknown'
}

type Ended = {
  readonly sourceId: number
  readonly isEnabled: boolean
  /** Whether the log has what was to be appended. */
  readonly isAppended: boolean
}

/** Calls that the log did not take were received and met no end: their sender brings them again. */
export const countFates = (pipeline: Pipeline, fates: Fates, ended: Ended): void => {
  const { sourceId, isEnabled, isAppended } = ended
  const received = new Map<Kind, number>()
  fates.each(({ step, type, reason }, amount) => {
    received.set(type, (received.get(type) ?? 0) + amount)
    const counted = { sourceId, destinationId: null, type }
    if (step === 'rejected' || isEnabled) {
      if (step !== 'appended' || isAppended) pipeline.count({ ...counted, step, reason }, amount)
    } else pipeline.count({ ...counted, step: 'filtered', reason: 'source_disabled' }, amount)
  })
  for (const [type, amount] of received)
    pipeline.count({ sourceId, destinationId: null, step: 'received', type, reason: null }, amount)
}
