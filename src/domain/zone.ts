// Local calendar days of IANA time zones: where they begin, and which one an instant lies in.

const dayMs = 86_400_000
/** Zones change their offset at whole quarters of an hour, since 1970. */
const quarterMs = 900_000
/** No zone is further from UTC: Manila was so far before it left out a day. */
const offsetMaxMs = 16 * 3_600_000
/** Before this each place had the time of its own sun, always the same. Years of one or two digits read as others. */
const sunTimeMs = Date.UTC(1800, 0)
/** Of offsets and of day starts, for all zones together; half a year of quarters fits. */
const cachedMax = 20_000

/** By time zone and number. Forgets all when full: days in use come back at once. */
const openCache = () => {
  const held = new Map<string, Map<number, number>>()
  let size = 0
  return (timezone: string, number: number, make: () => number): number => {
    const known = held.get(timezone)?.get(number)
    if (known !== undefined) return known
    if (size >= cachedMax) {
      held.clear()
      size = 0
    }
    const made = make()
    const own = held.get(timezone) ?? new Map<number, number>()
    held.set(timezone, own.set(number, made))
    size += 1
    return made
  }
}

const formats = new Map<string, Intl.DateTimeFormat>()
const offsets = openCache()
const starts = openCache()

export const isTimezone = (name: string): boolean => {
  try {
    formatOf(name)
    return true
  } catch {
    return false
  }
}

/** Days since 1970-01-01 of the local date. */
export const localDay = (timezone: string, at: number): number =>
  Math.floor((at + offsetAt(timezone, at)) / dayMs)

/** The first instant of a local day, which is 23 or 25 hours before the next one where clocks change. */
export const dayStart = (timezone: string, day: number): number =>
  starts(timezone, day, () => {
    let [before, from] = [day * dayMs - offsetMaxMs, day * dayMs + offsetMaxMs]
    while (from - before > quarterMs) {
      const middle = Math.floor((before + from) / 2 / quarterMs) * quarterMs
      if (localDay(timezone, middle) >= day) from = middle
      else before = middle
    }
    return from
  })

const offsetAt = (timezone: string, at: number): number => {
  if (timezone === 'UTC') return 0
  const quarter = Math.floor(Math.max(at, sunTimeMs) / quarterMs)
  return offsets(timezone, quarter, () => {
    const start = quarter * quarterMs
    const part = Object.fromEntries(
      formatOf(timezone)
        .formatToParts(start)
        .map(({ type, value }) => [type, Number(value)]),
    ) as Record<'year' | 'month' | 'day' | 'hour' | 'minute' | 'second', number>
    const { year, month, day, hour, minute, second } = part
    return Date.UTC(year, month - 1, day, hour, minute, second) - start
  })
}

const formatOf = (timezone: string): Intl.DateTimeFormat => {
  const held = formats.get(timezone)
  if (held !== undefined) return held
  const two = '2-digit' as const
  const format = new Intl.DateTimeFormat('en-u-ca-gregory-nu-latn', {
    ...{ timeZone: timezone, hourCycle: 'h23', year: 'numeric' },
    ...{ month: two, day: two, hour: two, minute: two, second: two },
  })
  formats.set(timezone, format)
  return format
}
