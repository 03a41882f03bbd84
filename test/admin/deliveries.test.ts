// What operators see of deliveries and do about them: attempts, parked and dead messages, URLs, recoveries, tests.
import { describe, expect, test } from 'vitest'
import { runCli } from '../../src/cli/cli.ts'
import { openPost } from '../../src/http/open-post.ts'
import { openReceiver } from '../support/receiver.ts'
import { startTestAdmin } from './start.ts'

const now = Date.parse('2026-03-15T12:00:00Z')
const minute = 60_000

describe('deliveries for operators', async () => {
  const post = openPost({ addresses: { allowPrivate: true, allowed: [] } })
  const { admin, viewer, nobody, pool, url, databaseUrl } = await startTestAdmin({
    clock: () => new Date(now),
    post,
  })
  const receiver = await openReceiver({ secret: 'hush' })
  const other = await openReceiver({ secret: 'hush' })
  await admin('POST', '/admin/v1/workspaces', { name: 'shop' })
  const made = await admin('POST', '/admin/v1/destinations', {
    name: 'CRM',
    sharedSecret: 'hush',
    webhooks: [{ url: receiver.url, headers: { 'X-Team': 'growth' } }, { url: other.url }],
  })
  const destinationId: number = made.body.id
  const path = `/admin/v1/destinations/${destinationId}`

  const insertDead = async (n: number, over: Record<string, unknown> = {}) => {
    const row = {
      ...{ topic: 'calls', partition: 0, log_offset: n, destination_id: destinationId },
      ...{ message_id: `m${n}`, type: 'track', reason: 'status_400', status: 400, attempts: 1 },
      ...{ body: Buffer.from(`{"n":${n}}`), dead_at: new Date(now - n * minute), chain: 7n },
      ...over,
    }
    const keys = Object.keys(row)
    await pool.query(
      `insert into dead (${keys.join(', ')}) values (${keys.map((_, at) => `$${at + 1}`).join(', ')})`,
      Object.values(row),
    )
  }
  for (let n = 1; n <= 5; n += 1) await insertDead(n)
  await insertDead(6, { type: 'page', reason: 'expired', status: 503, body: null })
  await insertDead(7, { destination_id: 99 })

  const cli = async (...args: readonly string[]) => {
    const [out, err]: [string[], string[]] = [[], []]
    const code = await runCli({
      args,
      env: {
        MILLRACE_DATABASE_URL: databaseUrl,
        MILLRACE_ADMIN_PORT: new URL(url).port,
        MILLRACE_ADMIN_TOKEN: 'given-admin-token',
      },
      terminal: {
        out: (line) => void out.push(line),
        err: (line) => void err.push(line),
        isTTY: false,
      },
    })
    return { code, out: out.join('\n'), err: err.join('\n') }
  }

  test('dead messages are searched by everything they are known by, page by page', async () => {
    const search = async (query: string) =>
      (await viewer('GET', `/admin/v1/dead?${query}`)).body.dead.map(
        ({ messageId }: { messageId: string }) => messageId,
      )
    expect(await search('')).toEqual(['m1', 'm2', 'm3', 'm4', 'm5', 'm6', 'm7'])
    expect(await search(`destinationId=${destinationId}&type=page`)).toEqual(['m6'])
    expect(await search('reason=expired')).toEqual(['m6'])
    expect(await search('status=400&messageId=m3')).toEqual(['m3'])
    expect(await search('since=2026-03-15T11:58:00Z')).toEqual(['m1', 'm2'])
    expect(await search('until=2026-03-15T11:55:00Z')).toEqual(['m6', 'm7'])
    expect(await search('replayed=true')).toEqual([])
    const pages = []
    let query = 'limit=3'
    for (;;) {
      const { dead, next } = (await viewer('GET', `/admin/v1/dead?${query}`)).body
      pages.push(dead.map(({ messageId }: { messageId: string }) => messageId))
      if (next === null) break
      query = `limit=3&after=${next}`
    }
    expect(pages).toEqual([['m1', 'm2', 'm3'], ['m4', 'm5', 'm6'], ['m7']])
    for (const wrong of [
      'since=yesterday',
      'after=x',
      'limit=0',
      'type=click',
      'reasons=x',
      'reason=x',
    ])
      expect((await viewer('GET', `/admin/v1/dead?${wrong}`)).status, wrong).toBe(400)
    expect((await nobody('GET', '/admin/v1/dead')).status).toBe(401)
  })

  test('one dead message is shown, its body to admins only', async () => {
    const [{ id }] = (await viewer('GET', '/admin/v1/dead?messageId=m2')).body.dead
    expect((await admin('GET', `/admin/v1/dead/${id}`)).body).toMatchObject({
      ...{ messageId: 'm2', reason: 'status_400', attempts: 1, offset: 2, body: '{"n":2}' },
    })
    expect((await viewer('GET', `/admin/v1/dead/${id}`)).body.body).toBeNull()
    expect((await viewer('GET', '/admin/v1/dead/123456')).status).toBe(404)
  })

  test('a recovery is counted, made, paused, resumed and cancelled, and the audit log knows', async () => {
    const wish = { destinationId, reason: 'status_400', until: '2026-03-15T11:59:30Z' }
    const mistaken = await admin('POST', '/admin/v1/recoveries', { ...wish, reason: 'expierd' })
    expect([mistaken.status, mistaken.body.error.problems[0].path]).toEqual([400, '/reason'])
    expect(mistaken.body.error.message).toContain('"expired"')
    expect(mistaken.body.error.message).toContain('status_4')
    expect((await admin('POST', '/admin/v1/recoveries', { ...wish, dryRun: true })).body).toEqual({
      dryRun: true,
      matched: 5,
    })
    const { status, body } = await admin('POST', '/admin/v1/recoveries', wish)
    expect([status, body]).toEqual([
      201,
      {
        ...{ id: body.id, destinationId, origin: 'operator', actor: 'environment' },
        ...{ state: 'running', reason: 'status_400', type: null, status: null, messageId: null },
        ...{ since: null, until: '2026-03-15T11:59:30.000Z', ratePerSecond: 100, matched: 5 },
        ...{ recovered: 0, waiting: 0, diedAgain: 0, delivered: 0 },
        ...{ createdAt: '2026-03-15T12:00:00.000Z', endedAt: null },
      },
    ])
    const steer = (verb: string) => admin('POST', `/admin/v1/recoveries/${body.id}/${verb}`)
    expect((await steer('pause')).body.state).toBe('paused')
    expect((await steer('pause')).status).toBe(200)
    expect((await steer('resume')).body.state).toBe('running')
    expect((await steer('cancel')).body).toMatchObject({
      state: 'cancelled',
      endedAt: '2026-03-15T12:00:00.000Z',
    })
    expect((await steer('resume')).body.error.code).toBe('recovery_over')
    expect((await steer('resume')).status).toBe(409)
    const listed = await viewer('GET', `/admin/v1/recoveries?destinationId=${destinationId}`)
    expect(listed.body.recoveries.map(({ id }: { id: number }) => id)).toEqual([body.id])
    expect((await viewer('GET', `/admin/v1/recoveries/${body.id}`)).body.state).toBe('cancelled')
    const { entries } = (await admin('GET', '/admin/v1/audit?limit=5')).body
    expect(entries.filter(({ kind }: { kind: string }) => kind === 'recovery')).toHaveLength(4)
    expect((await viewer('POST', '/admin/v1/recoveries', wish)).status).toBe(403)
    const unknown = await admin('POST', '/admin/v1/recoveries', { destinationId: 4242 })
    expect(unknown.body.error.code).toBe('destination_unknown')
    const wrong = { ...wish, since: 'soon' }
    expect((await admin('POST', '/admin/v1/recoveries', wrong)).status).toBe(400)
  })

  test('more recoveries than are allowed at once are refused', async () => {
    await pool.query(
      `insert into recovery (destination_id, origin, actor, state, rate_per_second, matched, credited_at,
         created_at) select 98, 'operator', 'x', 'paused', 1, 0, $1, $1 from generate_series(1, 100)`,
      [new Date(now)],
    )
    const refused = await admin('POST', '/admin/v1/recoveries', { destinationId })
    expect([refused.status, refused.body.error.code]).toEqual([409, 'recoveries_too_many'])
    await pool.query('delete from recovery where destination_id = 98')
  })

  test('what is parked is listed with the time that is left for it', async () => {
    const insert = (offset: number, row: Record<string, unknown>) => {
      const all = {
        ...{ topic: 'calls', partition: 0, log_offset: offset, destination_id: destinationId },
        ...{ chain: BigInt(offset), message_id: `p${offset}`, type: 'track' },
        ...{ parked_at: new Date(now - 90 * minute), ...row },
      }
      const keys = Object.keys(all)
      const places = keys.map((_, at) => `$${at + 1}`).join(', ')
      return pool.query(
        `insert into parked (${keys.join(', ')}) values (${places})`,
        Object.values(all),
      )
    }
    await pool.query(
      "insert into position (reader, topic, partition, next, epoch) values ('deliver', 'calls', 0, 9, 1)",
    )
    await insert(11, { reason: 'behind_parked' })
    await insert(12, {
      ...{ reason: 'temporary', attempts: 3, first_try_at: new Date(now - 60 * minute) },
      ...{ next_at: new Date(now + minute), last_reason: 'status_503', last_status: 503 },
    })
    await insert(13, { reason: 'breaker_open', next_at: new Date(now + 150 * minute) })
    const { parked } = (await viewer('GET', `${path}/parked`)).body
    expect(parked).toMatchObject([
      {
        ...{ messageId: 'p12', attempts: 3, lastStatus: 503, windowLeftMs: 180 * minute },
        ...{ nextTryAt: '2026-03-15T12:01:00.000Z', windowEndsAt: '2026-03-15T15:00:00.000Z' },
      },
      { messageId: 'p13', windowLeftMs: 150 * minute, firstTryAt: null },
      { messageId: 'p11', nextTryAt: null, windowEndsAt: null, windowLeftMs: null },
    ])
    expect((await viewer('GET', `${path}/parked?limit=1`)).body.parked).toHaveLength(1)
    expect((await viewer('GET', '/admin/v1/destinations/4242/parked')).status).toBe(404)
  })

  test('URLs are shown as they stand in all processes, and an operator posts to one again', async () => {
    const at = new Date(now - minute)
    await pool.query(
      `insert into webhook_url (destination_id, url, state, reason, status, since)
       values ($1, $2, 'disabled', 'status_410', 410, $3)`,
      [destinationId, receiver.url, at],
    )
    const breaker = (owner: string, row: readonly unknown[]) =>
      pool.query(
        `insert into webhook_breaker (owner, destination_id, url, breaker, limit_now, limit_max, reason,
           status, since, told_at) values ($1, $2, $3, $4, $5, 20, 'status_503', 503, $6, $7)`,
        [owner, destinationId, other.url, ...row, at, new Date(now)],
      )
    await breaker('a', ['ramp', 4])
    await breaker('b', ['open', 0])
    const since = at.toISOString()
    expect((await viewer('GET', `${path}/urls`)).body.urls).toEqual([
      {
        ...{ url: receiver.url, state: 'disabled', breaker: 'closed', limit: null },
        ...{ reason: 'status_410', status: 410, since },
      },
      {
        ...{ url: other.url, state: 'ok', breaker: 'open', limit: 4 },
        ...{ reason: 'status_503', status: 503, since },
      },
    ])
    expect((await viewer('POST', `${path}/urls/enable`, { url: receiver.url })).status).toBe(403)
    const enabled = await admin('POST', `${path}/urls/enable`, { url: receiver.url })
    expect(enabled.body.urls[0]).toMatchObject({ state: 'ok', reason: null, since: null })
    expect((await admin('POST', `${path}/urls/enable`, { url: 'http://else.test' })).status).toBe(
      400,
    )
  })

  test('a test message is signed, posted to each URL, and neither counted nor kept', async () => {
    receiver.reply(() => 204)
    other.reply(() => ({ status: 401, body: 'who are you?' }))
    const { status, body } = await admin('POST', `${path}/test`, { type: 'page' })
    expect(status).toBe(200)
    expect(body).toMatchObject({
      signed: true,
      results: [
        { url: receiver.url, outcome: 'delivered', status: 204, reason: null, responseHead: null },
        { url: other.url, outcome: 'final', status: 401, responseHead: 'who are you?' },
      ],
    })
    expect(receiver.badSignatures).toEqual([])
    const [got] = receiver.requests
    expect(got?.body.toString('utf8')).toBe(body.body)
    expect(got?.json).toMatchObject({ type: 'page', userId: 'millrace-test-user', version: 1 })
    expect(got?.headers).toMatchObject({ 'x-team': 'growth', 'content-type': 'application/json' })
    expect((await admin('POST', `${path}/test`)).body.results).toHaveLength(2)
    expect(receiver.requests.at(-1)?.json).toMatchObject({ type: 'track', event: 'Millrace Test' })
    const { rows } = await pool.query('select from attempt')
    expect(rows).toEqual([])
    expect((await viewer('POST', `${path}/test`)).status).toBe(403)
    expect((await admin('POST', `${path}/test`, { type: 'delete' })).status).toBe(400)
  })

  test('attempts of all destinations are searched, page by page', async () => {
    await pool.query(
      `create table attempt_test (like attempt including all);
       alter table attempt attach partition attempt_test
         for values from ('2026-03-15T00:00:00Z') to ('2026-03-16T00:00:00Z')`,
    )
    for (let n = 1; n <= 4; n += 1)
      await pool.query(
        `insert into attempt (started_at, topic, partition, log_offset, destination_id, message_id, attempt,
           url, duration_ms, outcome, reason, status, first_byte_ms, reused, recovery_id)
         values ($1, 'calls', 0, $2, $3, $4, 1, $5, 12, $6, $7, $8, 11.5, true, $9)`,
        [
          ...[new Date(now - n * minute), n, n === 4 ? 99 : destinationId, `a${n}`, receiver.url],
          ...(n === 1 ? ['delivered', null, 200, 5] : ['temporary', 'status_503', 503, null]),
        ],
      )
    const search = async (query: string) =>
      (await viewer('GET', `/admin/v1/attempts?${query}`)).body
    const idsOf = ({ attempts }: { attempts: readonly { messageId: string }[] }) =>
      attempts.map(({ messageId }) => messageId)
    expect(idsOf(await search(''))).toEqual(['a1', 'a2', 'a3', 'a4'])
    expect(idsOf(await search(`destinationId=${destinationId}&outcome=temporary`))).toEqual([
      'a2',
      'a3',
    ])
    expect(idsOf(await search('status=503&reason=status_503&messageId=a3'))).toEqual(['a3'])
    expect(idsOf(await search(`url=${encodeURIComponent(receiver.url)}&recoveryId=5`))).toEqual([
      'a1',
    ])
    const span = 'since=2026-03-15T11:57:00Z&until=2026-03-15T11:59:00Z'
    expect(idsOf(await search(span))).toEqual(['a2', 'a3'])
    const first = await search('limit=3')
    expect(idsOf(first)).toEqual(['a1', 'a2', 'a3'])
    expect(first.attempts[0]).toMatchObject({
      firstByteMs: 11.5,
      reused: true,
      orderSuspended: false,
    })
    expect(idsOf(await search(`limit=3&after=${first.next}`))).toEqual(['a4'])
    expect((await viewer('GET', '/admin/v1/attempts?outcome=lost')).status).toBe(400)
  })

  test('the commands do the same', async () => {
    const list = await cli('dead', 'list', '--destination', 'CRM', '--reason', 'status_400')
    expect([list.code, list.err]).toEqual([0, ''])
    expect(list.out.split('\n')).toHaveLength(6)
    expect(list.out).toMatch(/^ID +DEAD +DESTINATION +TYPE +REASON +TRIES +MESSAGE/)
    const [{ id }] = (await viewer('GET', '/admin/v1/dead?messageId=m2')).body.dead
    expect((await cli('dead', 'show', String(id))).out).toMatch(/body +\{"n":2\}/)
    const dry = await cli('dead', 'recover', 'CRM', '--type', 'page', '--dry-run')
    expect(dry).toMatchObject({ code: 0, out: 'would send 1 message again' })
    const started = await cli('dead', 'recover', 'CRM', '--rate', '5', '--message', 'm2')
    expect(started.out).toMatch(/recovery +\d+\nstate +running\nmatched +1\n/)
    const recovery = /recovery +(\d+)/.exec(started.out)?.[1] as string
    expect((await cli('dead', 'pause', recovery)).out).toContain('paused')
    expect((await cli('dead', 'resume', recovery)).out).toContain('running')
    expect((await cli('dead', 'cancel', recovery)).out).toContain('cancelled')
    expect((await cli('dead', 'resume', recovery)).code).toBe(1)
    expect((await cli('dead', 'recoveries')).out).toMatch(new RegExp(`\\n${recovery} +`))
    expect((await cli('dead', 'recover')).code).toBe(2)
    expect((await cli('dead', 'recover', 'Nowhere')).err).toContain(
      'no destination named "Nowhere"',
    )
    const tested = await cli('destination', 'test', 'CRM')
    expect(tested.code).toBe(1)
    expect(tested.out).toMatch(/delivered +204[^\n]+\n[^\n]+final +401/)
  })
})
