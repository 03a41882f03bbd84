// The part of the log contract that concurrency breaks first: no reader ever skips an entry.
import { expect, test } from 'vitest'
import type { At, Source } from '../../src/log/log.ts'
import { seed } from '../support/seed.ts'
import { seeded } from '../support/seeded.ts'
import type { Suite } from './log.contract.ts'
import {
  atText,
  type Ends,
  endsOf,
  entry,
  eventually,
  follow,
  pause,
  readAll,
  textOf,
} from './log.harness.ts'

const writers = 8

export const concurrencyContract = (suite: Suite) => {
  test('concurrent appends: no reader ever skips an entry', async () => {
    const { source } = await suite.open()
    const from = await endsOf(source)
    const follower = follow(source, { from })
    const poller = poll(source, from)
    const resolved = new Map<string, string>()
    await Promise.all(
      Array.from({ length: writers }, (_, writer) => write(suite, { seed, writer, resolved })),
    )
    const bounds = await source.bounds('calls')
    await eventually(`the follower reaches the end, SEED=${seed}`, () =>
      bounds.every(({ end }, partition) =>
        end === from.get(`calls/${partition}`)
          ? true
          : follower.batches.some((seen) => seen.partition === partition && seen.batch.next >= end),
      ),
    )
    const polled = await poller.stop(bounds.map(({ end }) => end))
    const all = new Map<string, string>()
    for (const [partition, { end }] of bounds.entries()) {
      const range = { topic: 'calls' as const, partition, until: end }
      const start = from.get(`calls/${partition}`) as bigint
      for (const { entries } of await readAll(source, { ...range, from: start }))
        for (const recorded of entries)
          all.set(atText({ partition, offset: recorded.offset }), textOf(recorded))
    }
    const followed = follower.batches.flatMap(({ partition, batch }) =>
      batch.entries.map(
        (seen) => [atText({ partition, offset: seen.offset }), textOf(seen)] as const,
      ),
    )
    expect(resolved.size, `SEED=${seed}`).toBeGreaterThan(0)
    expect(followed.length, `nothing twice, SEED=${seed}`).toBe(all.size)
    expect(new Map(followed), `the follower saw all, SEED=${seed}`).toEqual(all)
    expect(polled, `the poller saw all, SEED=${seed}`).toEqual(all)
    const missing = [...resolved].filter(([at, text]) => all.get(at) !== text)
    expect(missing, `every resolved append is in the log, SEED=${seed}`).toEqual([])
  }, 400_000)
}

type Writing = {
  readonly seed: number
  readonly writer: number
  readonly resolved: Map<string, string>
}

/** Appends over many partitions at once; failures are the disturbance's, and simply not recorded. */
const write = async (suite: Suite, { seed, writer, resolved }: Writing) => {
  const random = seeded(seed + writer)
  const { appender } = await suite.openDisturbed(random)
  for (let number = 0; number < suite.options.appendsPerWriter; number++) {
    const entries = Array.from({ length: 1 + Math.floor(random() * 40) }, (_, index) =>
      entry(`key-${Math.floor(random() * 500)}`, `${writer}.${number}.${index}`),
    )
    const places = await appender.append('calls', entries).catch(() => [] as readonly At[])
    places.forEach((at, index) => {
      resolved.set(atText(at), Buffer.from(entries[index]?.value ?? []).toString())
    })
    if (random() < 0.2) await pause(random() * 10)
  }
}

/** Reads up to each partition's bound, over and over: a bound must never run ahead of what is readable. */
const poll = (source: Source, from: Ends) => {
  const seen = new Map<string, string>()
  const next = new Map(from)
  const round = async (ends: readonly bigint[]) => {
    for (const [partition, until] of ends.entries()) {
      const start = next.get(`calls/${partition}`) as bigint
      for (const batch of await readAll(source, {
        topic: 'calls',
        partition,
        from: start,
        until,
      })) {
        for (const recorded of batch.entries)
          seen.set(atText({ partition, offset: recorded.offset }), textOf(recorded))
        next.set(`calls/${partition}`, batch.next)
      }
    }
  }
  let stopped = false
  const polling = (async () => {
    while (!stopped) {
      await round((await source.bounds('calls')).map(({ end }) => end))
      await pause(0)
    }
  })()
  return {
    stop: async (ends: readonly bigint[]) => {
      stopped = true
      await polling
      await round(ends)
      return seen
    },
  }
}
