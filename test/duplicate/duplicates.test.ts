import { createHash } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { type Duplicates, openDuplicates } from '../../src/duplicate/duplicates.ts'
import type { Judged } from '../../src/duplicate/entry.ts'
import { cloneDatabase } from '../support/database.ts'

const { pool } = await cloneDatabase()

const hour = 3_600_000
const day = 24 * hour
const start = Date.parse('2026-03-01T00:10:00Z')

const digestOf = (id: string | number): Uint8Array =>
  createHash('sha256').update(String(id)).digest().subarray(0, 16)

let partitions = 0

type Place = { readonly reader: string; readonly topic: string; readonly partition: number }

const aPlace = (): Place => {
  partitions += 1
  return { reader: 'deliver', topic: 'calls', partition: partitions }
}

const open = (place: Place, bytesMax = 1_000_000) =>
  openDuplicates({ sql: pool, bytesMax, ...place })

const records = (...list: readonly (readonly [id: string, receivedAt: number])[]): Judged[] =>
  list.map(([id, receivedAt], at) => ({ offset: BigInt(at), digest: digestOf(id), receivedAt }))

const moveTo = (place: Place, next: bigint) =>
  pool.query(
    `insert into position (reader, topic, partition, next, epoch) values ($1, $2, $3, $4, 1)
     on conflict (reader, topic, partition) do update set next = $4`,
    [place.reader, place.topic, place.partition, next],
  )

/** What a reader does with a batch that goes well. */
const fold = async (duplicates: Duplicates, place: Place, entries: readonly Judged[]) => {
  const verdict = await duplicates.judge(entries)
  await pool.transaction(async (tx) => {
    await verdict.save(tx)
  })
  await moveTo(place, (entries.at(-1) as Judged).offset + 1n)
  verdict.accept()
  return verdict.duplicate
}

const judgeInOne = async (all: readonly Judged[]) => {
  const place = aPlace()
  return fold(await open(place), place, all)
}

const judgeOneByOne = async (all: readonly Judged[], bytesMax?: number) => {
  const place = aPlace()
  const duplicates = await open(place, bytesMax)
  const verdicts: boolean[] = []
  for (const entry of all) verdicts.push(...(await fold(duplicates, place, [entry])))
  return verdicts
}

describe.each([
  ['within one batch', judgeInOne],
  ['across batches', judgeOneByOne],
  ['across batches, without room in memory', (all: readonly Judged[]) => judgeOneByOne(all, 500)],
])('a record is a duplicate %s', (_name, judge) => {
  test('of one with the same id received less than 24 h before, and not of one received 24 h before', async () => {
    const all = records(['a', start], ['b', start], ['a', start + day - 1], ['b', start + day])
    expect(await judge(all)).toEqual([false, false, true, false])
  })

  test('of one that was a duplicate itself', async () => {
    const all = records(['a', start], ['a', start + 20 * hour], ['a', start + 40 * hour])
    expect(await judge(all)).toEqual([false, true, true])
  })

  test('of one at an earlier offset that was received later by another collector', async () => {
    const all = records(['a', start + 2 * hour], ['b', start + 3 * hour], ['a', start + hour])
    expect(await judge(all)).toEqual([false, false, true])
  })

  test('and what comes after many hours of silence is judged alike', async () => {
    const all = records(
      ['a', start],
      ['b', start + 100 * hour],
      ['a', start + 101 * hour],
      ['b', start + 102 * hour],
    )
    expect(await judge(all)).toEqual([false, false, false, true])
  })
})

test('a batch judged again after its transaction rolled back gets the same verdict', async () => {
  const place = aPlace()
  const duplicates = await open(place)
  const all = records(['a', start], ['b', start], ['a', start + 1])
  const first = await duplicates.judge(all)
  await pool
    .transaction(async (tx) => {
      await first.save(tx)
      throw new Error('rolled back')
    })
    .catch(() => undefined)
  expect((await duplicates.judge(all)).duplicate).toEqual(first.duplicate)
  expect(first.duplicate).toEqual([false, false, true])
})

test('a batch judged again after it was saved but its position was not moved gets the same verdict', async () => {
  const place = aPlace()
  const all = records(['a', start], ['b', start + 2 * hour], ['c', start + 3 * hour])
  await (await (await open(place)).judge(all)).save(pool)
  expect(await fold(await open(place), place, all)).toEqual([false, false, false])
})

test('readers and partitions know nothing of each other', async () => {
  const [one, other] = [aPlace(), aPlace()]
  const all = records(['a', start])
  expect(await fold(await open(one), one, all)).toEqual([false])
  expect(await fold(await open(other), other, all)).toEqual([false])
  const reader = { ...one, reader: 'project' }
  expect(await fold(await open(reader), reader, all)).toEqual([false])
})

test('two owners of one partition, one of them a zombie, do not hide entries from each other', async () => {
  const place = aPlace()
  // Without room they seal at once.
  const owner = await open(place, 500)
  const zombie = await open(place, 500)
  const first = records(['a', start], ['b', start + 1])
  await fold(owner, place, first)
  // Both remember the hour as open, and both seal it.
  const later = [{ offset: 2n, digest: digestOf('c'), receivedAt: start + 5 * hour }]
  await zombie.judge(later)
  await fold(owner, place, later)
  await fold(await open(place), place, [
    { offset: 3n, digest: digestOf('d'), receivedAt: start + 5 * hour },
  ])
  await zombie.judge([{ offset: 3n, digest: digestOf('d'), receivedAt: start + 5 * hour }])
  const again = [{ offset: 4n, digest: digestOf('a'), receivedAt: start + 6 * hour }]
  expect((await owner.judge(again)).duplicate).toEqual([true])
  expect((await (await open(place)).judge(again)).duplicate).toEqual([true])
})

test.each([
  ['the position', undefined],
  ['what its reader says', async () => 1_000n],
])(
  'hours are deleted once no record from %s on can be compared with them',
  async (_name, storedNext) => {
    const place = storedNext ? { ...aPlace(), reader: 'other' } : aPlace()
    const duplicates = await openDuplicates({
      sql: pool,
      bytesMax: 3_000,
      ...place,
      ...(storedNext ? { storedNext } : {}),
    })
    const hours = async () => {
      const { rows } = await pool.query<{ hours: bigint }>(
        `select count(*) as hours from (
         select hour from duplicate_chunk where partition = $1
         union select hour from duplicate_segment where partition = $1) as stored`,
        [place.partition],
      )
      return Number(rows[0]?.hours)
    }
    for (let at = 0; at < 60; at += 1) {
      const receivedAt = start + at * hour
      const verdict = await duplicates.judge([
        { offset: BigInt(at), digest: digestOf(at), receivedAt },
      ])
      await verdict.save(pool)
      if (!storedNext) await moveTo(place, BigInt(at) + 1n)
      verdict.accept()
    }
    expect(await hours()).toBeLessThanOrEqual(34)
    const pages = await pool.query(
      `select 1 from duplicate_page where segment_id not in (select id from duplicate_segment)`,
    )
    expect(pages.rows).toEqual([])
  },
)

test('hours stay while the reader’s stored position still needs them', async () => {
  const place = aPlace()
  const duplicates = await open(place)
  const all = records(
    ['a', start],
    ['x', start + 50 * hour],
    ['y', start + 51 * hour],
    ['z', start + 52 * hour],
  )
  await fold(duplicates, place, all.slice(0, 1))
  for (const entry of all.slice(1)) {
    const verdict = await duplicates.judge([entry])
    await verdict.save(pool)
    verdict.accept()
  }
  // A crash now starts again at offset 1, and a record there is compared with offset 0.
  const again = [{ offset: 1n, digest: digestOf('a'), receivedAt: start + hour }]
  expect((await (await open(place)).judge(again)).duplicate).toEqual([true])
})

// ---------------------------------------------------------------------------------------------

type Step = {
  readonly size: number
  readonly outcome: 'commit' | 'rollback' | 'saved' | 'restart' | 'zombie'
}

/** Written from the definition alone: quadratic, over the whole sequence. */
const naive = (all: readonly Judged[]): boolean[] =>
  all.map((record, at) => {
    const high = Math.max(...all.slice(0, at + 1).map(({ receivedAt }) => receivedAt))
    const oldestHour = Math.floor(high / hour) - 26
    return all
      .slice(0, at)
      .some(
        (earlier) =>
          Buffer.from(earlier.digest).equals(record.digest) &&
          record.receivedAt - earlier.receivedAt < day &&
          Math.floor(earlier.receivedAt / hour) >= oldestHour,
      )
  })

/** The definition without its cut: the same for all records that are at most two hours late. */
const naiveUncut = (all: readonly Judged[]): boolean[] =>
  all.map((record, at) =>
    all
      .slice(0, at)
      .some(
        (earlier) =>
          Buffer.from(earlier.digest).equals(record.digest) &&
          record.receivedAt - earlier.receivedAt < day,
      ),
  )

const sequence = (latenessMax: number) =>
  fc
    .array(
      fc.record({
        id: fc.nat(8),
        gap: fc.oneof(
          { weight: 6, arbitrary: fc.nat(20 * 60_000) },
          { weight: 3, arbitrary: fc.nat(4 * hour) },
          { weight: 1, arbitrary: fc.constantFrom(day, day - 1, 23 * hour, 30 * hour) },
        ),
        late: fc.oneof(fc.constant(0), fc.nat(latenessMax)),
        hole: fc.nat(2),
      }),
      { minLength: 1, maxLength: 100, size: 'max' },
    )
    .map((list) => {
      let at = start
      let offset = 0n
      return list.map(({ id, gap, late, hole }): Judged => {
        at += gap
        offset += BigInt(1 + hole)
        return { offset, digest: digestOf(id), receivedAt: at - late }
      })
    })

const steps = fc.array(
  fc.record<Step>({
    size: fc.integer({ min: 1, max: 12 }),
    outcome: fc.constantFrom('commit', 'commit', 'rollback', 'saved', 'restart', 'zombie'),
  }),
  { minLength: 1, maxLength: 12 },
)

/** Reads the sequence as a reader would that is stopped, killed and doubled at the given steps. */
const readWith = async (all: readonly Judged[], plan: readonly Step[], bytesMax: number) => {
  const place = aPlace()
  let duplicates = await open(place, bytesMax)
  const verdicts = new Map<bigint, Set<boolean>>()
  let at = 0
  for (let turn = 0; at < all.length; turn += 1) {
    const { size, outcome } = plan[turn % plan.length] as Step
    // A plan without a commit would never end.
    const isCommitted = outcome === 'commit' || turn % 3 === 2
    const batch = all.slice(at, at + size)
    const verdict = await duplicates.judge(batch)
    batch.forEach(({ offset }, index) => {
      const seen = verdicts.get(offset) ?? new Set()
      verdicts.set(offset, seen.add(verdict.duplicate[index] as boolean))
    })
    if (isCommitted || outcome === 'saved' || outcome === 'zombie') await verdict.save(pool)
    if (isCommitted) {
      await moveTo(place, (batch.at(-1) as Judged).offset + 1n)
      verdict.accept()
      at += batch.length
    }
    if (outcome === 'zombie') {
      const zombie = duplicates
      duplicates = await open(place, bytesMax)
      const stale = await zombie.judge(batch)
      await stale.save(pool)
      stale.accept()
      await zombie.judge(all.slice(at, at + 3))
    } else if (outcome === 'saved' || outcome === 'restart')
      duplicates = await open(place, bytesMax)
  }
  return all.map(({ offset }) => [...(verdicts.get(offset) ?? [])])
}

test('every verdict is that of the naive definition, whatever happens to the reader', async () => {
  let duplicatesSeen = 0
  await fc.assert(
    fc.asyncProperty(
      sequence(6 * hour),
      steps,
      fc.constantFrom(500, 12_000, 1_000_000),
      async (all, plan, bytesMax) => {
        const expected = naive(all)
        duplicatesSeen += expected.filter(Boolean).length
        expect(await readWith(all, plan, bytesMax)).toEqual(expected.map((verdict) => [verdict]))
      },
    ),
    { numRuns: 50 },
  )
  expect(duplicatesSeen).toBeGreaterThan(100)
})

test('records at most two hours late are judged by the plain 24 h', () => {
  fc.assert(
    fc.property(sequence(2 * hour), (all) => {
      expect(naive(all)).toEqual(naiveUncut(all))
    }),
  )
})
