// What the naive evaluator reads: conditions and definitions as they are written.
import type { Reducer, Reducing } from './reduce.ts'
import type { Sequence } from './sequence.ts'
import type { Window } from './time.ts'
import type { Comparison, Path } from './values.ts'

export type Referring = Comparison & { readonly ref?: Ref }
export type Ref =
  | string
  | { readonly trait: Path }
  | { readonly step: string; readonly prop: Path }
  | Measure
export type Filter =
  | { readonly all: readonly Filter[] }
  | { readonly any: readonly Filter[] }
  | { readonly not: Filter }
  | (Referring & { readonly prop: Path })
export type Events = { readonly name: string; readonly where?: Filter; readonly window?: Window }
export type Measure = { readonly event: Events } & {
  readonly [R in Reducer]?: Reducing & Partial<Referring>
}
export type Condition =
  | { readonly all: readonly Condition[] }
  | { readonly any: readonly Condition[] }
  | { readonly not: Condition }
  | { readonly identified: true }
  | { readonly audience: string; readonly in?: boolean }
  | (Referring & { readonly trait: Path })
  | (Referring & { readonly computed: string })
  | { readonly compare: readonly Measure[]; readonly op: string }
  | { readonly sequence: Sequence<Filter> }
  | Measure

/** Of accounts: how many of each account's users meet what. */
export type OfUsers = {
  readonly users: { readonly quantifier: 'any' | 'all' | 'none'; readonly where: Condition }
}

export type Audience = {
  readonly key: string
  /** A computed trait's is a measure that is compared with nothing. */
  readonly condition: Condition | OfUsers
  readonly kind?: 'audience' | 'trait'
  readonly timezone?: string
  readonly includeAnonymous?: boolean
}
