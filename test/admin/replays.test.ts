// Replays over the admin API: what is refused, counted, made and steered.
import { describe, expect, test } from 'vitest'
import { digestOf, type Message } from '../../src/domain/message.ts'
import { openCodecs } from '../../src/log/avro.ts'
import { memoryLog } from '../../src/log/memory.ts'
import { countReplay } from '../../src/replay/count.ts'
import { cliAgainst } from '../support/run-cli.ts'
import { startTestAdmin } from './start.ts'

describe('replays', async () => {
  const now = new Date()
  const log = memoryLog({ partitions: 2, clock: () => now })
  const codecs = await openCodecs({})
  const { admin, viewer, pool, url, databaseUrl } = await startTestAdmin({
    source: log.source(),
    codecs,
    countReplay,
    // Nobody has the time: each answer is of one slice.
    limits: { replayCountMsMax: 0 },
  })
  await admin('POST', '/admin/v1/apply', {
    workspaces: [
      {
        name: 'shop',
        sources: [
          { name: 'web', class: 'server', writeKey: 'wk_shop_web', secretKey: 'sk_shop_web' },
        ],
        destinations: [
          {
            ...{ name: 'Webhooks', type: 'webhook', sources: ['web'], sharedSecret: 's' },
            webhooks: [{ url: 'http://127.0.0.1:9/hook' }],
            filters: [{ kind: 'drop', if: { events: ['Secret'] } }],
          },
          {
            ...{ name: 'Audiences', type: 'webhook', sources: [], sharedSecret: 's' },
            webhooks: [{ url: 'http://127.0.0.1:9/audiences' }],
          },
        ],
      },
    ],
  })
  const { body: listed } = await admin('GET', '/admin/v1/destinations')
  const named = (name: string) =>
    listed.destinations.find((one: { readonly name: string }) => one.name === name)
  const { id: destinationId, workspaceId } = named('Webhooks')
  const { body: known } = await admin('GET', '/admin/v1/sources')
  const sourceId = known.sources[0].id
  const calls = Array.from({ length: 50 }, (_, n): Message => {
    const call = {
      ...{ messageId: `m${n}`, type: 'track' as const, workspaceId, sourceId },
      ...{ userId: `u${n}`, anonymousId: null, previousId: null, groupId: null },
      event: n % 10 === 0 ? 'Secret' : 'Seen',
      ...{ timestamp: now.getTime(), originalTimestamp: now.getTime(), sentAt: null },
      receivedAt: now.getTime(),
      body: Buffer.from('{"properties":{}}'),
      filtered: null,
    }
    return { ...call, digest: digestOf(call) }
  })
  for (let at = 0; at < calls.length; at += 10)
    await log.appender().append(
      'calls',
      calls.slice(at, at + 10).map((call) => ({
        key: `${call.userId}`,
        value: codecs.call.encode(call),
      })),
    )
  const path = '/admin/v1/replays'
  const since = new Date(now.getTime() - 60_000).toISOString()
  const until = new Date(now.getTime() + 60_000).toISOString()
  const wish = { destinationId, since, until }

  test('a dry run counts exactly, in as many answers as it takes, and makes nothing', async () => {
    let cursor: string | null = null
    const seen: number[] = []
    for (;;) {
      const { status, body } = await admin('POST', path, {
        ...{ ...wish, dryRun: true, types: ['track'] },
        ...(cursor === null ? {} : { cursor }),
      })
      expect(status).toBe(200)
      seen.push(body.read)
      cursor = body.cursor
      if (!body.complete) continue
      expect(body).toMatchObject({ total: 50, read: 50, selected: 50, sendable: 45, filtered: 5 })
      break
    }
    expect(seen.length).toBeGreaterThan(1)
    expect(seen).toEqual(seen.toSorted((a, b) => a - b))
    expect((await viewer('GET', path)).body.replays).toEqual([])
  })

  test('what makes no sense is refused with the place that is wrong', async () => {
    const refused = async (over: object) => {
      const { status, body } = await admin('POST', path, { ...wish, ...over })
      return [status, body.error.code, body.error.problems?.[0]?.path]
    }
    expect(await refused({ destinationId: 999 })).toEqual([
      ...[400, 'destination_unknown', '/destinationId'],
    ])
    expect(await refused({ sourceIds: [sourceId, 999] })).toEqual([
      ...[400, 'source_unknown', '/sourceIds/1'],
    ])
    expect(await refused({ until: since })).toEqual([400, 'field_invalid', '/until'])
    expect(await refused({ since: 'yesterday' })).toEqual([400, 'field_invalid', '/since'])
    expect(await refused({ dryRun: true, cursor: 'mine' })).toEqual([
      ...[400, 'field_invalid', '/cursor'],
    ])
    expect((await refused({ types: ['shout'] }))[0]).toBe(400)
    expect((await refused({ ratePerSecond: 0 }))[0]).toBe(400)
    expect(await refused({ since: undefined })).toEqual([400, 'field_missing', '/since'])
    expect((await refused({ reasons: [] }))[0]).toBe(400)
    expect(await refused({ reasons: ['expired', 'expierd'] })).toEqual([
      ...[400, 'field_invalid', '/reasons/1'],
    ])
    // Of a status that is tried again a message dies "expired".
    expect((await refused({ reasons: ['status_503'] }))[0]).toBe(400)
  })

  test('what nothing can be selected by is refused', async () => {
    const { status, body } = await admin('POST', path, {
      ...{ destinationId: named('Audiences').id, since },
    })
    expect([status, body.error.problems]).toEqual([
      400,
      [
        {
          ...{ code: 'field_missing', path: '/sourceIds' },
          message:
            '"Audiences" takes from no source: name those whose calls it is to get, by sourceIds or --source',
        },
      ],
    ])
    // A delete is an order; the notice of it is asked for by nobody's replay.
    expect((await admin('POST', path, { ...wish, types: ['delete'] })).status).toBe(400)
    const ahead = new Date(Date.now() + 3_600_000).toISOString()
    const later = new Date(Date.now() + 7_200_000).toISOString()
    for (const until of [undefined, later]) {
      const refused = await admin('POST', path, { destinationId, since: ahead, until })
      expect(refused.body.error.problems).toMatchObject([
        { path: '/since', message: expect.stringContaining('since lies ahead: it is') as string },
      ])
    }
    // A client's clock may be ahead.
    const own = { destinationId, since: ahead, until: later, by: 'timestamp', dryRun: true }
    expect((await admin('POST', path, own)).status).toBe(200)
    expect((await viewer('GET', path)).body.replays).toEqual([])
  })

  test('is made, watched and steered, and every step stands in the audit log', async () => {
    expect((await viewer('POST', path, wish)).status).toBe(403)
    const made = await admin('POST', path, { ...wish, events: ['Seen'], ratePerSecond: 5 })
    expect(made).toMatchObject({
      status: 201,
      body: { state: 'running', total: null, sourceIds: [sourceId], events: ['Seen'], sent: 0 },
    })
    const { id } = made.body
    expect((await admin('POST', path, wish)).body.error.code).toBe('replay_open')
    const steer = (verb: string) => admin('POST', `${path}/${id}/${verb}`, {})
    expect((await steer('resume')).status).toBe(200)
    expect((await steer('pause')).body.state).toBe('paused')
    expect((await steer('resume')).body.state).toBe('running')
    expect((await steer('cancel')).body.state).toBe('cancelled')
    expect((await steer('cancel')).status).toBe(200)
    expect((await steer('pause')).body.error.code).toBe('replay_over')
    expect((await viewer('GET', `${path}/${id}`)).body).toMatchObject({ state: 'cancelled' })
    expect((await viewer('GET', `${path}/999`)).status).toBe(404)
    await pool.query('update replay set settled = true')
    const { rows } = await pool.query<{ action: string }>(
      `select action from audit_log where kind = 'replay' order by id`,
    )
    expect(rows.map(({ action }) => action)).toEqual([
      ...['requested', 'changed', 'changed', 'changed'],
    ])
  })

  test('the command line counts, starts, shows and cancels them', async () => {
    const run = cliAgainst({ databaseUrl, url })
    const from = ['replay', '--destination', 'Webhooks', '--from', since, '--until', until]
    const counted = await run([...from, '--event', 'Seen', '--dry-run'])
    expect([counted.code, counted.lines.at(-1)]).toEqual([0, 'would send 45 calls'])
    expect((await run([...from, '--source', 'web', '--types', 'track'])).code).toBe(0)
    const { replays } = (await viewer('GET', path)).body
    expect(replays[0]).toMatchObject({ state: 'running', types: ['track'], sourceIds: [sourceId] })
    expect((await run(['replay', 'show', `${replays[0].id}`])).out).toContain('not started')
    expect((await run(['replay', 'cancel', `${replays[0].id}`])).out).toContain('cancelled')
    expect((await run(['replay', 'list'])).lines).toHaveLength(replays.length + 1)
    expect((await run(['replay', 'start'])).code).toBe(2)
    expect(await run([...from, '--from', 'yesterday'])).toMatchObject({
      code: 2,
      err: expect.stringContaining('--from takes a time in ISO 8601') as string,
    })
    await pool.query('update replay set settled = true')
  })

  test('of what is dead at the destination only that is counted and sent, of all of the log', async () => {
    const [first, second] = await log.source().bounds('calls')
    const [partition, end] = first && first.end > 0n ? [0, first.end] : [1, second?.end ?? 0n]
    await pool.query(
      `insert into dead (topic, partition, log_offset, destination_id, message_id, type, reason, attempts, dead_at)
       select 'calls', $1, o, $2, 'd' || o, 'track', case when o = 0 then 'expired' else 'status_410' end, 1, $3
         from generate_series(0, $4::int - 1) as o`,
      [partition, destinationId, now, Number(end)],
    )
    const whole = { destinationId, reasons: ['expired'] }
    const { body } = await admin('POST', path, { ...whole, dryRun: true })
    expect(body).toMatchObject({ complete: true, total: 1, selected: 1 })
    const run = cliAgainst({ databaseUrl, url })
    const counted = await run([
      ...['replay', '--destination', 'Webhooks', '--reason', 'expired', '--dry-run'],
    ])
    expect([counted.code, counted.out]).toEqual([0, expect.stringMatching(/^would send [01] call/)])
    const mistaken = ['replay', '--destination', 'Webhooks', '--reason', 'expierd', '--dry-run']
    const refused = await run(mistaken)
    expect([refused.code, refused.err]).toEqual([2, expect.stringContaining('"expired"')])
    const from = ['replay', '--destination', 'Webhooks', '--reason', 'expired', '--rate', '5']
    expect((await run(from)).code).toBe(0)
    const { replays } = (await viewer('GET', path)).body
    expect(replays[0]).toMatchObject({ state: 'running', reasons: ['expired'], types: null })
    await pool.query('update replay set settled = true')
    await pool.query('delete from dead')
  })

  test('no more are open than there are shards', async () => {
    await pool.query(
      `insert into replay (workspace_id, destination_id, actor, state, by, since, until, source_ids,
         rate_per_second, slot, created_at)
       select 1, 2000 + s, 'test', 'paused', 'receivedAt', $1, $1, '{1}', 1, s, $1
         from generate_series(0, 63) as s
        where s not in (select slot from replay where not settled)`,
      [now],
    )
    expect((await admin('POST', path, wish)).body.error.code).toBe('replays_too_many')
  })
})
