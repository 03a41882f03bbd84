// The promises of the log port, one test each, run on every adapter; the test names are the promises.
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { partitionOf } from '../../src/domain/partition.ts'
import type { Recorded } from '../../src/log/log.ts'
import { concurrencyContract } from './log.concurrency.contract.ts'
import {
  type ContractOptions,
  endsOf,
  entry,
  eventually,
  follow,
  keysByPartition,
  type LogHarness,
  type Opened,
  readAll,
  testWhere,
  textOf,
} from './log.harness.ts'
import { leaseContract } from './log.lease.contract.ts'
import { membershipContract } from './log.membership.contract.ts'

/** What the parts of the suite share: the harness, and pairs that are closed after each test. */
export type Suite = {
  readonly harness: () => LogHarness
  readonly open: () => Promise<Opened>
  readonly openDisturbed: (random: () => number) => Promise<Opened>
  readonly crash: (opened: Opened) => Promise<void>
  readonly options: Required<ContractOptions>
}

export const logContract = (
  name: string,
  makeHarness: () => Promise<LogHarness>,
  options: ContractOptions = {},
) =>
  describe(`log on ${name}`, () => {
    let harness: LogHarness
    const open: Opened[] = []
    const kept = async (opening: Promise<Opened>) => {
      const opened = await opening
      open.push(opened)
      return opened
    }
    beforeAll(async () => {
      harness = await makeHarness()
    })
    afterEach(async () => {
      for (const { appender, source } of open.splice(0)) {
        await source.close()
        await appender.close()
      }
    })
    afterAll(() => harness?.close())

    const suite: Suite = {
      harness: () => harness,
      open: () => kept(harness.open()),
      openDisturbed: (random) =>
        kept(harness.openDisturbed ? harness.openDisturbed(random) : harness.open()),
      crash: async (opened) => {
        open.splice(open.indexOf(opened), 1)
        await harness.crash(opened)
      },
      options: { moveMs: 45_000, appendsPerWriter: 40, cannot: [], ...options },
    }
    describe('appending', () => appendContract(suite))
    describe('reading without a group', () => readContract(suite))
    describe('following in a group', () => membershipContract(suite))
    describe('leases', () => leaseContract(suite))
    describe('concurrency', () => concurrencyContract(suite))
  })

const appendContract = (suite: Suite) => {
  test('keeps the order of entries with one key', async () => {
    const { appender, source } = await suite.open()
    const from = await endsOf(source)
    const sent: string[] = []
    const appends: Promise<unknown>[] = []
    for (let round = 0; round < 20; round++) {
      const texts = Array.from({ length: 10 }, (_, index) => `${round}.${index}`)
      sent.push(...texts)
      // Not awaited one by one: order is that of the calls.
      appends.push(
        appender.append(
          'calls',
          texts.map((text) => entry('one', text)),
        ),
      )
    }
    await Promise.all(appends)
    const follower = follow(source, { from })
    await eventually('everything arrives', () => follower.texts().length >= sent.length)
    expect(follower.texts()).toEqual(sent)
  })

  test('puts one key in one partition, the one that partitionOf names', async () => {
    const { appender, source } = await suite.open()
    const count = (await source.bounds('calls')).length
    const keys = Array.from({ length: 60 }, (_, number) => `visitor-${number}-é`)
    const places = await appender.append(
      'calls',
      keys.map((key) => entry(key, key)),
    )
    expect(places.map(({ partition }) => partition)).toEqual(
      keys.map((key) => partitionOf(key, count)),
    )
  })

  test('answers where each entry went, in the order of the entries', async () => {
    const { appender, source } = await suite.open()
    const sent = Array.from({ length: 50 }, (_, number) => entry(`key-${number}`, `text-${number}`))
    const places = await appender.append('outbound', sent)
    const found = await Promise.all(
      places.map(async ({ partition, offset }) => {
        const range = { topic: 'outbound' as const, partition, from: offset, until: offset + 1n }
        return (await readAll(source, range)).flatMap(({ entries }) => entries).map(textOf)
      }),
    )
    expect(found).toEqual(sent.map((_, number) => [`text-${number}`]))
  })

  test('bytes and keys come back as they went in: empty, 1 MB, not UTF-8', async () => {
    const { appender, source } = await suite.open()
    const from = await endsOf(source)
    const values = [
      Buffer.alloc(0),
      Buffer.from([0, 0xff, 0xfe, 0x0a, 0x0d, 0x5c, 0x09, 0x00, 0xc3, 0x28]),
      Buffer.alloc(1_000_000, 0x5c),
      Buffer.from(Array.from({ length: 256 }, (_, byte) => byte)),
    ]
    const key = 'tab\t newline\n backslash\\N quote" é 🜁'
    await appender.append(
      'calls',
      values.map((value) => ({ key, value })),
    )
    const follower = follow(source, { from })
    const seen = (): readonly Recorded[] => follower.batches.flatMap(({ batch }) => batch.entries)
    await eventually('all four arrive', () => seen().length >= values.length)
    expect(seen().map((recorded) => recorded.key)).toEqual(values.map(() => key))
    expect(seen().map(({ value }) => Buffer.compare(value, values.shift() as Buffer))).toEqual([
      0, 0, 0, 0,
    ])
  })

  test('a batch is of one partition, its offsets ascending in [from, next)', async () => {
    const { appender, source } = await suite.open()
    const from = await endsOf(source)
    const sent = Array.from({ length: 500 }, (_, number) => entry(`k-${number}`, `t-${number}`))
    await appender.append('calls', sent)
    const follower = follow(source, { from })
    await eventually('everything arrives', () => follower.texts().length >= sent.length)
    const count = (await source.bounds('calls')).length
    for (const { partition, batch } of follower.batches) {
      const offsets = batch.entries.map(({ offset }) => offset)
      expect(offsets).toEqual([...offsets].sort((a, b) => (a < b ? -1 : 1)))
      expect(offsets.every((offset) => offset >= batch.from && offset < batch.next)).toBe(true)
      expect(new Set(batch.entries.map(({ key }) => partitionOf(key, count)))).toEqual(
        new Set(batch.entries.length > 0 ? [partition] : []),
      )
    }
  })

  test('an append of nothing answers nothing', async () => {
    const { appender } = await suite.open()
    expect(await appender.append('calls', [])).toEqual([])
  })

  test('an append after close is refused as log_closed', async () => {
    const { appender } = await suite.open()
    await appender.close()
    await expect(appender.append('calls', [entry('a', 'a')])).rejects.toMatchObject({
      code: 'log_closed',
    })
  })

  test('close waits for the appends in hand', async () => {
    const { appender, source } = await suite.open()
    const append = appender.append('calls', [entry('parting', 'parting')])
    await appender.close()
    const [at] = await append
    const bounds = await source.bounds('calls')
    expect(bounds[at?.partition ?? -1]?.end).toBeGreaterThan(at?.offset ?? -1n)
  })

  testWhere(suite.options, 'cut')(
    'an append that cannot reach the log rejects within 5 s as log_unavailable',
    async (context) => {
      const { cut } = suite.harness()
      if (!cut) return context.skip('this log cannot be cut off')
      const opened = await suite.open()
      await opened.appender.append('calls', [entry('before', 'before')])
      await cut(opened)
      const started = performance.now()
      const appends = ['one', 'two', 'three'].map((text) =>
        opened.appender.append('calls', [entry(text, text)]),
      )
      for (const result of await Promise.allSettled(appends))
        expect(result).toMatchObject({ status: 'rejected', reason: { code: 'log_unavailable' } })
      // It gives up after 4.8 s; the rest is for a machine that is busy.
      expect(performance.now() - started).toBeLessThan(10_000)
    },
  )
}

const readContract = (suite: Suite) => {
  test('reads exactly [from, until) of one partition', async () => {
    const { appender, source } = await suite.open()
    const sent = Array.from({ length: 300 }, (_, number) => entry('bounded', `${number}`))
    const places = await appender.append('calls.import', sent)
    const partition = places[0]?.partition ?? 0
    const offset = (index: number) => places[index]?.offset as bigint
    const range = {
      topic: 'calls.import' as const,
      partition,
      from: offset(10),
      until: offset(250),
    }
    const batches = await readAll(source, range)
    expect(batches.flatMap(({ entries }) => entries).map(textOf)).toEqual(
      Array.from({ length: 240 }, (_, index) => `${index + 10}`),
    )
    expect(batches[0]?.from).toBe(range.from)
    expect(batches.at(-1)?.next).toBe(range.until)
    batches.slice(1).forEach((batch, index) => {
      expect(batch.from).toBe(batches[index]?.next)
    })
  })

  test('an empty range ends at once', async () => {
    const { source } = await suite.open()
    const end = (await source.bounds('calls'))[0]?.end as bigint
    expect(await readAll(source, { topic: 'calls', partition: 0, from: end, until: end })).toEqual(
      [],
    )
  })

  test('a range beyond the end ends once it is written', async () => {
    const { appender, source } = await suite.open()
    const count = (await source.bounds('calls')).length
    const key = keysByPartition(count, (text) => partitionOf(text, count))[3] as string
    const from = (await source.bounds('calls'))[3]?.end as bigint
    const reading = readAll(source, { topic: 'calls', partition: 3, from, until: from + 2n })
    await appender.append('calls', [entry(key, 'first')])
    await appender.append('calls', [entry(key, 'second')])
    const texts = (await reading).flatMap(({ entries }) => entries).map(textOf)
    expect(texts).toEqual(['first', 'second'])
  })

  test('reading may be left early', async () => {
    const { appender, source } = await suite.open()
    const places = await appender.append('calls', [entry('early', '1'), entry('early', '2')])
    const { partition, offset } = places[0] as { partition: number; offset: bigint }
    for await (const batch of source.read({
      topic: 'calls',
      partition,
      from: offset,
      until: offset + 1_000n,
    })) {
      expect(batch.entries.length).toBeGreaterThan(0)
      break
    }
  })

  test('bounds give the next offset to be written in every partition', async () => {
    const { appender, source } = await suite.open()
    const before = await source.bounds('outbound')
    const count = before.length
    const keys = keysByPartition(count, (text) => partitionOf(text, count))
    const places = await appender.append(
      'outbound',
      keys.map((key) => entry(key, key)),
    )
    const after = await source.bounds('outbound')
    expect(places.map(({ offset }) => offset)).toEqual(before.map(({ end }) => end))
    expect(after.map(({ end }) => end)).toEqual(places.map(({ offset }) => offset + 1n))
    expect(after.every(({ start, end }) => start <= end)).toBe(true)
  })

  test('offsetsAt gives the first offset appended at or after an instant, or the end', async () => {
    const { appender, source } = await suite.open()
    const clock = suite.harness().clock ?? (() => new Date())
    const count = (await source.bounds('calls')).length
    const keys = keysByPartition(count, (text) => partitionOf(text, count))
    await appender.append(
      'calls',
      keys.map((key) => entry(key, 'before')),
    )
    const middle = await source.bounds('calls')
    const earlier = clock().getTime()
    await eventually('the clock moves on', () => clock().getTime() > earlier + 1)
    const at = clock()
    const half = keys.slice(0, Math.ceil(count / 2))
    await appender.append(
      'calls',
      half.map((key) => entry(key, 'after')),
    )
    expect(await source.offsetsAt('calls', at)).toEqual(middle.map(({ end }) => end))
    const ends = (await source.bounds('calls')).map(({ end }) => end)
    expect(await source.offsetsAt('calls', new Date(at.getTime() + 3_600_000))).toEqual(ends)
    const starts = (await source.bounds('calls')).map(({ start }) => start)
    expect(await source.offsetsAt('calls', new Date(0))).toEqual(starts)
  })

  testWhere(suite.options, 'hole')(
    'holes in offsets are allowed, and every bound is reachable',
    async (context) => {
      const { hole } = suite.harness()
      if (!hole) return context.skip('this log leaves no holes')
      const { appender, source } = await suite.open()
      const from = await endsOf(source)
      const [first] = await appender.append('calls', [entry('holed', 'one')])
      const place = { topic: 'calls' as const, partition: first?.partition ?? 0 }
      const endNow = async () => (await source.bounds('calls'))[place.partition]?.end as bigint
      await hole(place)
      await appender.append('calls', [entry('holed', 'two')])
      await hole(place)
      await eventually('the hole is in the bounds', async () => {
        return (await endNow()) >= (first?.offset ?? 0n) + 4n
      })
      const end = await endNow()
      const batches = await readAll(source, { ...place, from: first?.offset ?? 0n, until: end })
      expect(batches.flatMap(({ entries }) => entries).map(textOf)).toEqual(['one', 'two'])
      expect(batches.at(-1)?.next).toBe(end)
      const follower = follow(source, { from })
      await eventually('a follower reaches the bound too', () =>
        follower.batches.some(
          ({ partition, batch }) => partition === place.partition && batch.next >= end,
        ),
      )
      expect(follower.texts()).toEqual(['one', 'two'])
    },
  )

  testWhere(suite.options, 'truncate')('reads from the first entry still kept', async (context) => {
    const { truncate } = suite.harness()
    if (!truncate) return context.skip('this log cannot be truncated')
    const { appender, source } = await suite.open()
    const places = await appender.append(
      'calls.import',
      ['gone', 'gone', 'kept'].map((text) => entry('truncated', text)),
    )
    const { partition, offset } = places[2] as { partition: number; offset: bigint }
    await truncate({ topic: 'calls.import', partition, before: offset })
    await eventually('the bounds show it', async () => {
      return (await source.bounds('calls.import'))[partition]?.start === offset
    })
    const range = { topic: 'calls.import' as const, partition, from: 0n, until: offset + 1n }
    const texts = (await readAll(source, range)).flatMap(({ entries }) => entries).map(textOf)
    expect(texts).toEqual(['kept'])
  })
}
