// Dates in traits, properties and literals, and how they lie to an instant.
import type { Json } from '../message.ts'
import { readInstant } from '../timestamp.ts'
import { dayStart } from '../zone.ts'

export const dateOperators = ['before_date', 'after_date'] as const
export const spanOperators = ['within_last', 'within_next', 'before_last', 'after_next'] as const
export type DateOperator = (typeof dateOperators)[number]
export type SpanOperator = (typeof spanOperators)[number]

const dayMs = 86_400_000
const form = /^\d{4}-\d\d-\d\d(?:T\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?(?:Z|[+-]\d\d(?::?[0-5]\d)?))?$/
const dateOnlyLength = '2026-01-01'.length

/** Epoch ms of ISO 8601 with a zone, or of a date alone: when that day starts there. A bad date is `null`. */
export const readDate = (value: Json | undefined, timezone: string): number | null => {
  if (typeof value !== 'string' || !form.test(value)) return null
  const instant = readInstant(value)
  if (instant === null || value.length > dateOnlyLength) return instant
  return timezone === 'UTC' ? instant : dayStart(timezone, instant / dayMs)
}

/** `before` leaves its instant out, `after` takes it in, as windows between dates do. */
export const dateHolds = (op: DateOperator, found: number, than: number): boolean =>
  op === 'before_date' ? found < than : found >= than

/**
 * Of every date exactly one of the four holds: ages from 0 to below the span are within the last, times
 * still to go from above 0 to the span within the next.
 */
export const spanHolds = (op: SpanOperator, age: number, ms: number): boolean => {
  switch (op) {
    case 'before_last':
      return age >= ms
    case 'within_last':
      return age >= 0 && age < ms
    case 'within_next':
      return age < 0 && age >= -ms
    case 'after_next':
      return age < -ms
  }
}

const turningAges: Readonly<Record<SpanOperator, readonly number[]>> = {
  before_last: [1],
  within_last: [0, 1],
  within_next: [-1, 0],
  after_next: [-1],
}

/** The first instant after `at` at which `spanHolds` turns over, `Infinity` for never. */
export const spanTurns = (
  op: SpanOperator,
  { found, ms }: { readonly found: number; readonly ms: number },
  at: number,
): number => {
  const turn = turningAges[op].map((spans) => found + spans * ms).find((instant) => instant > at)
  return turn ?? Number.POSITIVE_INFINITY
}
