import { randomBytes } from 'node:crypto'
import { pino } from 'pino'
import { describe, expect, inject, test } from 'vitest'
import { hashOf } from '../../src/control/credential.ts'
import { insertDestination } from '../../src/control/destination-store.ts'
import { openLive } from '../../src/control/live.ts'
import * as store from '../../src/control/store.ts'
import type { Configuration } from '../../src/domain/configuration.ts'
import {
  defaultDestinationSettings,
  defaultSourceSettings,
} from '../../src/domain/configuration.ts'
import { openPool } from '../../src/postgres/pool.ts'
import type { Pool, Sql } from '../../src/postgres/sql.ts'
import { aKeyring, aWebhook } from '../support/configuration.ts'
import { cloneDatabase } from '../support/database.ts'
import { until } from '../support/until.ts'

const logger = pino({ level: 'silent' })
const clock = () => new Date()
const slowPoll = { pollEveryMs: 3_600_000 }

const addSource = async (sql: Sql, workspaceId: number, name: string) =>
  store.insertSource(sql, {
    workspaceId,
    name,
    class: 'web',
    writeKey: `wk_${name}`,
    secretKeyHash: hashOf(`sk_${name}`).toString('hex'),
    enabled: true,
    settings: defaultSourceSettings,
  })

const addAll = (pool: Pool) =>
  pool.transaction(async (tx) => {
    const { id: workspaceId } = await store.insertWorkspace(tx, {
      name: randomBytes(4).toString('hex'),
      regionalAccess: true,
      grandfathered: false,
    })
    const sourceId = await addSource(tx, workspaceId, randomBytes(4).toString('hex'))
    const destinationId = await insertDestination(
      tx,
      {
        workspaceId,
        name: 'Webhooks',
        type: 'webhook',
        enabled: false,
        sourceIds: new Set([sourceId]),
        ...defaultDestinationSettings,
        sharedSecret: 'hush',
        nextSharedSecret: null,
        filters: [],
        historical: false,
        historicalAfterMs: 3_000_000_000,
        webhooks: [
          aWebhook({ url: 'http://a.test/', headers: { 'X-Z': '1', 'X-A': '2', '10': '3' } }),
          aWebhook({ url: 'http://b.test/' }),
        ],
      },
      aKeyring,
    )
    const audienceId = await store.insertAudience(tx, {
      workspaceId,
      name: 'Big Spenders',
      key: 'big_spenders',
      kind: 'audience',
      timezone: 'UTC',
      scope: 'user',
      includeAnonymous: true,
      retractOnDelete: false,
      entryEvents: false,
      condition: { trait: 'plan\u0000\ud800', op: 'eq', value: 'pro' },
      destinationIds: [destinationId],
      syncEveryMs: 9_000_000,
    })
    return { workspaceId, sourceId, destinationId, audienceId }
  })

describe('the live configuration', async () => {
  const { pool, url } = await cloneDatabase()
  const open = (over: Partial<Parameters<typeof openLive>[0]> = {}) =>
    openLive({ pool, logger, clock, keyring: aKeyring, ...over })

  test('settings that a release saved before there were some of today have their defaults', async () => {
    const { sourceId } = await addAll(pool)
    for (const settings of ['{}', '{"ipPolicy":"drop","callBytesMax":2048}']) {
      await pool.query('update source set settings = $2 where id = $1', [sourceId, settings])
      const live = await open()
      expect(live.now().sources.get(sourceId)?.settings).toEqual({
        ...defaultSourceSettings,
        ...JSON.parse(settings),
      })
      await live.close()
    }
  })

  test('a snapshot holds everything that was saved, as it was saved', async () => {
    const ids = await addAll(pool)
    const live = await open()
    const now = live.now()
    await live.close()
    const source = now.sources.get(ids.sourceId)
    const destination = now.destinations.get(ids.destinationId)
    expect(now.workspaces.get(ids.workspaceId)).toMatchObject({ regionalAccess: true })
    expect(source).toEqual({
      id: ids.sourceId,
      workspaceId: ids.workspaceId,
      name: source?.name,
      class: 'web',
      writeKey: `wk_${source?.name}`,
      enabled: true,
      secretKeyHash: hashOf(`sk_${source?.name}`).toString('hex'),
      settings: defaultSourceSettings,
    })
    expect(now.sourceByWriteKey.get(`wk_${source?.name}`)).toBe(source)
    expect(now.destinationsBySource.get(ids.sourceId)).toEqual([destination])
    expect(destination).toMatchObject({
      enabled: false,
      sourceIds: new Set([ids.sourceId]),
      sharedSecret: 'hush',
      filters: [],
      historical: false,
      historicalAfterMs: 3_000_000_000,
      webhooks: [
        { url: 'http://a.test/', headers: { 'X-Z': '1', 'X-A': '2', '10': '3' } },
        { url: 'http://b.test/', headers: {} },
      ],
    })
    expect(Object.keys(destination?.webhooks[0]?.headers ?? {})).toEqual(['10', 'X-Z', 'X-A'])
    expect(now.audiences.get(ids.audienceId)).toEqual({
      id: ids.audienceId,
      kind: 'audience',
      timezone: 'UTC',
      scope: 'user',
      includeAnonymous: true,
      retractOnDelete: false,
      entryEvents: false,
      workspaceId: ids.workspaceId,
      name: 'Big Spenders',
      key: 'big_spenders',
      condition: { trait: 'plan\u0000\ud800', op: 'eq', value: 'pro' },
      destinationIds: [ids.destinationId],
      syncEveryMs: 9_000_000,
    })
  })

  test('a change reaches a second process by notification alone, once for a transaction', async () => {
    const other = openPool({ url, connectionsMax: 2, name: 'test' })
    const [here, there] = [await open(), await open({ pool: other, limits: slowPoll })]
    const before = there.now()
    const heard: Configuration[] = []
    there.onChange((configuration) => heard.push(configuration))
    const ids = await addAll(pool)
    await until(() => there.now().audiences.has(ids.audienceId))
    await until(() => here.now().version === there.now().version)
    expect(before.audiences.has(ids.audienceId)).toBe(false)
    expect(heard).toEqual([there.now()])
    expect(there.now().version > before.version).toBe(true)
    await Promise.all([here.close(), there.close()])
    await other.close()
  })

  test('an unsubscribed listener hears nothing more', async () => {
    const live = await open()
    let heard = 0
    const unsubscribe = live.onChange(() => {
      heard += 1
    })
    unsubscribe()
    const ids = await addAll(pool)
    await until(() => live.now().audiences.has(ids.audienceId))
    await live.close()
    expect(heard).toBe(0)
  })

  test('the poll finds a change whose notification was lost', async () => {
    const deaf: Pool = { ...pool, listen: async () => async () => undefined }
    const live = await open({ pool: deaf })
    const ids = await addAll(pool)
    await until(() => live.now().audiences.has(ids.audienceId))
    await live.close()
  })

  test('who asks for what is newest has it at once, without notification or poll', async () => {
    const deaf: Pool = { ...pool, listen: async () => async () => undefined }
    const live = await open({ pool: deaf, limits: { ...slowPoll, refreshMsMax: 60_000 } })
    for (let change = 0; change < 5; change += 1) {
      const ids = await addAll(pool)
      await live.refresh()
      expect(live.now().audiences.has(ids.audienceId)).toBe(true)
    }
    await live.close()
  })

  test('who asks for what is newest does not wait for a Postgres that says nothing', async () => {
    const held = { now: Promise.resolve() }
    const slow: Pool = { ...pool, query: (...of) => held.now.then(() => pool.query(...of)) }
    const live = await open({ pool: slow, limits: { ...slowPoll, refreshMsMax: 20 } })
    const { promise, resolve } = Promise.withResolvers<void>()
    held.now = promise
    await live.refresh()
    resolve()
    await live.close()
  })

  test('a rolled back change is never seen', async () => {
    const live = await open({ limits: { pollEveryMs: 20 } })
    const seen = new Set<number>()
    live.onChange(({ sources }) => {
      for (const id of sources.keys()) seen.add(id)
    })
    let lost = 0
    const failed = pool.transaction(async (tx) => {
      const { id } = await store.insertWorkspace(tx, {
        name: 'gone',
        regionalAccess: false,
        grandfathered: false,
      })
      lost = await addSource(tx, id, 'gone')
      throw new Error('rolled back')
    })
    await expect(failed).rejects.toThrow('rolled back')
    const ids = await addAll(pool)
    await until(() => live.now().sources.has(ids.sourceId))
    await live.close()
    expect(seen.has(lost)).toBe(false)
    expect(seen.has(ids.sourceId)).toBe(true)
  })

  test('the last good snapshot serves while Postgres is away, and the next follows its return', async () => {
    // A database of its own, which refuses connections for a while.
    const name = `live_${randomBytes(6).toString('hex')}`
    const admin = openPool({ url: inject('postgresUrl'), connectionsMax: 1, name: 'test' })
    await admin.query(`create database ${name} template template_millrace`)
    const away = openPool({
      url: inject('postgresUrl').replace('/postgres?', `/${name}?`),
      connectionsMax: 4,
      name: 'test',
    })
    const first = await addAll(away)
    const warned: string[] = []
    const sink = { write: (line: string) => void warned.push(line) }
    const live = await open({
      pool: away,
      limits: { pollEveryMs: 50 },
      logger: pino({ level: 'warn' }, sink),
    })
    await admin.query(`alter database ${name} allow_connections false`)
    await admin.query('select pg_terminate_backend(pid) from pg_stat_activity where datname = $1', [
      name,
    ])
    await until(() => warned.some((line) => line.includes('configuration.kept')))
    expect(live.now().audiences.has(first.audienceId)).toBe(true)
    await admin.query(`alter database ${name} allow_connections true`)
    const second = await addAll(away)
    await until(() => live.now().audiences.has(second.audienceId))
    await live.close()
    await away.close()
    await admin.query(`drop database ${name} with (force)`)
    await admin.close()
  })

  test('two transactions that touch many rows in opposite order do not deadlock', async () => {
    const [one, two] = [await addAll(pool), await addAll(pool)]
    const touch = (ids: readonly number[]) =>
      pool.transaction(async (tx) => {
        await tx.query('select version from configuration_version for update')
        for (const id of ids)
          await store.updateWorkspace(tx, {
            id,
            name: `renamed ${id}`,
            regionalAccess: false,
            grandfathered: false,
          })
      })
    const [a, b] = [one.workspaceId, two.workspaceId]
    const rounds = Array.from({ length: 10 }, () => [touch([a, b]), touch([b, a])])
    const ended = await Promise.allSettled(rounds.flat())
    expect(ended.filter(({ status }) => status === 'rejected')).toEqual([])
  })
})
