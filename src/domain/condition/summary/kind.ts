// What a leaf keeps of a user's events: a commutative monoid, so that late events, back-fill and merges
// all come down to `combine`, in any order.
import type { ByteReader, ByteWriter } from '../../bytes.ts'
import type { Json } from '../../message.ts'

/** One event, as the leaves it feeds see it. */
export type Observation = {
  /** Effective time, epoch ms. */
  readonly te: number
  /** receivedAt, epoch ms: with the message id it orders events of one instant. */
  readonly r: number
  readonly id: string
  readonly properties: Json | undefined
}

/** How one leaf's summaries are made, kept and asked. `S` is immutable. */
export type Kind<S> = {
  readonly empty: S
  /** One event at a step of the leaf (0 but for sequences); the same object when it changes nothing. */
  fold(summary: S, seen: Observation, step: number): S
  combine(left: S, right: S): S
  write(to: ByteWriter, summary: S): void
  read(from: ByteReader): S
  /** At an instant not before any event folded; `undefined` for a missing value. */
  valueAt(summary: S, at: number): Json | undefined
  /** The first instant after `at` at which time alone may change the value, `Infinity` for never. */
  nextChange(summary: S, at: number): number
  /** Of one event, what it adds to each of several values; absent where an event is one whole. */
  readonly parts?: (seen: Observation) => readonly Part<S>[]
  /** Just what counts while the traits are these; absent where traits are not asked. */
  readonly narrow?: (summary: S, traits: Json) => S
  /** Whether something was, or may have been, left out to keep it bounded; never where it is missing. */
  readonly capped?: (summary: S) => boolean
}

/** What one event adds to one value, by the value's name. */
export type Part<S> = { readonly name: string; readonly summary: S }

/** What a leaf keeps, to those who only hand it on. */
export type Summary = unknown
