import { rm } from 'node:fs/promises'
import { connect, createServer, type Socket } from 'node:net'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { stringify } from 'yaml'
import { attemptSpan, ensureSpans, spanOf } from '../../src/deliver/spans.ts'
import { openPool } from '../../src/postgres/pool.ts'
import { gainPosition } from '../../src/postgres/position.ts'
import { cloneDatabase } from '../support/database.ts'
import { ownFolder } from '../support/folder.ts'
import { startTestAdmin } from './start.ts'

const file = {
  workspaces: [
    {
      name: 'shop',
      sources: [{ name: 'web', class: 'server', writeKey: 'wk_shop' }],
      destinations: [
        { name: 'Webhooks', sources: ['web'], webhooks: [{ url: 'http://127.0.0.1:9/hook' }] },
      ],
    },
  ],
}

describe('the admin API over HTTP', async () => {
  const { admin, nobody, url, pool } = await startTestAdmin({
    limits: { bodyBytesMax: 10_000 },
    metrics: { contentType: 'text/plain; version=0.0.4', text: async () => 'millrace_up 1\n' },
  })
  const post = (path: string, body: string, contentType: string) =>
    fetch(url + path, {
      method: 'POST',
      headers: { authorization: 'Bearer given-admin-token', 'content-type': contentType },
      body,
    })
  const codeOf = async (answer: Response) =>
    `${answer.status} ${((await answer.json()) as { error: { code: string } }).error.code}`

  test('a file is applied dry, then really, then without effect; YAML as JSON', async () => {
    const dry = await admin('POST', '/admin/v1/apply?dryRun=true', file)
    expect(dry.body).toMatchObject({ dryRun: true, entities: [{}, {}, {}] })
    expect((await admin('GET', '/admin/v1/workspaces')).body.workspaces).toEqual([])
    const applied = await post('/admin/v1/apply', stringify(file), 'application/yaml')
    expect(applied.status).toBe(200)
    expect(await applied.json()).toMatchObject({
      dryRun: false,
      entities: [
        { action: 'created', kind: 'workspace', name: 'shop' },
        { action: 'created', kind: 'source', generated: { secretKey: expect.any(String) } },
        { action: 'created', kind: 'destination' },
      ],
    })
    const again = await admin('POST', '/admin/v1/apply', file)
    expect(again.body.entities.map(({ action }: { action: string }) => action)).toEqual([
      'unchanged',
      'unchanged',
      'unchanged',
    ])
  })

  test('a file with a problem is refused whole', async () => {
    const [workspace] = file.workspaces
    const bad = { workspaces: [{ ...workspace, name: 'bad', audiences: [{ name: 'x' }] }] }
    const answer = await admin('POST', '/admin/v1/apply', bad)
    expect(answer.status).toBe(400)
    expect(answer.body.error.problems).toContainEqual({
      code: 'field_missing',
      path: '/workspaces/0/audiences/0/where',
      message: expect.any(String),
    })
    expect((await admin('GET', '/admin/v1/workspaces')).body.workspaces).toHaveLength(1)
  })

  test('broken bodies, other media types, too much, and unknown routes are refused in one form', async () => {
    const sources = '/admin/v1/sources'
    const json = 'application/json'
    expect(await codeOf(await post(sources, '{', json))).toBe('400 json_invalid')
    expect(await codeOf(await post(sources, '', json))).toBe('400 field_invalid')
    expect(await codeOf(await post(sources, 'null', json))).toBe('400 field_invalid')
    expect(await codeOf(await post(sources, '[]', json))).toBe('400 field_invalid')
    expect(await codeOf(await post(sources, 'name: a', 'application/yaml'))).toBe(
      '415 media_type_unsupported',
    )
    expect(await codeOf(await post(sources, `"${'x'.repeat(10_000)}"`, json))).toBe(
      '413 body_too_large',
    )
    expect(await codeOf(await post('/admin/v1/apply', 'a: [', 'text/yaml'))).toBe(
      '400 file_invalid',
    )
    expect(await codeOf(await post('/admin/v2/sources', '{}', json))).toBe('404 not_found')
    const polluted = '{"name":"a","class":"web","__proto__":{"x":1}}'
    expect(await codeOf(await post(sources, polluted, json))).toBe('400 field_unknown')
    expect((await admin('PUT', sources)).status).toBe(404)
  })

  test('ids and queries that cannot be are refused, not guessed', async () => {
    for (const path of ['sources/x', 'sources/0', 'sources/1.5', 'sources/99999999999'])
      expect((await admin('GET', `/admin/v1/${path}`)).body.error.code).toBe('field_invalid')
    expect((await admin('GET', '/admin/v1/sources?workspaceId=a')).status).toBe(400)
    expect((await admin('GET', '/admin/v1/sources?workspace=1')).body.error.code).toBe(
      'field_unknown',
    )
    expect((await admin('GET', '/admin/v1/%E0%A4')).status).toBe(400)
  })

  test('health, readiness and metrics need no token', async () => {
    expect((await nobody('GET', '/healthz')).body).toEqual({ status: 'ok' })
    expect((await nobody('GET', '/readyz')).body).toEqual({ status: 'ok' })
    const metrics = await nobody('GET', '/metrics')
    expect(metrics.body).toBe('millrace_up 1\n')
    expect(metrics.headers.get('content-type')).toBe('text/plain; version=0.0.4')
  })

  test('deliveries of a destination are counted and its newest attempts listed', async () => {
    const [{ id }] = (await admin('GET', '/admin/v1/destinations')).body.destinations
    const today = spanOf(attemptSpan, Date.now())
    await ensureSpans(pool, attemptSpan, [today - 1, today])
    const insert = (minutesAgo: number, destinationId: number) =>
      pool.query(
        `insert into attempt (started_at, topic, partition, log_offset, destination_id, message_id,
                              attempt, url, duration_ms, outcome, reason, status, response_head)
         values ($1, 'calls', 0, 0, $2, $3, 1, 'http://127.0.0.1:9/hook', 12, 'temporary', 'status', 503, 'busy')`,
        [new Date(Date.now() - minutesAgo * 60_000), destinationId, `m${minutesAgo}`],
      )
    await insert(1, id)
    await insert(2, id)
    await insert(90, id)
    await insert(1, id + 1)
    await pool.query(
      `insert into parked (topic, partition, log_offset, destination_id, chain, message_id, type, reason, parked_at)
       values ('calls', 0, 1, $1, 0, 'm', 'track', 'temporary', $2)`,
      [id, new Date()],
    )
    await gainPosition(pool, { reader: 'deliver', topic: 'calls', partition: 0 })
    // Two died, and one of them was sent again.
    await pool.query(
      `insert into dead (topic, partition, log_offset, destination_id, message_id, type, reason,
                         attempts, dead_at, replayed_at)
       values ('calls', 0, 2, $1, 'm', 'track', 'rejected', 1, $2, null),
              ('calls', 0, 3, $1, 'm', 'track', 'rejected', 1, $2, $2)`,
      [id, new Date()],
    )
    const path = `/admin/v1/destinations/${id}`
    expect((await admin('GET', `${path}/deliveries`)).body).toEqual({ parked: 1, dead: 1 })
    const { attempts } = (await admin('GET', `${path}/attempts?hours=1`)).body
    expect(attempts.map(({ messageId }: { messageId: string }) => messageId)).toEqual(['m1', 'm2'])
    expect(attempts[0]).toMatchObject({
      attempt: 1,
      durationMs: 12,
      status: 503,
      outcome: 'temporary',
    })
    expect((await admin('GET', `${path}/attempts?limit=1`)).body.attempts).toHaveLength(1)
    expect((await admin('GET', '/admin/v1/destinations/999/attempts')).status).toBe(404)
  })
})

describe('the admin API with Postgres away', async () => {
  const { url } = await cloneDatabase()
  const near = await ownFolder('proxy')
  const far = decodeURIComponent(/host=([^&]+)/.exec(url)?.[1] ?? '')
  const proxy = await startProxy(join(near, socketName), join(far, socketName))
  const pool = openPool({
    url: url.replace(/host=[^&]+/, `host=${encodeURIComponent(near)}`),
    connectionsMax: 4,
    name: 'test',
  })
  afterAll(async () => {
    await pool.close()
    await proxy.cut()
    await rm(near, { recursive: true })
  })
  const { admin, nobody } = await startTestAdmin({ pool })

  test('it answers 503 and is not ready, but alive, and recovers by itself', async () => {
    expect((await nobody('GET', '/readyz')).status).toBe(200)
    await proxy.cut()
    const ready = await nobody('GET', '/readyz')
    expect([ready.status, ready.body.error.code]).toEqual([503, 'database_unavailable'])
    expect((await nobody('GET', '/healthz')).status).toBe(200)
    const read = await admin('GET', '/admin/v1/audiences')
    expect([read.status, read.body.error.code]).toEqual([503, 'database_unavailable'])
    const written = await admin('POST', '/admin/v1/workspaces', { name: 'shop' })
    expect(written.body.error.code).toBe('database_unavailable')
    await proxy.mend()
    expect((await nobody('GET', '/readyz')).status).toBe(200)
    expect((await admin('GET', '/admin/v1/workspaces')).body.workspaces).toEqual([])
  })
})

const socketName = '.s.PGSQL.5432'

/** Carries bytes to Postgres until it is cut. */
const startProxy = async (path: string, target: string) => {
  const sockets = new Set<Socket>()
  const server = createServer((near) => {
    const there = connect(target)
    near.pipe(there).pipe(near)
    for (const socket of [near, there]) {
      sockets.add(socket)
      socket.on('error', () => undefined)
    }
  })
  const mend = () => new Promise<void>((resolve) => server.listen(path, resolve))
  const cut = () =>
    new Promise<unknown>((resolve) => {
      server.close(resolve)
      for (const socket of sockets) socket.destroy()
    })
  await mend()
  return { cut, mend }
}
