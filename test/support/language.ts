// The form of calls, conditions and definitions as they are written: shared by generators, scenarios and the
// naive evaluator, and by nothing of the product.

export type Json =
  | null
  | boolean
  | number
  | string
  | readonly Json[]
  | { readonly [key: string]: Json }
export type Path = string | readonly string[]

/** One accepted call, in log order. Times in epoch ms. */
export type Call = {
  readonly type: string
  readonly messageId: string
  readonly userId: string | null
  readonly anonymousId: string | null
  readonly previousId: string | null
  /** Of a group call; a log without accounts need not have it. */
  readonly groupId?: string | null
  readonly event: string | null
  readonly properties: { readonly [key: string]: Json }
  readonly traits: { readonly [key: string]: Json }
  readonly timestamp: number
  readonly receivedAt: number
}

export type Ref =
  | string
  | { readonly trait: Path }
  | { readonly step: string; readonly prop: Path }
  | Measure

export type Comparison = {
  readonly op: string
  readonly value?: Json
  /** Stands for the value: a trait, a computed trait, a property of an earlier step, or a measure. */
  readonly ref?: Ref
  readonly ci?: boolean
  readonly timezone?: string
}

/** Asked of the properties of one event. */
export type Filter =
  | { readonly all: readonly Filter[] }
  | { readonly any: readonly Filter[] }
  | { readonly not: Filter }
  | (Comparison & { readonly prop: Path })

export type Window = {
  readonly last?: string
  readonly between_ago?: readonly [string, string]
  readonly grid?: string
  readonly after?: string
  readonly before?: string
  readonly calendar_days?: number
  readonly timezone?: string
}
export type Events = { readonly name: string; readonly where?: Filter; readonly window?: Window }

export const reducers = [
  ...(['count', 'sum', 'avg', 'min', 'max', 'first', 'last'] as const),
  ...(['distinct', 'unique', 'mode', 'distinct_days'] as const),
]
export type Reducer = (typeof reducers)[number]
export type Reducing = Partial<Comparison> & {
  readonly prop?: Path
  readonly min_frequency?: number
}
export type Measure = { readonly event: Events } & {
  readonly [R in Reducer]?: Reducing
}

export type Sequence = {
  readonly window?: Window
  readonly settle?: string
  readonly steps: readonly {
    readonly event: Events
    readonly as?: string
    readonly then?: string
    readonly within?: string
  }[]
}

export type Condition =
  | { readonly all: readonly Condition[] }
  | { readonly any: readonly Condition[] }
  | { readonly not: Condition }
  | Measure
  | { readonly identified: true }
  | { readonly audience: string; readonly in?: boolean }
  | (Comparison & { readonly trait: Path })
  | (Comparison & { readonly computed: string })
  | { readonly compare: readonly Measure[]; readonly op: string }
  | { readonly sequence: Sequence }

/** What may be asked of a person, or of one of their events. */
export type Asked = Condition | Filter

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
