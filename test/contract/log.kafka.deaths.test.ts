// The Kafka log when processes die for real: a member with kill -9, and the broker itself.
import { fork } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { afterAll, describe, expect, inject, test } from 'vitest'
import { ensureTopics, kafkaAppender, kafkaSource } from '../../src/log/kafka.ts'
import { startKafka } from '../support/kafka.ts'
import {
  directAdmin,
  openPair,
  partitions,
  shortSession,
  testLogger,
  topicsOf,
} from '../support/kafka-harness.ts'
import {
  aGroup,
  atText,
  endsOf,
  entry,
  eventually,
  follow,
  readAll,
  textOf,
} from './log.harness.ts'

const brokers = inject('kafkaBrokers')?.split(',') ?? []

describe.skipIf(brokers.length === 0)('deaths on Kafka', () => {
  const prefix = `d${randomBytes(4).toString('hex')}.`
  afterAll(async () => {
    const admin = directAdmin(brokers)
    await admin.connect()
    await admin.deleteTopics({ topics: topicsOf(prefix) })
    await admin.disconnect()
  })

  test('a process killed with SIGKILL: its partitions move, and every entry is handled', async () => {
    await ensureTopics({ brokers, prefix, logger: testLogger, partitions })
    const pair = await openPair({ brokers, prefix })
    const from = await endsOf(pair.source)
    const group = aGroup()
    const handled = new Set<string>()
    const held = new Set<number>()
    const member = new URL('../support/kafka-member.ts', import.meta.url)
    const child = fork(member, [brokers.join(','), prefix, group])
    child.on('message', (message: { held?: number; handled?: string }) => {
      if (message.held !== undefined) held.add(message.held)
      if (message.handled !== undefined) handled.add(message.handled)
    })
    await eventually('the child holds everything', () => held.size === partitions)
    const follower = follow(pair.source, {
      group,
      from: (lease) => lease.committed ?? (from.get(`calls/${lease.partition}`) as bigint),
      handle: async ({ batch, lease }) => {
        for (const { key } of batch.entries) handled.add(key)
        await lease.commit(batch.next)
      },
    })
    await eventually('they share', () => follower.held().length === partitions / 2)
    const sent: string[] = []
    const send = async (count: number) => {
      const keys = Array.from(
        { length: count },
        () => `key-${sent.length}-${randomBytes(4).toString('hex')}`,
      )
      sent.push(...keys)
      await pair.appender.append(
        'calls',
        keys.map((key) => entry(key, key)),
      )
    }
    for (let round = 0; round < 10; round++) await send(50)
    child.kill('SIGKILL')
    for (let round = 0; round < 10; round++) await send(50)
    await eventually('the other takes over', () => follower.held().length === partitions, 90_000)
    await eventually('every entry is handled', () => sent.every((key) => handled.has(key)))
    await pair.close()
  }, 300_000)

  test('a broker that dies and comes back: what was answered is there, and members read on', async () => {
    const broker = await startKafka()
    const connection = { brokers: broker.brokers, logger: testLogger }
    await ensureTopics({ ...connection, partitions })
    const appender = kafkaAppender({ ...connection, partitions })
    const source = kafkaSource({ ...connection, timing: shortSession })
    const follower = follow(source, { from: await endsOf(source) })
    const answered = new Map<string, string>()
    const append = async (text: string) => {
      const [at] = await appender.append('calls', [entry(text, text)])
      if (at) answered.set(atText(at), text)
    }
    await append('before')
    await eventually('the first arrives', () => follower.texts().includes('before'))
    await broker.kill()
    await expect(append('during')).rejects.toMatchObject({ code: 'log_unavailable' })
    await eventually('the leases are lost', () => follower.held().length === 0)
    await broker.restart()
    await eventually('appends go on', () =>
      append('after').then(
        () => true,
        () => false,
      ),
    )
    await eventually('the member reads on', () => follower.texts().includes('after'), 60_000)
    const found = new Map<string, string>()
    for (const [partition, { start, end }] of (await source.bounds('calls')).entries())
      for (const batch of await readAll(source, {
        topic: 'calls',
        partition,
        from: start,
        until: end,
      }))
        for (const one of batch.entries)
          found.set(atText({ partition, offset: one.offset }), textOf(one))
    for (const [at, text] of answered) expect(found.get(at)).toBe(text)
    await source.close()
    await appender.close()
    await broker.stop()
  }, 500_000)
})
