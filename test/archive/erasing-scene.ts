// A whole Millrace that is killed with -9 while it takes users who were deleted out of its segments.
import { setTimeout as sleep } from 'node:timers/promises'
import { expect } from 'vitest'
import { uncompressed } from '../../src/archive/frames.ts'
import { readPath } from '../../src/archive/name.ts'
import type { Store } from '../../src/archive/store.ts'
import type { Pool } from '../../src/postgres/sql.ts'
import { acceptsWriteKey, apply } from '../support/applied.ts'
import { type MillraceProcess, processToken, startProcess } from '../support/process.ts'
import { cliAgainst } from '../support/run-cli.ts'
import { seeded } from '../support/seeded.ts'
import { until } from '../support/until.ts'
import { gathered } from './rig.ts'

export type Scene = {
  readonly pool: Pool
  readonly databaseUrl: string
  readonly store: Store
  /** MILLRACE_ARCHIVE, and what goes with it. */
  readonly env: Readonly<Record<string, string>>
  readonly kills: number
  readonly seed: number
}

const writeKey = 'wk_archive_erase'
const users = 12
/** As many segments of each partition. */
const rounds = 12
const gone = [0, 5, 7]
const longMs = 180_000
const hour = 3_600_000

const nameOf = (user: number) => `member-${gone.includes(user) ? 'gone' : 'kept'}-${user}`

/** Of all files: the ids in them, by how many lines have them. */
const linesOf = async (store: Store): Promise<ReadonlyMap<string, number>> => {
  const counts = new Map<string, number>()
  for (const { path } of await gathered(store.list(''))) {
    const name = readPath(path)
    const bytes = name === null ? null : await store.get(path)
    if (name === null || bytes === null) continue
    const text = Buffer.concat(await gathered(uncompressed(name.compression, bytes))).toString()
    for (const line of text.split('\n')) {
      const [found] = /member-(?:gone|kept)-\d+/.exec(line) ?? []
      if (found !== undefined) counts.set(found, (counts.get(found) ?? 0) + 1)
    }
  }
  return counts
}

export const killWhileErasing = async (scene: Scene): Promise<void> => {
  const { pool, databaseUrl, store, env, kills, seed } = scene
  const random = seeded(seed)
  let now = Date.UTC(2026, 0, 10)
  const running: { millrace: MillraceProcess | null } = { millrace: null }
  const start = async () => {
    const small = { MILLRACE_PARTITIONS: '2', MILLRACE_ARCHIVE_SEGMENT_MINUTES: '1' }
    const millrace = await startProcess({
      databaseUrl,
      time: new Date(now),
      env: { ...env, ...small },
    })
    running.millrace = millrace
    return millrace
  }
  const pass = (millrace: MillraceProcess, ms: number) => {
    now += ms
    return millrace.setTime(new Date(now))
  }
  try {
    let millrace = await start()
    await apply(millrace, {
      workspaces: [{ name: 'shop', sources: [{ name: 'web', class: 'server', writeKey }] }],
    })
    await acceptsWriteKey(millrace.collectUrl, writeKey)
    for (let round = 0; round < rounds; round++) {
      await send(millrace)
      await until(
        async () => {
          await pass(millrace, 61_000)
          await sleep(20)
          return (await segmentsOf(pool)) > round && (await isArchived(pool))
        },
        `round ${round} is archived (SEED=${seed})`,
        longMs,
      )
    }
    const before = await linesOf(store)
    expect([...before.values()]).toEqual(Array.from({ length: users }, () => rounds))
    await deleteUsers(millrace)
    const { rows } = await pool.query('select from deletion_request')
    expect(rows).toHaveLength(1)
    await until(
      async () => {
        await pass(millrace, 1_000)
        await sleep(100)
        const found = await pool.query<{ state: string }>('select state from deletion_request')
        return found.rows.every(({ state }) => state === 'finished')
      },
      `the request is finished (SEED=${seed})`,
      longMs,
    )
    for (let kill = 0; kill < kills; kill++) {
      const target = (await rewrittenOf(pool)) + 1
      await until(
        async () => {
          // Once an hour segments are looked through.
          await pass(millrace, hour)
          await sleep(20)
          return (await rewrittenOf(pool)) >= target || (await isDone(store))
        },
        `a segment is written anew before kill ${kill} (SEED=${seed})`,
        longMs,
      )
      await sleep(random() * 30)
      await millrace.kill9()
      millrace = await start()
    }
    await until(
      async () => {
        await pass(millrace, hour)
        await sleep(200)
        return isDone(store)
      },
      `no file names who was deleted (SEED=${seed})`,
      longMs,
    )
    const after = await linesOf(store)
    expect(after.size).toBe(users - gone.length)
    expect([...after.values()]).toEqual(Array.from({ length: after.size }, () => rounds))
    const cli = cliAgainst({ databaseUrl, url: millrace.adminUrl })
    const checked = await cli(['archive', 'check'], { MILLRACE_ADMIN_TOKEN: processToken, ...env })
    expect(checked).toMatchObject({ code: 0, err: '' })
    await millrace.stop()
  } finally {
    await running.millrace?.kill9()
  }
}

const isDone = async (store: Store) =>
  [...(await linesOf(store)).keys()].every((name) => !name.includes('gone'))

const send = async ({ collectUrl }: MillraceProcess) => {
  const batch = Array.from({ length: users }, (_, user) => ({
    type: 'track',
    event: 'Ordered',
    userId: nameOf(user),
  }))
  const response = await fetch(`${collectUrl}/v1/batch`, {
    method: 'POST',
    headers: { authorization: `Basic ${Buffer.from(`${writeKey}:`).toString('base64')}` },
    body: JSON.stringify({ batch }),
  })
  expect(response.status).toBe(200)
}

const deleteUsers = async ({ adminUrl, token }: MillraceProcess) => {
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
  const { workspaces } = (await (
    await fetch(`${adminUrl}/admin/v1/workspaces`, { headers })
  ).json()) as { workspaces: readonly { id: number; name: string }[] }
  const workspaceId = workspaces.find(({ name }) => name === 'shop')?.id
  const response = await fetch(`${adminUrl}/admin/v1/deletions`, {
    method: 'POST',
    headers,
    body: JSON.stringify({ workspaceId, userIds: gone.map(nameOf) }),
  })
  expect(response.status, await response.text()).toBe(201)
}

const numberFrom = async (pool: Pool, text: string): Promise<number> => {
  const { rows } = await pool.query<{ n: number }>(text)
  return rows[0]?.n ?? 0
}

const segmentsOf = (pool: Pool) =>
  numberFrom(pool, 'select count(distinct first_offset)::int as n from archive_segment')

const rewrittenOf = (pool: Pool) =>
  numberFrom(pool, 'select count(*)::int as n from archive_segment where generation > 0')

const isArchived = async (pool: Pool) =>
  (await numberFrom(
    pool,
    `select count(*)::int as n from log_partition l
       left join position p on p.reader = 'archive' and (p.topic, p.partition) = (l.topic, l.partition)
      where l.topic = 'calls' and coalesce(p.next, 0) < l.next_offset`,
  )) === 0
