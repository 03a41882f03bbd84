// The part of the log contract about following topics: where reading starts, order, back-pressure, death.
import { expect, test } from 'vitest'
import { partitionOf } from '../../src/domain/partition.ts'
import type { Lease } from '../../src/log/log.ts'
import type { Suite } from './log.contract.ts'
import {
  aGroup,
  endsOf,
  entry,
  eventually,
  follow,
  keysByPartition,
  pause,
  placeOf,
  testWhere,
} from './log.harness.ts'

export const membershipContract = (suite: Suite) => {
  startContract(suite)
  flowContract(suite)
  endContract(suite)
}

const startContract = (suite: Suite) => {
  test('a new group has committed nothing', async () => {
    const { source } = await suite.open()
    const from = await endsOf(source)
    const count = (await source.bounds('calls')).length
    const follower = follow(source, { from })
    await eventually('every partition is gained', () => follower.leases.length === count)
    expect(follower.leases.map(({ committed }) => committed)).toEqual(Array(count).fill(null))
  })

  test('a member that cannot gain what it has lost by then lives on with the rest', async () => {
    const { source } = await suite.open()
    const from = await endsOf(source)
    const group = aGroup()
    const shared = Promise.withResolvers<void>()
    let failed = 0
    const gained = async ({ lost }: Lease) => {
      const gone = new Promise((resolve) => lost.addEventListener('abort', resolve))
      await Promise.race([gone, shared.promise])
      if (!lost.aborted) return
      failed += 1
      throw new Error('what it needs is away')
    }
    const first = follow(source, { group, from, gained })
    let died: unknown = null
    first.done.catch((error) => {
      died = error
    })
    await eventually('it gains everything', () => first.held().length > 1)
    const second = follow((await suite.open()).source, { group, from })
    await eventually('it has lost some of it', () => failed > 0)
    shared.resolve()
    await eventually('both have some', () => first.held().length > 0 && second.held().length > 0)
    await pause(0)
    expect(died).toBeNull()
    await first.stop()
    await first.done
  })

  test('a new member resumes where the group committed', async () => {
    const { appender, source } = await suite.open()
    const from = await endsOf(source)
    const group = aGroup()
    await appender.append('calls', [entry('resume', '1'), entry('resume', '2')])
    const answers: string[] = []
    const first = follow(source, {
      group,
      from,
      handle: async ({ batch, lease }) => {
        answers.push(await lease.commit(batch.next))
      },
    })
    await eventually('both are handled', () => first.texts().length >= 2)
    await first.stop()
    expect(new Set(answers)).toEqual(new Set(['committed']))
    await appender.append('calls', [entry('resume', '3')])
    const second = follow(source, {
      group,
      from: (lease) => lease.committed ?? (from.get(placeOf(lease)) as bigint),
    })
    await eventually('the third arrives', () => second.texts().includes('3'))
    expect(second.texts()).toEqual(['3'])
  })

  test('reading starts at Reader.from, below the committed offset or above it', async () => {
    const { appender, source } = await suite.open()
    const group = aGroup()
    const places = await appender.append(
      'calls',
      ['1', '2', '3', '4'].map((text) => entry('anywhere', text)),
    )
    const { partition } = places[0] as { partition: number }
    const from = await endsOf(source)
    const at = (index: number) => places[index]?.offset as bigint
    const startAt = (offset: bigint) => (lease: { topic: 'calls' | string; partition: number }) =>
      lease.partition === partition ? offset : (from.get(`calls/${lease.partition}`) as bigint)
    const first = follow(source, {
      group,
      from: startAt(at(1)),
      handle: async ({ lease, partition: here }) => {
        if (here === partition) await lease.commit(at(2))
      },
    })
    await eventually('it reads from the second', () => first.texts().length >= 3)
    await first.stop()
    expect(first.texts()).toEqual(['2', '3', '4'])
    for (const [index, texts] of [
      [0, ['1', '2', '3', '4']],
      [3, ['4']],
    ] as const) {
      const next = follow(source, { group, from: startAt(at(index)) })
      await eventually('the rest arrives', () => next.texts().includes('4'))
      await next.stop()
      expect(next.texts()).toEqual(texts)
      expect(next.leases.find((lease) => lease.partition === partition)?.committed).toBe(at(2))
    }
  })

  testWhere(suite.options, 'truncate')(
    'a reader that starts before the log does dies with log_gap',
    async (context) => {
      const { truncate } = suite.harness()
      if (!truncate) return context.skip('this log cannot be truncated')
      const { appender, source } = await suite.open()
      const places = await appender.append('calls', [entry('gap', '1'), entry('gap', '2')])
      const { partition } = places[0] as { partition: number }
      const from = new Map(await endsOf(source))
      from.set(`calls/${partition}`, places[0]?.offset as bigint)
      await truncate({ topic: 'calls', partition, before: places[1]?.offset as bigint })
      const follower = follow(source, { from })
      await expect(follower.done).rejects.toMatchObject({ code: 'log_gap' })
      expect(follower.texts()).not.toContain('2')
    },
  )

  test('two groups each see everything, of every topic they name', async () => {
    const { appender, source } = await suite.open()
    const from = await endsOf(source)
    const both = follow(source, { from, topics: ['calls', 'calls.import'] })
    const one = follow(source, { from, topics: ['calls'] })
    await appender.append('calls', [entry('a', 'live')])
    await appender.append('calls.import', [entry('a', 'import')])
    await appender.append('outbound', [entry('a', 'neither')])
    await appender.append('calls', [entry('a', 'sentinel')])
    await eventually('both have the sentinel', () =>
      [both, one].every((follower) => follower.texts().includes('sentinel')),
    )
    await eventually('the import arrives', () => both.texts().includes('import'))
    expect([...both.texts()].sort()).toEqual(['import', 'live', 'sentinel'])
    expect(one.texts()).toEqual(['live', 'sentinel'])
  })
}

const flowContract = (suite: Suite) => {
  test('handle is called once at a time per partition, each batch beginning where the last ended', async () => {
    const { appender, source } = await suite.open()
    const from = await endsOf(source)
    const busy = new Set<number>()
    let overlaps = 0
    const follower = follow(source, {
      from,
      bytesMax: 65_536,
      handle: async ({ partition }) => {
        if (busy.has(partition)) overlaps++
        busy.add(partition)
        await pause(1)
        busy.delete(partition)
      },
    })
    for (let round = 0; round < 10; round++)
      await appender.append(
        'calls',
        Array.from({ length: 60 }, (_, index) => entry(`k-${index}`, 'x'.repeat(500))),
      )
    await eventually('everything is handled', () => follower.texts().length >= 600)
    expect(overlaps).toBe(0)
    const next = new Map(from)
    for (const { topic, partition, batch } of follower.batches) {
      expect(batch.from).toBe(next.get(placeOf({ topic, partition })))
      next.set(placeOf({ topic, partition }), batch.next)
    }
  })

  test('a pending handle holds back its partition only', async () => {
    const { appender, source } = await suite.open()
    const from = await endsOf(source)
    const count = (await source.bounds('calls')).length
    const keys = keysByPartition(count, (text) => partitionOf(text, count))
    let release: () => void = () => undefined
    const pending = new Promise<void>((resolve) => {
      release = resolve
    })
    const follower = follow(source, {
      from,
      handle: ({ partition }) => (partition === 0 ? pending : undefined),
    })
    const rounds = [1, 2, 3, 4]
    for (const round of rounds) {
      await appender.append(
        'calls',
        keys.map((key, partition) => entry(key, `${partition}.${round}`)),
      )
      await eventually('every other partition goes on', () =>
        keys.every((_, partition) => {
          return partition === 0 || follower.texts().includes(`${partition}.${round}`)
        }),
      )
    }
    expect(follower.batches.filter(({ partition }) => partition === 0)).toHaveLength(1)
    release()
    await eventually('the held partition goes on where it was', () =>
      rounds.every((round) => follower.texts().includes(`0.${round}`)),
    )
    const held = follower.texts().filter((text) => text.startsWith('0.'))
    expect(held).toEqual(rounds.map((round) => `0.${round}`))
  })

  test('slow handles slow reading: the bytes in hand stay within bytesMax', async () => {
    const { appender, source } = await suite.open()
    const from = await endsOf(source)
    const bytesMax = 262_144
    let inHand = 0
    let most = 0
    let slow = true
    const follower = follow(source, {
      from,
      bytesMax,
      handle: async ({ batch }) => {
        const bytes = batch.entries.reduce((sum, { value }) => sum + value.byteLength, 0)
        inHand += bytes
        most = Math.max(most, inHand)
        while (slow) await pause(5)
        inHand -= bytes
      },
    })
    const value = 'x'.repeat(1_000)
    const appended = 1_800
    for (let round = 0; round < 30; round++)
      await appender.append(
        'calls',
        Array.from({ length: 60 }, (_, index) => entry(`k-${index}`, value)),
      )
    const partitions = (await source.bounds('calls')).length
    const busy = () => new Set(follower.batches.map(({ partition }) => partition)).size
    const expected = new Set(
      Array.from({ length: 60 }, (_, index) => partitionOf(`k-${index}`, partitions)),
    ).size
    await eventually('a handle is pending in every partition', () => busy() === expected)
    slow = false
    await eventually('all of it is handled', () => follower.texts().length >= appended)
    expect(most).toBeLessThanOrEqual(bytesMax)
    expect(follower.texts()).toHaveLength(appended)
  })

  test('an entry larger than bytesMax is still handled', async () => {
    const { appender, source } = await suite.open()
    const from = await endsOf(source)
    const follower = follow(source, { from, bytesMax: 10_000 })
    await appender.append('calls', [
      entry('large', 'small'),
      entry('large', 'x'.repeat(50_000)),
      entry('large', 'last'),
    ])
    await eventually('the last arrives', () => follower.texts().includes('last'))
    expect(follower.texts().map((text) => text.length)).toEqual([5, 50_000, 4])
  })
}

const endContract = (suite: Suite) => {
  test('a rejected handle kills the membership, and the next member gets the same entries', async () => {
    const { appender, source } = await suite.open()
    const from = await endsOf(source)
    const group = aGroup()
    await appender.append('calls', [entry('poison', 'a')])
    const first = follow(source, {
      group,
      from,
      handle: async ({ batch }) => {
        if (batch.entries.length > 0) throw new Error('cannot handle this')
      },
    })
    await expect(first.done).rejects.toThrow('cannot handle this')
    await appender.append('calls', [entry('poison', 'b')])
    expect(first.held()).toEqual([])
    const second = follow(source, { group, from })
    await eventually('both arrive', () => second.texts().includes('b'), suite.options.moveMs)
    expect(second.texts()).toEqual(['a', 'b'])
    expect(first.texts()).toEqual(['a'])
  })

  test('a rejected gained kills the membership', async () => {
    const { source } = await suite.open()
    const from = await endsOf(source)
    const follower = follow(source, {
      from,
      gained: () => Promise.reject(new Error('no position')),
    })
    await expect(follower.done).rejects.toThrow('no position')
  })

  test('stop waits for the batch in hand, then calls no more', async () => {
    const { appender, source } = await suite.open()
    const from = await endsOf(source)
    let finished = 0
    let release: () => void = () => undefined
    const pending = new Promise<void>((resolve) => {
      release = resolve
    })
    const follower = follow(source, {
      from,
      handle: async () => {
        await pending
        finished++
      },
    })
    await appender.append('calls', [entry('stop', '1')])
    await eventually('the batch is in hand', () => follower.batches.length === 1)
    await appender.append('calls', [entry('stop', '2')])
    let stopped = false
    const stopping = follower.stop().then(() => {
      stopped = true
    })
    await pause(200)
    expect({ stopped, finished }).toEqual({ stopped: false, finished: 0 })
    release()
    await stopping
    await follower.done
    expect(finished).toBe(1)
    expect(follower.texts()).toEqual(['1'])
    expect(follower.held()).toEqual([])
    expect(await follower.batches[0]?.lease.commit(1n)).toBe('lost')
  })

  test('a handle in hand may still commit while stop waits for it', async () => {
    const { appender, source } = await suite.open()
    const from = await endsOf(source)
    const answers: string[] = []
    let release: () => void = () => undefined
    const pending = new Promise<void>((resolve) => {
      release = resolve
    })
    const follower = follow(source, {
      from,
      handle: async ({ batch, lease }) => {
        await pending
        answers.push(await lease.commit(batch.next))
      },
    })
    await appender.append('calls', [entry('parting', '1')])
    await eventually('the batch is in hand', () => follower.batches.length === 1)
    const stopping = follower.stop()
    release()
    await stopping
    expect(answers).toEqual(['committed'])
  })

  test('stop twice waits for the same end', async () => {
    const { source } = await suite.open()
    const follower = follow(source, { from: await endsOf(source) })
    await Promise.all([follower.stop(), follower.stop(), follower.done])
    await follower.stop()
    expect(follower.held()).toEqual([])
  })
}
