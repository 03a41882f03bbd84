// The part of the log contract about who holds a partition: sharing, losing, dying.
import { expect, test } from 'vitest'
import { partitionOf } from '../../src/domain/partition.ts'
import type { Lease } from '../../src/log/log.ts'
import type { Suite } from './log.contract.ts'
import { aGroup, endsOf, entry, eventually, follow, keysByPartition } from './log.harness.ts'

const partitionsOf = (leases: readonly Lease[]) =>
  leases.map(({ partition }) => partition).sort((a, b) => a - b)

export const leaseContract = (suite: Suite) => {
  test('two members share the partitions fairly, and no partition has two holders', async () => {
    const [one, two] = [await suite.open(), await suite.open()]
    const from = await endsOf(one.source)
    const count = (await one.source.bounds('calls')).length
    const all = Array.from({ length: count }, (_, partition) => partition)
    const group = aGroup()
    let doubled = 0
    const watch = (others: () => readonly Lease[]) => (lease: Lease) => {
      if (others().some(({ partition }) => partition === lease.partition)) doubled++
    }
    const first = follow(one.source, { group, from, gained: watch(() => second.held()) })
    const second = follow(two.source, { group, from, gained: watch(() => first.held()) })
    await eventually(
      'each holds half',
      () => [first, second].every((member) => member.held().length === count / 2),
      suite.options.moveMs,
    )
    expect(partitionsOf([...first.held(), ...second.held()])).toEqual(all)
    const keys = keysByPartition(count, (text) => partitionOf(text, count))
    await one.appender.append(
      'calls',
      keys.map((key) => entry(key, key)),
    )
    await eventually('both together see everything', () =>
      keys.every((key) => [...first.texts(), ...second.texts()].includes(key)),
    )
    expect(doubled).toBe(0)
    await second.stop()
    await eventually('who stays takes over', () => first.held().length === count, 20_000)
  })

  test('a lost lease aborts and its commits answer lost, even under a pending handle', async () => {
    const [one, two] = [await suite.open(), await suite.open()]
    const from = await endsOf(one.source)
    const count = (await one.source.bounds('calls')).length
    const group = aGroup()
    const keys = keysByPartition(count, (text) => partitionOf(text, count))
    let release: () => void = () => undefined
    const pending = new Promise<void>((resolve) => {
      release = resolve
    })
    const first = follow(one.source, { group, from, handle: () => pending })
    await one.appender.append(
      'calls',
      keys.map((key) => entry(key, key)),
    )
    await eventually('a handle is pending everywhere', () => first.batches.length === count)
    const second = follow(two.source, { group, from })
    await eventually(
      'the second member reads half',
      () => new Set(second.texts()).size === count / 2,
      suite.options.moveMs,
    )
    // By place, not by lease object: a client may hand out a partition that stayed anew.
    const moved = partitionsOf(second.held())
    const lost = first.leases.filter(({ partition }) => moved.includes(partition))
    expect(lost.every((lease) => lease.lost.aborted)).toBe(true)
    const answers = await Promise.all(lost.map((lease) => lease.commit(1_000_000n)))
    expect(new Set(answers)).toEqual(new Set(['lost']))
    release()
    const heldAfter = first.held()
    const commits = await Promise.all(
      heldAfter.map((lease) => lease.commit(from.get(`calls/${lease.partition}`) as bigint)),
    )
    expect(new Set(commits)).toEqual(new Set(['committed']))
    expect(partitionsOf([...first.held(), ...second.held()])).toHaveLength(count)
  })

  test('a commit that was answered lost left no trace', async () => {
    const [one, two] = [await suite.open(), await suite.open()]
    const from = await endsOf(one.source)
    const count = (await one.source.bounds('calls')).length
    const group = aGroup()
    const first = follow(one.source, { group, from })
    await eventually('the first holds all', () => first.held().length === count)
    await first.stop()
    const answers = await Promise.all(first.leases.map((lease) => lease.commit(77n)))
    expect(new Set(answers)).toEqual(new Set(['lost']))
    const second = follow(two.source, { group, from })
    await eventually('the second holds all', () => second.held().length === count)
    expect(second.leases.map(({ committed }) => committed)).toEqual(Array(count).fill(null))
  })

  test('a killed member’s partitions move, and its entries arrive elsewhere', async () => {
    const { openMortal, crash } = suite.harness()
    const [one, two] = [await suite.open(), await (openMortal ?? suite.open)()]
    const writer = await suite.open()
    const from = await endsOf(one.source)
    const count = (await one.source.bounds('calls')).length
    const group = aGroup()
    const first = follow(one.source, { group, from })
    const second = follow(two.source, { group, from })
    await eventually(
      'each holds half',
      () => [first, second].every((member) => member.held().length === count / 2),
      suite.options.moveMs,
    )
    await (openMortal ? crash : suite.crash)(two)
    const handled = second.batches.length
    const keys = keysByPartition(count, (text) => partitionOf(text, count))
    await writer.appender.append(
      'calls',
      keys.map((key) => entry(key, key)),
    )
    await eventually(
      'the first sees every partition',
      () => keys.every((key) => first.texts().includes(key)),
      suite.options.moveMs,
    )
    await eventually('the first holds everything', () => first.held().length === count)
    expect(second.batches).toHaveLength(handled)
  })

  test('four members share evenly, and the last one left takes all', async () => {
    const pairs = await Promise.all(Array.from({ length: 2 }, () => suite.open()))
    const source = pairs[0]?.source as (typeof pairs)[number]['source']
    const from = await endsOf(source)
    const count = (await source.bounds('calls')).length
    const group = aGroup()
    const members = Array.from({ length: 4 }, (_, index) =>
      follow((pairs[index % 2] ?? pairs[0])?.source ?? source, { group, from }),
    )
    const total = () => members.reduce((sum, member) => sum + member.held().length, 0)
    await eventually(
      'all is held, evenly',
      () => total() === count && members.every((member) => member.held().length === count / 4),
      suite.options.moveMs,
    )
    await Promise.all(members.slice(0, 3).map((member) => member.stop()))
    await eventually(
      'the last one holds all',
      () => members[3]?.held().length === count,
      suite.options.moveMs,
    )
  })
}
