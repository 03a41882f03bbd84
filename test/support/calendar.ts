// Durations, local days and dates as conditions write them, each straight from its definition.
import type { Json } from './language.ts'
import { once } from './once.ts'

export const minute = 60_000
export const hour = 60 * minute
export const day = 24 * hour
const units: Record<string, number> = { s: 1_000, m: minute, h: hour, d: day, w: 7 * day }

export const durationOf = once((text: string): number => {
  const [, number, unit = ''] = /^([0-9]+)([smhdw])$/.exec(text) ?? []
  if (!(unit in units)) throw new Error(`nobody knows the duration ${text}`)
  return Number(number) * (units[unit] as number)
})

const quarter = 15 * minute

const daysIn = once((timeZone: string) => {
  const format = new Intl.DateTimeFormat('en-CA', { timeZone })
  return once((at: number) => Date.parse(`${format.format(at * quarter)}T00:00:00Z`) / day)
})

/** The local date as a number of days. No zone changes its clocks within a quarter of an hour; Intl is slow. */
export const localDay = (zone: string, at: number): number => daysIn(zone)(Math.floor(at / quarter))

/** After so many days the calendar is the same again, weekdays and all. */
const fourCenturies = 146_097

const startsIn = once((zone: string) =>
  once((localDate: number): number => {
    // Years of fewer than four digits are written otherwise; before there were zones each place had always its own time.
    if (localDate * day < Date.UTC(1001, 0))
      return startsIn(zone)(localDate + fourCenturies) - fourCenturies * day
    let start = localDate * day - 16 * hour
    while (localDay(zone, start) < localDate) start += quarter
    return start
  }),
)

const datesIn = once((zone: string) => once((text: string) => readDate(text, zone)))

/** ISO 8601 with a zone, or a date alone, which is when that day starts here; a bad date is missing. */
export const dateOf = (value: Json | undefined, zone: string): number | null =>
  typeof value === 'string' ? datesIn(zone)(value) : null

const readDate = (text: string, zone: string): number | null => {
  const form =
    /^(\d{4}-\d\d-\d\d)(?:T(\d\d):(\d\d)(?::(\d\d)(\.\d{1,9})?)?(?:Z|([+-])(\d\d)(?::?([0-5]\d))?))?$/
  const [, date, ...time] = form.exec(text) ?? []
  const midnight = Date.parse(`${date}T00:00:00Z`)
  if (Number.isNaN(midnight) || new Date(midnight).toISOString().slice(0, 10) !== date) return null
  const [h, m, s = '0', fraction = '0', sign, hours = '0', minutes = '0'] = time
  if (h === undefined) return startsIn(zone)(midnight / day)
  // A leap second is when the next minute begins.
  if (Number(h) > 23 || Number(m) > 59 || Number(s) > 60) return null
  const local = Number(h) * hour + Number(m) * minute + Number(s) * 1_000
  const ahead = (Number(hours) * hour + Number(minutes) * minute) * (sign === '-' ? -1 : 1)
  return midnight + local + Math.floor(Number(fraction) * 1_000) - ahead
}
