import { once } from 'node:events'
import { connect } from 'node:net'
import { describe, expect, test } from 'vitest'
import { until } from '../support/until.ts'
import { type Client, endRun, startTestAdmin } from './start.ts'

const where = { trait: 'plan', op: 'eq', value: 'pro' }

describe('syncing now over the admin API', async () => {
  const { admin, viewer, pool } = await startTestAdmin()
  await admin('POST', '/admin/v1/workspaces', { name: 'shop' })
  const create = async (name: string): Promise<number> =>
    (await admin('POST', '/admin/v1/audiences', { name, where })).body.id
  const [one, two] = [await create('One'), await create('Two')]
  const newest = async () => {
    const { rows } = await pool.query<{ id: number; audienceIds: number[] }>(
      'select id::int, audience_ids as "audienceIds" from sync_run order by id desc limit 1',
    )
    return rows[0] ?? { id: 0, audienceIds: [] }
  }
  /** Asks, and returns the run once it is requested while the answer is still awaited. */
  const ask = async (client: Client, path: string, body?: object) => {
    const before = (await newest()).id
    let isAnswered = false
    const answer = client('POST', path, body).finally(() => {
      isAnswered = true
    })
    await until(async () => (await newest()).id > before)
    return { answer, run: await newest(), isAnswered: () => isAnswered }
  }

  test('it is answered only when the run is finished', async () => {
    const { answer, run, isAnswered } = await ask(admin, `/admin/v1/audiences/${one}/sync`)
    expect(run.audienceIds).toEqual([one])
    await pool.query("update sync_run set state = 'running' where id = $1", [run.id])
    await new Promise((resolve) => setTimeout(resolve, 300))
    expect(isAnswered()).toBe(false)
    await endRun(pool, run.id, { state: 'finished' })
    expect(await answer).toMatchObject({
      status: 200,
      body: { id: run.id, state: 'finished', emitted: 0, finishedAt: expect.any(String) },
    })
  })

  test('all audiences are synced together, or those given', async () => {
    const all = await ask(admin, '/admin/v1/sync')
    expect(all.run.audienceIds.toSorted()).toEqual([one, two].toSorted())
    await endRun(pool, all.run.id, { state: 'finished' })
    expect((await all.answer).status).toBe(200)
    const some = await ask(admin, '/admin/v1/sync', { audienceIds: [two] })
    expect(some.run.audienceIds).toEqual([two])
    await endRun(pool, some.run.id, { state: 'finished' })
    expect((await some.answer).status).toBe(200)
  })

  test('asked for all members, those of the audiences named are told of from the first again', async () => {
    await pool.query(
      'insert into sync_destination (audience_id, destination_id, after) values ($1, 7, null), ($2, 7, null)',
      [one, two],
    )
    const places = async () =>
      (
        await pool.query<{ id: number; after: number | null }>(
          'select audience_id as id, after::int as after from sync_destination order by audience_id',
        )
      ).rows
    await admin('POST', `/admin/v1/audiences/${one}/sync?wait=false`)
    expect((await places()).map(({ after }) => after)).toEqual([null, null])
    const path = `/admin/v1/audiences/${one}/sync?wait=false`
    expect((await admin('POST', path, { allMembers: true })).status).toBe(202)
    expect(await places()).toEqual([
      { id: one, after: 0 },
      { id: two, after: null },
    ])
    await admin('POST', '/admin/v1/sync?wait=false', { audienceIds: [two], allMembers: true })
    expect((await places()).map(({ after }) => after)).toEqual([0, 0])
  })

  test('without waiting it is answered at once and can be asked after', async () => {
    const asked = await admin('POST', `/admin/v1/audiences/${one}/sync?wait=false`)
    expect(asked).toMatchObject({ status: 202, body: { state: 'requested' } })
    const path = `/admin/v1/syncs/${asked.body.id}`
    expect((await viewer('GET', path)).body.state).toBe('requested')
    await endRun(pool, asked.body.id, { state: 'finished' })
    expect((await viewer('GET', path)).body.state).toBe('finished')
    expect((await viewer('GET', '/admin/v1/syncs/9999')).status).toBe(404)
  })

  test('a failed run says why', async () => {
    const { answer, run } = await ask(admin, `/admin/v1/audiences/${one}/sync`)
    await endRun(pool, run.id, { state: 'failed', reason: 'the audience was deleted' })
    expect(await answer).toMatchObject({
      status: 500,
      body: { error: { code: 'sync_failed', message: expect.stringContaining('was deleted') } },
    })
  })

  test('audiences that are not there are refused, and nothing is requested', async () => {
    const before = await newest()
    expect((await admin('POST', '/admin/v1/audiences/999/sync')).status).toBe(404)
    const answer = await admin('POST', '/admin/v1/sync', { audienceIds: [one, 999] })
    expect(answer.body.error.code).toBe('audience_unknown')
    expect((await admin('POST', '/admin/v1/sync', { audienceIds: [] })).status).toBe(400)
    expect(await newest()).toEqual(before)
  })

  test('who asked is in the audit log', async () => {
    const { entries } = (await admin('GET', '/admin/v1/audit')).body
    expect(entries).toContainEqual(
      expect.objectContaining({
        actor: 'environment',
        action: 'requested',
        kind: 'sync',
        changes: { audienceIds: { to: [two] } },
      }),
    )
  })
})

describe('stopping the admin API', async () => {
  const { admin, running } = await startTestAdmin()
  await admin('POST', '/admin/v1/workspaces', { name: 'shop' })

  test('answers those who wait for a sync instead of waiting with them', async () => {
    const { id } = (await admin('POST', '/admin/v1/audiences', { name: 'One', where })).body
    const answer = admin('POST', `/admin/v1/audiences/${id}/sync`)
    await until(async () => (await admin('GET', '/admin/v1/syncs/1')).status === 200)
    const startedAt = performance.now()
    await Promise.all([running.stop(), running.stop()])
    expect(performance.now() - startedAt).toBeLessThan(60_000)
    expect(await answer).toMatchObject({ status: 202, body: { state: 'requested' } })
    await expect(running.done).resolves.toBeUndefined()
    await expect(admin('GET', '/healthz')).rejects.toThrow()
  })
})

describe('stopping with a client that never finishes its request', async () => {
  const { url, running } = await startTestAdmin({ limits: { drainMsMax: 200 } })

  test('cuts it off', async () => {
    const { hostname, port } = new URL(url)
    const socket = connect(Number(port), hostname)
    const closed = once(socket, 'close')
    socket.write(
      'POST /admin/v1/apply HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer given-admin-token\r\n',
    )
    socket.write('Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{')
    await once(socket, 'connect')
    await new Promise((resolve) => setTimeout(resolve, 100))
    const startedAt = performance.now()
    await running.stop()
    expect(performance.now() - startedAt).toBeLessThan(60_000)
    await closed
  })
})

describe('a sync that outlasts the wait', async () => {
  const { admin } = await startTestAdmin({ limits: { syncWaitMsMax: 200 } })
  await admin('POST', '/admin/v1/workspaces', { name: 'shop' })

  test('is answered 202 and goes on', async () => {
    const { id } = (await admin('POST', '/admin/v1/audiences', { name: 'One', where })).body
    const answer = await admin('POST', `/admin/v1/audiences/${id}/sync`)
    expect(answer).toMatchObject({ status: 202, body: { state: 'requested' } })
  })
})
