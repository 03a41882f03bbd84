import { gzipSync } from 'node:zlib'
import { describe, expect, test } from 'vitest'
import { startTestAdmin } from '../admin/start.ts'
import { cloneDatabase } from '../support/database.ts'
import { aTrack, importRig, ndjson } from './rig.ts'

describe('an import over the admin API', async () => {
  const { pool } = await cloneDatabase()
  const rig = importRig(pool)
  const { url, admin, viewer } = await startTestAdmin({
    pool,
    live: rig.live as never,
    imports: rig.imports,
  })

  const upload = async (id: number, body: Buffer) => {
    const response = await fetch(`${url}/admin/v1/imports/${id}/file`, {
      method: 'POST',
      headers: { authorization: 'Bearer given-admin-token' },
      body: new Uint8Array(body),
    })
    return { status: response.status, body: (await response.json()) as never }
  }
  const begin = async (over = {}) =>
    (await admin('POST', '/admin/v1/imports', { sourceId: 1, name: 'orders', ...over })).body.id

  test('takes a whole file in one body, also gzip, and names what it rejects', async () => {
    const calls = Array.from({ length: 5_200 }, (_, n) => aTrack(n % 100, { messageId: `up ${n}` }))
    const id = await begin()
    const { status, body } = await upload(id, gzipSync(ndjson(...calls, 'nonsense')))
    expect(status).toBe(200)
    expect(body).toMatchObject({
      import: { state: 'finished', accepted: 5_200, rejected: 1, line: 5_202 },
      rejected: [{ line: 5_201, code: 'invalid_json' }],
    })
    const ids = (await rig.appended()).map(({ messageId }) => messageId)
    expect(new Set(ids).size).toBe(5_200)
    expect(ids).toHaveLength(5_200)
  })

  test('passes over what it has when the log failed on the way and the file comes again', async () => {
    const calls = Array.from({ length: 5_100 }, (_, n) => aTrack(n % 100, { messageId: `re ${n}` }))
    const file = ndjson(...calls)
    const id = await begin()
    const first = ndjson(...calls.slice(0, 1_000))
    await rig.imports.take(await rig.now(id), {
      place: 0,
      line: 1,
      bytes: first,
      skipped: 0,
      isLast: false,
    })
    rig.behave({ only: 300 })
    expect(await upload(id, file)).toMatchObject({
      status: 503,
      body: { error: { code: 'log_unavailable' } },
    })
    rig.behave('take')
    expect(await upload(id, file)).toMatchObject({
      status: 200,
      body: { import: { accepted: 5_100 } },
    })
    const ids = (await rig.appended()).map(({ messageId }) => messageId)
    expect(ids.filter((one) => one.startsWith('re '))).toHaveLength(5_100)
  })

  test('refuses broken gzip, what comes after a cancel, and who may only look', async () => {
    const id = await begin()
    const broken = gzipSync(ndjson(aTrack(1))).subarray(0, 30)
    expect(await upload(id, broken)).toMatchObject({
      status: 400,
      body: { error: { code: 'request_invalid' } },
    })
    expect((await admin('POST', `/admin/v1/imports/${id}/cancel`)).body.state).toBe('cancelled')
    expect(await upload(id, ndjson(aTrack(1)))).toMatchObject({
      status: 409,
      body: { error: { code: 'import_over' } },
    })
    expect((await viewer('POST', '/admin/v1/imports', {})).status).toBe(403)
    expect((await viewer('GET', `/admin/v1/imports/${id}`)).body).toMatchObject({
      id,
      state: 'cancelled',
      accepted: 0,
    })
    const listed = await viewer('GET', '/admin/v1/imports?state=cancelled')
    expect(listed.body.imports).toMatchObject([{ id }])
  })
})
