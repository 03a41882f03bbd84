// Rebuilds of a whole Millrace on Kafka: under load, and once the broker has let go of what the archive has.
import { randomBytes } from 'node:crypto'
import { pino } from 'pino'
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest'
import { kafkaSource } from '../../src/log/kafka.ts'
import { aFolder } from '../archive/rig.ts'
import { acceptsWriteKey, apply } from '../support/applied.ts'
import { cloneDatabase } from '../support/database.ts'
import { directAdmin, topicsOf, truncate } from '../support/kafka-harness.ts'
import { type MillraceProcess, startProcess } from '../support/process.ts'
import { seed } from '../support/seed.ts'
import { seeded } from '../support/seeded.ts'
import { until } from '../support/until.ts'
import { fileAudiences } from './scene.ts'

const brokers = inject('kafkaBrokers')?.split(',') ?? []
const writeKey = 'wk_rebuild_kafka'
const longMs = 120_000

const file = {
  workspaces: [
    {
      name: 'shop',
      sources: [{ name: 'web', class: 'server', writeKey }],
      audiences: fileAudiences,
    },
  ],
}

describe.skipIf(brokers.length === 0)('on Kafka', async () => {
  const { pool, url } = await cloneDatabase()
  const prefix = `reb${randomBytes(4).toString('hex')}.`
  const source = kafkaSource({ brokers, prefix, logger: pino({ level: 'silent' }) })
  const admin = directAdmin(brokers)
  const random = seeded(seed)
  const pick = (of: number) => Math.floor(random() * of)
  let now = Date.UTC(2026, 0, 10)
  let millrace: MillraceProcess

  beforeAll(async () => {
    await admin.connect()
    millrace = await startProcess({
      databaseUrl: url,
      kafkaBrokers: brokers,
      time: new Date(now),
      env: {
        MILLRACE_KAFKA_PREFIX: prefix,
        MILLRACE_PARTITIONS: '3',
        MILLRACE_ARCHIVE: await aFolder(),
        MILLRACE_ARCHIVE_SEGMENT_MINUTES: '1',
      },
    })
    await apply(millrace, file)
    await acceptsWriteKey(millrace.collectUrl, writeKey)
    await send(4_000)
  }, longMs)

  afterAll(async () => {
    await millrace?.kill9()
    await source.close()
    await admin.deleteTopics({ topics: topicsOf(prefix) }).catch(() => undefined)
    await admin.disconnect()
  })

  const ask = async (what: string, body?: object) => {
    const [method = '', path = ''] = what.split(' ')
    const response = await fetch(new URL(path, millrace.adminUrl), {
      method,
      headers: { authorization: `Bearer ${millrace.token}`, 'content-type': 'application/json' },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    })
    // biome-ignore lint/suspicious/noExplicitAny: tests look into answers of any form
    return (await response.json()) as any
  }

  const aCall = () => {
    const [userId, anonymousId] = [`u${pick(300)}`, `a${pick(400)}`]
    const kind = random()
    if (kind < 0.3) return { type: 'track', event: 'Ordered', anonymousId }
    if (kind < 0.7) return { type: 'track', event: 'Ordered', userId }
    return { type: 'identify', userId, anonymousId, traits: { at: pick(9) } }
  }

  const post = (body: string) =>
    fetch(`${millrace.collectUrl}/v1/batch`, {
      method: 'POST',
      headers: { authorization: `Basic ${Buffer.from(`${writeKey}:`).toString('base64')}` },
      body,
    })

  const send = async (calls: number) => {
    for (let sent = 0; sent < calls; sent += 100) {
      const body = JSON.stringify({ batch: Array.from({ length: 100 }, aCall) })
      // A machine that hangs makes it shed load, as it should.
      await until(async () => (await post(body)).status === 200, 'a batch is taken', longMs)
    }
  }

  const settled = async (id: number) => {
    const isOpen = (state: string) =>
      ['requested', 'folding', 'comparing', 'swapping'].includes(state)
    await until(
      async () => !isOpen((await ask(`GET /admin/v1/rebuilds/${id}`)).state),
      `rebuild ${id} comes to rest (SEED=${seed})`,
      longMs,
    )
    return ask(`GET /admin/v1/rebuilds/${id}`)
  }

  /** The positions of a reader are at the log's ends. */
  const reached = async (reader: 'project' | 'archive') => {
    const { rows } = await pool.query<{ place: string; next: bigint }>(
      `select topic || '/' || partition as place, next from position where reader = $1`,
      [reader],
    )
    const next = new Map(rows.map((row) => [row.place, row.next]))
    return (await source.bounds('calls')).every(
      ({ end }, partition) => (next.get(`calls/${partition}`) ?? 0n) >= end,
    )
  }

  const metric = async (name: string): Promise<number> => {
    const text = await (await fetch(new URL('/metrics', millrace.adminUrl))).text()
    const line = text.split('\n').find((each) => each.startsWith(`${name} `))
    return Number(line?.split(' ').at(-1))
  }

  test('a rebuild under load is the live state, and the line hardly stands still for the swap', async () => {
    const { id } = await ask('POST /admin/v1/rebuilds', {})
    let isOver = false
    const load = (async () => {
      while (!isOver) await send(100)
    })()
    load.catch(() => undefined)
    const found = await settled(id).finally(() => {
      isOver = true
    })
    await load
    expect([found, seed]).toMatchObject([{ state: 'swapped', differing: 0 }, seed])
    expect(await metric('rebuild_ended_total{end="swapped"}')).toBe(1)
    const standstill = await metric('rebuild_standstill_seconds')
    process.stdout.write(`the line stood still for ${standstill} s at the swap\n`)
    expect(standstill).toBeGreaterThan(0)
    // The line goes on from what was swapped in, and comes to the same.
    await send(500)
    await until(() => reached('project'), 'all calls are projected', longMs)
    const again = await ask('POST /admin/v1/rebuilds', { verifyOnly: true })
    expect(await settled(again.id)).toMatchObject({ state: 'verified', differing: 0 })
  }, 300_000)

  test('what the broker has let go of is rebuilt from the archive', async () => {
    await until(
      async () => {
        now += 61_000
        await millrace.setTime(new Date(now))
        return reached('archive')
      },
      'all calls are archived',
      longMs,
    )
    const ends = (await source.bounds('calls')).map(({ end }) => end)
    for (const [partition, before] of ends.entries())
      await truncate(admin, { topic: `${prefix}calls`, partition, before })
    await until(
      async () =>
        (await source.bounds('calls')).every(({ start }, at) => start === (ends[at] ?? 0n)),
      'the broker has let go of all',
      longMs,
    )
    // These are in the log only.
    await send(300)
    await until(() => reached('project'), 'all calls are projected', longMs)
    const { id } = await ask('POST /admin/v1/rebuilds', {})
    const found = await settled(id)
    expect([found, seed]).toMatchObject([{ state: 'swapped', differing: 0 }, seed])
    // Who is in the archive only is there again.
    expect(found.users).toBeGreaterThan(200)
  }, 300_000)
})
