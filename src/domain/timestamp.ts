// When a call happened: reads what clients write, corrects their clocks, and keeps the result sane.
import type { Json } from './message.ts'
import type { Flag } from './rejection.ts'

export type ClaimedTimes = {
  readonly receivedAt: number
  readonly timestamp: Json | undefined
  readonly originalTimestamp: Json | undefined
  /** The `receivedAt` of a collector the call has been through, which corrected its `timestamp` already. */
  readonly receivedBefore: Json | undefined
  readonly sentAt: Json | undefined
  /** Stands in where the call's own is missing or cannot be read. */
  readonly batchSentAt: Json | undefined
  /** The client's X-Retry-Count; 0 when it sent none. */
  readonly retryCount: number
  readonly ignoreSentAt: boolean
}

export type Times = {
  readonly timestamp: number
  /** `null` when the call brought no time of its own that can be read. */
  readonly originalTimestamp: number | null
  readonly sentAt: number | null
}

/** Below this a difference of clocks is noise: some clients stamp `sentAt` in whole seconds. */
const skewMinMs = 5_000
/** How long published clients go on retrying with the `sentAt` of their first try. */
const retryMaxMs = 12 * 3_600_000
export const futureMaxMs = 5 * 60_000

export const resolveTimes = (claimed: ClaimedTimes, flag: (flag: Flag) => void): Times => {
  const sentAt = readSentAt(claimed.sentAt, flag) ?? readSentAt(claimed.batchSentAt, flag)
  const originalTimestamp = claimedInstant(claimed)
  if (originalTimestamp === null) {
    if (isGiven(claimed.originalTimestamp) || isGiven(claimed.timestamp))
      flag('timestamp_unreadable')
    return { timestamp: claimed.receivedAt, originalTimestamp, sentAt }
  }
  // A call without a time has its receipt for one, which no client's clock has a part in.
  const isReceipt = claimed.receivedBefore !== undefined && originalTimestamp === claimed.receivedAt
  const corrected = originalTimestamp + (isReceipt ? 0 : correction(claimed, sentAt, flag))
  return { timestamp: guarded(corrected, claimed.receivedAt, flag), originalTimestamp, sentAt }
}

const readSentAt = (written: Json | undefined, flag: (flag: Flag) => void) => {
  const sentAt = readInstant(written)
  if (sentAt === null && isGiven(written)) flag('sent_at_unreadable')
  return sentAt
}

/**
 * An SDK may stamp `originalTimestamp` on a call whose application gave it a `timestamp` of its own: then
 * the application's counts. A collector leaves in `originalTimestamp` what it corrected.
 */
const claimedInstant = ({ timestamp, originalTimestamp, receivedBefore }: ClaimedTimes) =>
  receivedBefore !== undefined
    ? (readInstant(originalTimestamp) ?? readInstant(timestamp))
    : (readInstant(timestamp) ?? readInstant(originalTimestamp))

const correction = (claimed: ClaimedTimes, sentAt: number | null, flag: (flag: Flag) => void) => {
  if (sentAt === null) return 0
  const skew = claimed.receivedAt - sentAt
  if (Math.abs(skew) < skewMinMs) return 0
  if (claimed.retryCount >= 1 && skew > 0 && skew <= retryMaxMs) {
    flag('skew_taken_as_delay')
    return 0
  }
  if (claimed.ignoreSentAt) {
    flag('skew_ignored')
    return 0
  }
  flag('skew_corrected')
  return skew
}

const guarded = (timestamp: number, receivedAt: number, flag: (flag: Flag) => void) => {
  if (timestamp > receivedAt + futureMaxMs) {
    flag('future_clamped')
    return receivedAt
  }
  if (timestamp < 0) {
    flag('timestamp_before_1970')
    return receivedAt
  }
  return timestamp
}

const isGiven = (value: Json | undefined) => value !== undefined && value !== null && value !== ''

/** Numbers from here on are milliseconds, below it seconds. */
const millisecondsFrom = 1e11
/** The years 0000 to 9999: what ISO 8601 writes with four digits. */
const earliest = Date.parse('0000-01-01T00:00:00.000Z')
const latest = Date.parse('9999-12-31T23:59:59.999Z')

/** Epoch milliseconds of ISO 8601 (without a zone: UTC), epoch seconds or epoch milliseconds. */
export const readInstant = (value: Json | undefined): number | null => {
  if (typeof value === 'number') return readNumber(value)
  if (typeof value !== 'string') return null
  if (value.length === isoLength) {
    const instant = readExact(value)
    // Nearly all clients write this form.
    if (instant !== null) return remember(instant, value)
  }
  if (/^-?\d{1,16}(?:\.\d{1,9})?$/.test(value)) return readNumber(Number(value))
  return readIso(value)
}

/** As JavaScript writes instants. */
export const isoLength = 24
const remembered = 64
const instants = new Float64Array(remembered).fill(Number.NaN)
const texts: string[] = new Array(remembered).fill('')

/** ISO 8601 in UTC with milliseconds. The calls of a batch share most of their instants. */
export const isoOf = (instant: number): string => {
  const slot = Math.abs(instant) % remembered
  if (instants[slot] === instant) return texts[slot] as string
  const text = isoWithin(instant)
  remember(instant, text)
  return text
}

let dayWritten: number | null = null
let dayText = ''
const ofHour = Array.from({ length: 60 }, (_, number) => String(number).padStart(2, '0'))
const ofSecond = Array.from({ length: 1_000 }, (_, number) => String(number).padStart(3, '0'))

/** Neighbours are of one day, whose text costs most of what an instant's does. */
const isoWithin = (instant: number): string => {
  const day = Math.floor(instant / dayMs)
  if (day !== dayWritten) {
    dayText = new Date(instant).toISOString().slice(0, -'00:00:00.000Z'.length)
    dayWritten = day
  }
  const ms = Math.floor(instant - day * dayMs)
  const seconds = Math.floor(ms / 1_000)
  const minutes = Math.floor(seconds / 60)
  return `${dayText}${ofHour[Math.floor(minutes / 60)]}:${ofHour[minutes % 60]}:${ofHour[seconds % 60]}.${ofSecond[ms % 1_000]}Z`
}

const remember = (instant: number, text: string): number => {
  const slot = Math.abs(instant) % remembered
  instants[slot] = instant
  texts[slot] = text
  return instant
}

const form = '0000-00-00T00:00:00.000Z'
const zero = 0x30
const dayMs = 86_400_000
/** Up to a day of March, from that of a year that begins with it. */
const monthDays = [306, 337, 0, 31, 61, 92, 122, 153, 184, 214, 245, 275]

/** Of what isoOf writes; `null`: it is not that. A fifth of what Date takes to read it and write it again. */
const readExact = (text: string): number | null => {
  for (let at = 0; at < isoLength; at += 1) {
    const code = text.charCodeAt(at)
    const wanted = form.charCodeAt(at)
    if (wanted === zero ? code < zero || code > zero + 9 : code !== wanted) return null
  }
  const year = digits(text, 0) * 100 + digits(text, 2)
  const month = digits(text, 5)
  const day = digits(text, 8)
  const [hour, minute, second] = [digits(text, 11), digits(text, 14), digits(text, 17)]
  if (month < 1 || month > 12 || day < 1 || day > daysIn(year, month)) return null
  if (hour > 23 || minute > 59 || second > 59) return null
  const ms = (text.charCodeAt(20) - zero) * 100 + digits(text, 21)
  return daysSince1970(year, month, day) * dayMs + ((hour * 60 + minute) * 60 + second) * 1_000 + ms
}

const digits = (text: string, at: number): number =>
  (text.charCodeAt(at) - zero) * 10 + text.charCodeAt(at + 1) - zero

const isLeap = (year: number): boolean => year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0)

const daysIn = (year: number, month: number): number =>
  month === 2
    ? isLeap(year)
      ? 29
      : 28
    : month === 4 || month === 6 || month === 9 || month === 11
      ? 30
      : 31

/** Years counted from March, so that a leap day is their last. */
const daysSince1970 = (year: number, month: number, day: number): number => {
  const years = month < 3 ? year - 1 : year
  const leaps = Math.floor(years / 4) - Math.floor(years / 100) + Math.floor(years / 400)
  return years * 365 + leaps + (monthDays[month - 1] as number) + day - 719_469
}

const readNumber = (value: number) =>
  inRange(Math.round(Math.abs(value) >= millisecondsFrom ? value : value * 1_000))

const inRange = (instant: number) => (instant >= earliest && instant <= latest ? instant : null)

const iso =
  /^(\d{4})-(\d\d)-(\d\d)(?:[Tt ](\d\d):(\d\d)(?::(\d\d)(?:[.,](\d{1,9}))?)?(?: ?([Zz])|([+-])(\d\d):?(\d\d)?)?)?$/

const readIso = (text: string): number | null => {
  const parts = iso.exec(text)
  if (!parts) return null
  const [year, month, day, hour, minute, second] = parts
    .slice(1, 7)
    .map((part) => Number(part ?? 0))
  const instant = new Date(0)
  instant.setUTCFullYear(year as number, (month as number) - 1, day as number)
  // A day that its month does not have rolls over: refuse it rather than guess.
  if (instant.getUTCDate() !== day || instant.getUTCMonth() !== (month as number) - 1) return null
  if ((hour as number) > 23 || (minute as number) > 59 || (second as number) > 60) return null
  const milliseconds = Number((parts[7] ?? '').padEnd(3, '0').slice(0, 3))
  instant.setUTCHours(hour as number, minute as number, second as number, milliseconds)
  const offsetMinutes = Number(parts[10] ?? 0) * 60 + Number(parts[11] ?? 0)
  return inRange(instant.getTime() - (parts[9] === '-' ? -offsetMinutes : offsetMinutes) * 60_000)
}
