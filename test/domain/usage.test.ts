import fc from 'fast-check'
import { expect, test } from 'vitest'
import { siphash, sipKeyOf } from '../../src/domain/siphash.ts'
import {
  byPage,
  dayName,
  dayOf,
  entriesOf,
  entryBytes,
  monthName,
  monthOf,
  type Sighting,
  sightings,
  unite,
  usageKeyOf,
} from '../../src/domain/usage.ts'
import { type CallsMetered, csvOf } from '../../src/domain/usage-report.ts'

test.each([
  [0, 'a3817f04ba25a8e66df67214c7550293'],
  [2, '8177228da4a45dc7fca38bdef60affe4'],
  [8, '3b62a9ba6258f5610f83e264f31497b4'],
])('SipHash of %i bytes is what its authors publish', (length, digest) => {
  const counting = (count: number) => Buffer.from(Array.from({ length: count }, (_, at) => at))
  const into = { buffer: Buffer.alloc(16), at: 0 }
  siphash(sipKeyOf(counting(16)), counting(length).toString('utf16le'), into)
  expect(into.buffer.toString('hex')).toBe(digest)
})

test.each([
  ['1970-01-01T00:00:00.000Z', '1970-01', '1970-01-01'],
  ['1999-12-31T23:59:59.999Z', '1999-12', '1999-12-31'],
  ['2024-02-29T12:00:00.000Z', '2024-02', '2024-02-29'],
  ['2026-12-01T00:00:00.000Z', '2026-12', '2026-12-01'],
])('%s is in month %s, on day %s', (instant, month, day) => {
  const at = Date.parse(instant)
  expect([monthName(monthOf(at)), dayName(dayOf(at))]).toEqual([month, day])
})

const key = usageKeyOf('a key')

const sighting: fc.Arbitrary<Sighting> = fc.oneof(
  fc.record({
    kind: fc.constant(sightings.user),
    text: fc.constantFrom('1:0:a', '1:0:b', '2:0:a'),
  }),
  fc.record({
    kind: fc.constantFrom(sightings.anonymous, sightings.tied),
    text: fc.constantFrom('1:1:a', '1:1:b', '1:1:c', '2:1:a'),
  }),
)

const counted = (seen: readonly Sighting[]) => {
  const of = (kind: number) =>
    new Set(seen.filter((each) => each.kind === kind).map(({ text }) => text))
  const tied = of(sightings.tied)
  return {
    userIds: of(sightings.user).size,
    anonymousIds: [...of(sightings.anonymous)].filter((text) => !tied.has(text)).length,
  }
}

test('entries unite to each id once, whatever came how often, in which order and how it was cut', () => {
  fc.assert(
    fc.property(fc.array(fc.array(sighting)), (parts) => {
      const entries = parts.map((seen) => entriesOf(key, seen))
      const { entries: all, ...tracked } = unite(entries)
      expect(tracked).toEqual(counted(parts.flat()))
      expect(unite([all])).toEqual({ entries: all, ...tracked })
      expect(unite(entries.toReversed())).toEqual({ entries: all, ...tracked })
      const half = parts.length >> 1
      const halves = [entries.slice(0, half), entries.slice(half)]
      expect(unite(halves.map((some) => unite(some).entries)).entries).toEqual(all)
    }),
  )
})

test('pages part the entries: each stands in the page of its first byte', () => {
  const seen = Array.from({ length: 3_000 }, (_, at) => ({
    kind: sightings.user,
    text: `1:0:u${at}`,
  }))
  const entries = entriesOf(key, seen)
  const pages = byPage(entries)
  expect(pages.size).toBeGreaterThan(250)
  let userIds = 0
  for (const [page, parts] of pages) {
    expect(parts.every((part) => part[0] === page && part.length === entryBytes)).toBe(true)
    userIds += unite(parts).userIds
  }
  expect(userIds).toBe(3_000)
})

test('another key gives other entries', () => {
  const seen = [{ kind: sightings.user, text: '1:0:a' }]
  expect(entriesOf(usageKeyOf('one'), seen)).not.toEqual(entriesOf(usageKeyOf('two'), seen))
})

test.each(['=1+1', '+1', '-1', '@x', '\tx'])('CSV shows a source named %j as text', (source) => {
  const metered: CallsMetered = { sourceId: 1, source, type: 'track', calls: 1 }
  const report = { workspaceId: 1, from: '2026-01-01', until: '2026-01-02', months: [] }
  const [, row] = csvOf({ ...report, days: [{ day: '2026-01-01', ...metered }] }).split('\r\n')
  expect(row).toBe(`2026-01-01,calls,1,'${source},track,1`)
})
