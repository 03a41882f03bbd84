// The traps of kafkajs's consumer, one test each: what the adapter does so that the log's promises hold.
import { randomBytes } from 'node:crypto'
import { AssignerProtocol, Kafka, logLevel } from 'kafkajs'
import { pino } from 'pino'
import { afterAll, afterEach, beforeAll, describe, expect, inject, test } from 'vitest'
import { partitionOf } from '../../src/domain/partition.ts'
import { ensureTopics } from '../../src/log/kafka.ts'
import type { Lease } from '../../src/log/log.ts'
import {
  directAdmin,
  longSession,
  openPair,
  type Pair,
  partitions,
  shortSession,
  testLogger,
  topicsOf,
  truncate,
} from '../support/kafka-harness.ts'
import {
  aGroup,
  endsOf,
  entry,
  eventually,
  follow,
  keysByPartition,
  pause,
  readAll,
  textOf,
} from './log.harness.ts'

const brokers = inject('kafkaBrokers')?.split(',') ?? []
const prefix = `t${randomBytes(4).toString('hex')}.`
const keys = keysByPartition(partitions, (text) => partitionOf(text, partitions))

const held = () => {
  let release: () => void = () => undefined
  const pending = new Promise<void>((resolve) => {
    release = resolve
  })
  return { pending, release: () => release() }
}

describe.skipIf(brokers.length === 0)('following Kafka, trap by trap', () => {
  const admin = directAdmin(brokers)
  const pairs: Pair[] = []
  const open = async (timing = longSession, logger = testLogger) => {
    const pair = await openPair({ brokers, prefix, timing, logger })
    pairs.push(pair)
    return pair
  }
  beforeAll(async () => {
    await admin.connect()
    await ensureTopics({ brokers, prefix, logger: testLogger, partitions })
  })
  afterEach(async () => {
    await Promise.all(pairs.splice(0).map((pair) => pair.close()))
  })
  afterAll(async () => {
    await admin.deleteTopics({ topics: topicsOf(prefix) })
    await admin.disconnect()
  })

  test('there is no event for a revocation: a rebalance loses every lease before anybody gains one', async () => {
    const [one, two] = [await open(), await open()]
    const from = await endsOf(one.source)
    const group = aGroup()
    const stillHeld: number[] = []
    const first = follow(one.source, { group, from })
    await eventually('the first holds all', () => first.held().length === partitions)
    const earlier = [...first.leases]
    const second = follow(two.source, {
      group,
      from,
      gained: () => {
        stillHeld.push(earlier.filter(({ lost }) => !lost.aborted).length)
      },
    })
    await eventually('the second gains', () => second.held().length === partitions / 2)
    expect(new Set(stillHeld)).toEqual(new Set([0]))
  })

  test('a silence longer than the session loses the leases, and an answer brings them back', async () => {
    const { source, appender, proxy } = await open(shortSession)
    const from = await endsOf(source)
    const follower = follow(source, { from })
    await eventually('it holds all', () => follower.held().length === partitions)
    proxy.freeze()
    await eventually('all is lost', () => follower.held().length === 0)
    expect(await follower.leases[0]?.commit(1n)).toBe('lost')
    proxy.heal()
    await eventually('it holds all again', () => follower.held().length === partitions)
    await appender.append('calls', [entry('later', 'later')])
    await eventually('and reads on', () => follower.texts().includes('later'))
  })

  test('nobody waits for the listener of a join: nothing is read before gained has answered', async () => {
    const { source, appender } = await open()
    const group = aGroup()
    await appender.append(
      'calls',
      keys.map((key) => entry(key, 'before')),
    )
    const from = await endsOf(source)
    const { pending, release } = held()
    const follower = follow(source, { group, from, gained: () => pending })
    await eventually('gained is asked everywhere', () => follower.leases.length === partitions)
    await appender.append(
      'calls',
      keys.map((key) => entry(key, 'after')),
    )
    // Three fetches long: what would come, comes.
    await pause(800)
    expect(follower.batches).toEqual([])
    release()
    await eventually('all that is after arrives', () => follower.texts().length >= partitions)
    expect(new Set(follower.texts())).toEqual(new Set(['after']))
    for (const { topic, partition, batch } of follower.batches)
      expect(batch.from).toBe(from.get(`${topic}/${partition}`))
  })

  test('what could not be gained before it was lost is said, and why', async () => {
    const lines: Record<string, unknown>[] = []
    const logger = pino({ level: 'warn' }, { write: (line) => lines.push(JSON.parse(line)) })
    const [one, two] = [await open(longSession, logger), await open()]
    const from = await endsOf(one.source)
    const group = aGroup()
    const { pending, release } = held()
    let isFirst = true
    const first = follow(one.source, {
      group,
      from,
      gained: async () => {
        if (!isFirst) return
        await pending
        throw new Error('what it needs is away')
      },
    })
    await eventually('gained is pending everywhere', () => first.leases.length === partitions)
    const earlier = [...first.leases]
    isFirst = false
    const second = follow(two.source, { group, from })
    await eventually('all is lost', () => earlier.every(({ lost }) => lost.aborted))
    release()
    const said = () => lines.filter(({ msg }) => msg === 'log.not_gained')
    await eventually('it is said of each', () => said().length === partitions)
    expect(new Set(said().map(({ partition }) => partition)).size).toBe(partitions)
    expect(said()[0]).toMatchObject({ topic: 'calls', err: { message: 'what it needs is away' } })
    await eventually('both have some', () => first.held().length > 0 && second.held().length > 0)
  })

  test('a partition paused for its slow handle is read on after a rebalance', async () => {
    const [one, two] = [await open(), await open()]
    const from = await endsOf(one.source)
    const group = aGroup()
    const { pending, release } = held()
    let slow = true
    const first = follow(one.source, {
      group,
      from,
      bytesMax: 24_000,
      handle: () => (slow ? pending : undefined),
    })
    const value = 'x'.repeat(500)
    for (let round = 0; round < 20; round++)
      await one.appender.append(
        'calls',
        keys.map((key) => entry(key, value)),
      )
    await eventually('a handle is pending everywhere', () => first.batches.length === partitions)
    const second = follow(two.source, { group, from })
    await eventually('the second has its half', () => second.held().length === partitions / 2)
    await second.stop()
    await eventually('the first has all again', () => first.held().length === partitions)
    slow = false
    release()
    const ends = await endsOf(one.source)
    await eventually('the first reads to the end of all', () =>
      keys.every((_, partition) =>
        first.batches.some(
          (seen) =>
            seen.partition === partition && seen.batch.next === ends.get(`calls/${partition}`),
        ),
      ),
    )
  })

  test('aborted transactions that end in another order than they began are all left out', async () => {
    const { source, appender } = await open()
    const key = keys[0] as string
    const from = await endsOf(source)
    const [first] = await appender.append('calls', [entry(key, 'one')])
    const place = { topic: 'calls' as const, partition: first?.partition ?? 0 }
    const topic = `${prefix}calls`
    const producerOf = (name: string) =>
      new Kafka({ brokers: [...brokers], logLevel: logLevel.NOTHING }).producer({
        idempotent: true,
        maxInFlightRequests: 1,
        transactionalId: `${prefix}${name}`,
        createPartitioner: () => () => place.partition,
      })
    const begin = async (name: string) => {
      const producer = producerOf(name)
      await producer.connect()
      const transaction = await producer.transaction()
      await transaction.send({
        topic,
        messages: [{ key, value: name, partition: place.partition }],
      })
      return async () => {
        await transaction.abort()
        await producer.disconnect()
        // Its coordinator lets nobody begin under the same name before its end is in the log.
        const next = producerOf(name)
        await next.connect()
        await next.transaction()
        await next.disconnect()
      }
    }
    const abortOuter = await begin('outer')
    const abortInner = await begin('inner')
    await abortInner()
    await abortOuter()
    await appender.append('calls', [entry(key, 'two')])
    const until = (await source.bounds('calls'))[place.partition]?.end as bigint
    const batches = await readAll(source, { ...place, from: first?.offset ?? 0n, until })
    expect(batches.flatMap(({ entries }) => entries).map(textOf)).toEqual(['one', 'two'])
    const follower = follow(source, { from })
    await eventually('a follower reads to the end', () =>
      follower.batches.some(
        ({ partition, batch }) => partition === place.partition && batch.next >= until,
      ),
    )
    expect(follower.texts()).toEqual(['one', 'two'])
  })

  test('seeking a partition that is gone does nothing: a late gained cannot move a later lease', async () => {
    const [one, two] = [await open(), await open()]
    await one.appender.append(
      'calls',
      keys.map((key) => entry(key, 'late')),
    )
    const ends = await endsOf(one.source)
    const startOf = ({ partition }: Lease) => (ends.get(`calls/${partition}`) as bigint) - 1n
    const group = aGroup()
    const { pending, release } = held()
    const seen: Lease[] = []
    const first = follow(one.source, {
      group,
      // The first assignment's leases would start at the end and miss the entry.
      from: (lease) =>
        seen.indexOf(lease) < partitions
          ? (ends.get(`calls/${lease.partition}`) as bigint)
          : startOf(lease),
      gained: (lease) => (seen.push(lease) <= partitions ? pending : undefined),
    })
    await eventually('gained is pending everywhere', () => seen.length === partitions)
    const second = follow(two.source, { group, from: startOf })
    await eventually('the second reads its half', () => second.texts().length === partitions / 2)
    release()
    await eventually('the first reads its half', () => first.texts().length === partitions / 2)
    expect(first.leases.slice(0, partitions).every(({ lost }) => lost.aborted)).toBe(true)
  })

  test('a handle pending for longer than the session costs no lease', async () => {
    // Not so short that a machine that hangs for seconds lets it expire.
    const session = { ...shortSession, sessionMs: 15_000 }
    const { source, appender } = await open(session)
    const from = await endsOf(source)
    const { pending, release } = held()
    const follower = follow(source, { from, handle: () => pending })
    await appender.append('calls', [entry('long', 'long')])
    await eventually('the handle is pending', () => follower.batches.length === 1)
    await pause(session.sessionMs + 1_500)
    release()
    expect(await follower.batches[0]?.lease.commit(follower.batches[0].batch.next)).toBe(
      'committed',
    )
    expect(follower.leases).toHaveLength(partitions)
  })

  test('nothing is committed but by commit', async () => {
    const { source, appender } = await open()
    const from = await endsOf(source)
    const group = aGroup()
    const first = follow(source, { group, from })
    await appender.append('calls', [entry('mine', 'mine')])
    await eventually('it is handled', () => first.texts().includes('mine'))
    await first.stop()
    const second = follow(source, { group, from })
    await eventually('all is gained', () => second.leases.length === partitions)
    expect(second.leases.map(({ committed }) => committed)).toEqual(Array(partitions).fill(null))
  })

  test('a commit that cannot reach the group is not answered committed', async () => {
    const { source, appender, proxy } = await open()
    const from = await endsOf(source)
    const follower = follow(source, { from })
    await appender.append('calls', [entry('unheard', 'unheard')])
    await eventually('it is handled', () => follower.texts().includes('unheard'))
    proxy.cut()
    const seen = follower.batches[0]
    expect(await seen?.lease.commit(seen.batch.next)).toBe('lost')
  })

  test('an offset that the log no longer has is a loud log_gap, not a jump', async () => {
    const { source, appender } = await open()
    const from = await endsOf(source)
    const { pending, release } = held()
    const follower = follow(source, { from, bytesMax: 8_000, handle: () => pending })
    const places = []
    for (let round = 0; round < 40; round++)
      places.push(...(await appender.append('calls', [entry('gone', 'x'.repeat(2_000))])))
    await eventually('the first handle is pending', () => follower.batches.length === 1)
    const { partition, offset } = places.at(-1) as (typeof places)[number]
    await truncate(admin, { topic: `${prefix}calls`, partition, before: offset })
    release()
    await expect(follower.done).rejects.toMatchObject({ code: 'log_gap' })
    expect(follower.batches.some(({ batch }) => batch.next > offset)).toBe(false)
  })

  test('a position beyond the end of the log is a loud log_gap too', async () => {
    const { source } = await open()
    const ends = await endsOf(source)
    const from = new Map([...ends].map(([place, end]) => [place, end + 1_000n]))
    await expect(follow(source, { from }).done).rejects.toMatchObject({ code: 'log_gap' })
  })

  test('a crash that kafkajs does not restart after rejects done', async () => {
    const { source } = await open()
    const group = aGroup()
    const other = new Kafka({ brokers, logLevel: logLevel.NOTHING }).consumer({
      groupId: prefix + group,
      partitionAssigners: [anotherAssigner],
    })
    let joined = false
    other.on('consumer.group_join', () => {
      joined = true
    })
    await other.connect()
    await other.subscribe({ topics: [`${prefix}calls`] })
    await other.run({ eachMessage: async () => undefined })
    await eventually('the other has joined', () => joined)
    const follower = follow(source, { group, from: new Map() })
    await expect(follower.done).rejects.toMatchObject({ code: 'log_unavailable' })
    await other.disconnect()
  })

  test('topics just made can be asked at once', async () => {
    const fresh = `${prefix}fresh.`
    await ensureTopics({ brokers, prefix: fresh, logger: testLogger, partitions })
    const { source, close } = await openPair({ brokers, prefix: fresh })
    const bounds = await Promise.all([source.bounds('calls'), source.bounds('outbound')])
    expect(bounds).toEqual(Array(2).fill(Array(partitions).fill({ start: 0n, end: 0n })))
    await close()
    await admin.deleteTopics({ topics: topicsOf(fresh) })
  })

  test('another partition count than the configured one is refused', async () => {
    const making = ensureTopics({ brokers, prefix, logger: testLogger, partitions: partitions + 1 })
    await expect(making).rejects.toMatchObject({ code: 'config_invalid' })
  })
})

/** A group whose members name different assigners cannot form: the broker refuses the second. */
const anotherAssigner = () => ({
  name: 'another',
  version: 1,
  assign: async ({ members }: { readonly members: readonly { readonly memberId: string }[] }) =>
    members.map(({ memberId }) => ({
      memberId,
      memberAssignment: AssignerProtocol.MemberAssignment.encode({
        version: 1,
        assignment: {},
        userData: Buffer.alloc(0),
      }),
    })),
  protocol: ({ topics }: { readonly topics: string[] }) => ({
    name: 'another',
    metadata: AssignerProtocol.MemberMetadata.encode({
      version: 1,
      topics,
      userData: Buffer.alloc(0),
    }),
  }),
})
