// The naive evaluator's time: durations, windows, local days and dates, each straight from its definition.
import type { Json } from './values.ts'

export type Window = {
  readonly last?: string
  readonly between_ago?: readonly [string, string]
  readonly grid?: string
  readonly after?: string
  readonly before?: string
  readonly calendar_days?: number
  readonly timezone?: string
}

const second = 1_000
const minute = 60 * second
const hour = 60 * minute
const day = 24 * hour

export const durationOf = (text: string): number => {
  const units: Record<string, number> = { s: second, m: minute, h: hour, d: day, w: 7 * day }
  const found = /^([0-9]+)([smhdw])$/.exec(text)
  if (!found) throw new Error(`the oracle does not know the duration ${text}`)
  return Number(found[1]) * (units[found[2] as string] as number)
}

/** Whether an event of `te` is in the window at `at`, where it is not after it. */
export const windowTest = (
  window: Window | undefined,
  zone: string,
): ((te: number, at: number) => boolean) => {
  if (window === undefined) return () => true
  const here = window.timezone ?? zone
  if (window.calendar_days !== undefined) {
    const days = window.calendar_days
    return (te, at) => localDay(here, te) > localDay(here, at) - days
  }
  if (window.last === undefined && window.between_ago === undefined) {
    const after = window.after === undefined ? 0 : (dateOf(window.after, here) as number)
    const before = window.before === undefined ? Infinity : (dateOf(window.before, here) as number)
    return (te) => te >= after && te < before
  }
  // In `last` W iff floor(te/g) > floor(T/g) − W/g; of ages the lower is in, the upper is not.
  const [from, until] = window.between_ago?.map(durationOf) ?? [
    -Infinity,
    durationOf(window.last ?? ''),
  ]
  const g = window.grid ? durationOf(window.grid) : gridOf(until as number)
  if ((until as number) % g !== 0) throw new Error('the window is not a multiple of its grid')
  return (te, at) => {
    const age = Math.floor(at / g) - Math.floor(te / g)
    return age >= (from as number) / g && age < (until as number) / g
  }
}

const gridOf = (w: number) => {
  if (w <= hour) return second
  if (w <= 48 * hour) return minute
  return w <= 90 * day ? hour : day
}

const formats = new Map<string, Intl.DateTimeFormat>()
const days = new Map<string, number>()

/** The local date, as a number of days: no zone changes its clocks within a quarter of an hour. */
export const localDay = (zone: string, at: number): number => {
  if (zone === 'UTC') return Math.floor(at / day)
  const quarter = Math.floor(at / (15 * minute)) * 15 * minute
  const known = days.get(`${zone} ${quarter}`)
  if (known !== undefined) return known
  const format = formats.get(zone) ?? new Intl.DateTimeFormat('en-CA', { timeZone: zone })
  formats.set(zone, format)
  const found = Date.parse(`${format.format(quarter)}T00:00:00Z`) / day
  days.set(`${zone} ${quarter}`, found)
  return found
}

/** ISO 8601 with a zone, or a date alone, which is when that day starts here; a bad date is missing. */
export const dateOf = (value: Json | undefined, zone: string): number | null => {
  const form = /^(\d{4}-\d\d-\d\d)(T\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d))?$/
  const [, date, time] = (typeof value === 'string' && form.exec(value)) || []
  const midnight = Date.parse(`${date}T00:00:00Z`)
  if (Number.isNaN(midnight) || new Date(midnight).toISOString().slice(0, 10) !== date) return null
  if (time !== undefined) {
    const instant = Date.parse(value as string)
    return Number.isNaN(instant) ? null : instant
  }
  let start = midnight - 15 * hour
  while (localDay(zone, start) < midnight / day) start += 15 * minute
  return start
}
