// What a source has agreed to send: its events, and a JSON Schema for the properties of each.
import type { JsonObject } from './message.ts'

export const planModes = ['block', 'omit', 'report'] as const

export type TrackingPlan = {
  /** block: a call that breaks the plan goes nowhere; omit: what breaks it is cut out; report: it is counted. */
  readonly mode: (typeof planModes)[number]
  /** By the name of a track call: a JSON Schema of its properties. */
  readonly events: Readonly<Record<string, JsonObject>>
  /** Track calls of other names. */
  readonly unplanned: 'forbid' | 'allow'
}

/** Why a plan keeps a call from the log. */
export const planReasons = ['event_not_planned', 'plan_violated'] as const

export type PlanReason = (typeof planReasons)[number]

/** What becomes of one track call: `null` as it is, with other properties, or filtered. */
export type PlanVerdict =
  | null
  | { readonly properties: JsonObject }
  | { readonly filtered: PlanReason }

/** Judges the event's name and the call's properties. */
export type Plan = (event: string, properties: JsonObject) => PlanVerdict

/** How a call broke its plan; never what it held. */
export type Violation = {
  readonly event: string
  /** `properties.products[].price`; `event` when the event itself is not planned. */
  readonly path: string
  /** The JSON Schema keyword that was broken, or one of `ownKinds`. */
  readonly kind: string
}

/** Kinds that are no keyword of JSON Schema. */
export const ownKinds = {
  /** The plan forbids events it does not name. */
  unplanned: 'unplanned',
  /** The schema's references would take too many steps over these properties. */
  complex: 'too_complex',
  /** Only in counts: what had no room of its own. */
  other: 'other',
} as const

/** Takes note of what one call broke; adds up in memory and costs no round trip. */
export type Violations = {
  add(source: { readonly id: number }, broken: readonly Violation[], at: number): void
}

export const unnoted: Violations = { add: () => undefined }
