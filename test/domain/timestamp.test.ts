import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { Json } from '../../src/domain/message.ts'
import type { Flag } from '../../src/domain/rejection.ts'
import { isoOf, readInstant, resolveTimes } from '../../src/domain/timestamp.ts'
import { noon } from '../support/receipt.ts'

const at = (time: string) => Date.parse(`2026-03-01T${time}Z`)

type Claimed = {
  readonly timestamp?: Json
  readonly originalTimestamp?: Json
  readonly receivedBefore?: Json
  readonly sentAt?: Json
  readonly batchSentAt?: Json
  readonly retryCount?: number
  readonly ignoreSentAt?: boolean
}

const resolve = (claimed: Claimed) => {
  const flags: Flag[] = []
  const times = resolveTimes(
    {
      receivedAt: noon,
      timestamp: undefined,
      originalTimestamp: undefined,
      receivedBefore: undefined,
      sentAt: undefined,
      batchSentAt: undefined,
      retryCount: 0,
      ignoreSentAt: false,
      ...claimed,
    },
    (flag) => flags.push(flag),
  )
  return { ...times, flags }
}

describe('the time of a call received at 12:00:00.000', () => {
  const day = '2026-03-01T'
  test.each<[string, Claimed, number, Flag[]]>([
    [
      'is corrected by the skew of the client clock',
      { timestamp: `${day}11:59:55Z`, sentAt: `${day}12:00:10Z` },
      at('11:59:45.000'),
      ['skew_corrected'],
    ],
    [
      'is kept when the skew is below 5 s',
      { timestamp: `${day}11:59:59Z`, sentAt: `${day}12:00:02Z` },
      at('11:59:59.000'),
      [],
    ],
    [
      'is kept without sentAt, however old',
      { timestamp: '2012-12-02T00:30:08.276Z' },
      Date.parse('2012-12-02T00:30:08.276Z'),
      [],
    ],
    [
      'is clamped when it lies in the future',
      { timestamp: '2026-03-02T12:00:00Z' },
      noon,
      ['future_clamped'],
    ],
    [
      'is kept when a retry explains the skew',
      { timestamp: `${day}10:00:00Z`, sentAt: `${day}10:00:00Z`, retryCount: 3 },
      at('10:00:00.000'),
      ['skew_taken_as_delay'],
    ],
    [
      'is corrected when a retry cannot explain the skew, because it is over 12 h',
      { timestamp: '2026-02-28T10:00:00Z', sentAt: '2026-02-28T10:00:00Z', retryCount: 3 },
      noon,
      ['skew_corrected'],
    ],
    [
      'is corrected when a retried client clock runs ahead',
      { timestamp: `${day}12:59:00Z`, sentAt: `${day}13:00:00Z`, retryCount: 1 },
      at('11:59:00.000'),
      ['skew_corrected'],
    ],
    [
      'is kept when the call says to ignore sentAt',
      { timestamp: `${day}10:00:00Z`, sentAt: `${day}11:00:00Z`, ignoreSentAt: true },
      at('10:00:00.000'),
      ['skew_ignored'],
    ],
    ['is the receipt when the call has none', {}, noon, []],
    [
      'is the receipt when it cannot be read',
      { timestamp: 'soon' },
      noon,
      ['timestamp_unreadable'],
    ],
    [
      'is the receipt when it lies before 1970',
      { timestamp: '1969-12-31' },
      noon,
      ['timestamp_before_1970'],
    ],
    [
      'is uncorrected when sentAt cannot be read',
      { timestamp: `${day}10:00:00Z`, sentAt: 'x' },
      at('10:00:00.000'),
      ['sent_at_unreadable'],
    ],
    [
      'is corrected by the batch’s sentAt when the call’s cannot be read',
      { timestamp: `${day}11:59:55Z`, sentAt: 'x', batchSentAt: `${day}12:00:10Z` },
      at('11:59:45.000'),
      ['sent_at_unreadable', 'skew_corrected'],
    ],
    [
      'is not corrected by the batch’s sentAt when the call has its own',
      {
        timestamp: `${day}11:59:55Z`,
        sentAt: `${day}12:00:01Z`,
        batchSentAt: `${day}12:00:10Z`,
      },
      at('11:59:55.000'),
      [],
    ],
    [
      'is corrected where both are epoch seconds',
      { timestamp: noon / 1_000 - 10, sentAt: noon / 1_000 + 60 },
      noon - 70_000,
      ['skew_corrected'],
    ],
    [
      'is corrected where both are epoch milliseconds, as text',
      { timestamp: String(noon - 10_000), sentAt: String(noon + 60_000) },
      noon - 70_000,
      ['skew_corrected'],
    ],
    [
      'is clamped when the correction brings it before 1970',
      { timestamp: '1970-01-01T00:00:10Z', sentAt: `${day}12:01:00Z` },
      noon,
      ['skew_corrected', 'timestamp_before_1970'],
    ],
    [
      'is clamped when the correction brings it into the future',
      { timestamp: `${day}12:00:00Z`, sentAt: `${day}11:00:00Z` },
      noon,
      ['skew_corrected', 'future_clamped'],
    ],
    ['is kept at the very beginning', { timestamp: 0 }, 0, []],
    ['is the receipt one second before it', { timestamp: -1 }, noon, ['timestamp_before_1970']],
    [
      'is kept when the skew is just below 5 s',
      { timestamp: `${day}11:00:00Z`, sentAt: `${day}12:00:04.999Z` },
      at('11:00:00.000'),
      [],
    ],
    [
      'is corrected when the skew is 5 s',
      { timestamp: `${day}11:00:00Z`, sentAt: `${day}12:00:05Z` },
      at('10:59:55.000'),
      ['skew_corrected'],
    ],
    [
      'is kept when a retry is just 12 h late',
      { timestamp: `${day}00:00:00Z`, sentAt: `${day}00:00:00Z`, retryCount: 1 },
      at('00:00:00.000'),
      ['skew_taken_as_delay'],
    ],
    [
      'stays the receipt where the same receipt was all there was to give before',
      {
        timestamp: `${day}12:00:00Z`,
        originalTimestamp: `${day}12:00:00Z`,
        receivedBefore: `${day}12:00:00Z`,
        sentAt: `${day}10:00:00Z`,
      },
      noon,
      [],
    ],
    [
      'is what the application gave, where its SDK added when it was called',
      { timestamp: `${day}09:00:00Z`, originalTimestamp: `${day}10:00:00Z` },
      at('09:00:00.000'),
      [],
    ],
    [
      'comes from originalTimestamp where there is no timestamp that can be read',
      { timestamp: 'x', originalTimestamp: `${day}10:00:00Z` },
      at('10:00:00.000'),
      [],
    ],
    [
      'comes from originalTimestamp once a collector has corrected the timestamp',
      {
        timestamp: `${day}09:00:00Z`,
        originalTimestamp: `${day}10:00:00Z`,
        receivedBefore: `${day}11:00:00Z`,
      },
      at('10:00:00.000'),
      [],
    ],
    [
      'stays five minutes ahead at most',
      { timestamp: `${day}12:05:00.000Z` },
      at('12:05:00.000'),
      [],
    ],
    [
      'is clamped one millisecond later',
      { timestamp: `${day}12:05:00.001Z` },
      noon,
      ['future_clamped'],
    ],
  ])('%s', (_name, ...[claimed, timestamp, flags]) => {
    const times = resolve(claimed)
    expect([times.timestamp, times.flags]).toEqual([timestamp, flags])
  })

  test('a historical call sent now stays what it was to within the skew', () => {
    const times = resolve({ timestamp: '2012-12-02T00:30:08.276Z', sentAt: `${day}11:59:50Z` })
    expect(times.timestamp).toBe(Date.parse('2012-12-02T00:30:18.276Z'))
  })
})

describe('an instant', () => {
  test.each<[Json, string | null]>([
    ['2026-03-01T12:00:00.123Z', '2026-03-01T12:00:00.123Z'],
    ['2026-03-01T12:00:00.123456+02:00', '2026-03-01T10:00:00.123Z'],
    ['2026-03-01T12:00:00-0530', '2026-03-01T17:30:00.000Z'],
    ['2026-03-01T12:00:00+01', '2026-03-01T11:00:00.000Z'],
    ['2026-03-01T12:00:00', '2026-03-01T12:00:00.000Z'],
    ['2026-03-01 12:00', '2026-03-01T12:00:00.000Z'],
    ['2026-03-01', '2026-03-01T00:00:00.000Z'],
    [1_772_366_400, '2026-03-01T12:00:00.000Z'],
    [1_772_366_400.5, '2026-03-01T12:00:00.500Z'],
    ['1772366400', '2026-03-01T12:00:00.000Z'],
    [1_772_366_400_123, '2026-03-01T12:00:00.123Z'],
    ['1772366400123', '2026-03-01T12:00:00.123Z'],
    [99_999_999_999, '5138-11-16T09:46:39.000Z'],
    [100_000_000_000, '1973-03-03T09:46:40.000Z'],
    ['2024-02-29', '2024-02-29T00:00:00.000Z'],
    ['2026-02-29', null],
    ['2026-13-01', null],
    ['2026-03-01T24:00:00Z', null],
    ['9999-12-31T23:59:59-12:00', null],
    [1e300, null],
    ['yesterday', null],
    ['', null],
    [true, null],
    [null, null],
    [{}, null],
  ])('%j reads as %s', (written, instant) => {
    expect(readInstant(written)).toBe(instant === null ? null : Date.parse(instant))
  })
})

test('an instant is written and read as Date does both, whatever was written before', () => {
  const anyInstant = fc.oneof(
    fc.date({ noInvalidDate: true }).map((date) => date.getTime()),
    fc.integer({ min: noon - 200_000_000, max: noon + 200_000_000 }),
    fc.constantFrom(0, -1, 86_399_999, 86_400_000, -86_400_000, 8.64e15, -8.64e15),
  )
  fc.assert(
    fc.property(fc.array(anyInstant, { maxLength: 8 }), (instants) => {
      for (const instant of instants) {
        const text = new Date(instant).toISOString()
        expect(isoOf(instant)).toBe(text)
        if (text.length === 24) expect(readInstant(text)).toBe(instant)
      }
    }),
  )
})

test('of a day that its month does not have nothing is read', () => {
  for (let day = 1; day <= 31; day += 1)
    for (let month = 1; month <= 12; month += 1)
      for (const year of [1900, 2000, 2023, 2024]) {
        const text = `${year}-${String(month).padStart(2, '0')}-${String(day).padStart(2, '0')}`
        const instant = Date.parse(`${text}T12:00:00.000Z`)
        const isReal = new Date(instant).getUTCDate() === day
        expect(readInstant(`${text}T12:00:00.000Z`)).toBe(isReal ? instant : null)
      }
})
