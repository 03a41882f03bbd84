import { describe, expect, test } from 'vitest'
import { entriesOf, monthOf, sightings, usageKeyOf } from '../../src/domain/usage.ts'
import type { Pool } from '../../src/postgres/sql.ts'
import { cliAgainst } from '../support/run-cli.ts'
import { startTestAdmin } from './start.ts'

const now = new Date('2026-03-15T12:30:00Z')

const addCalls = (pool: Pool, rows: readonly (readonly [string, number, string, number])[]) =>
  pool.query(
    `insert into usage_call
     select 1, s, d::date, t, w || 'calls/' || w, c
       from unnest($1::text[], $2::int[], $3::text[], $4::bigint[]) with ordinality as u(d, s, t, c, w)`,
    [0, 1, 2, 3].map((column) => rows.map((row) => row[column])),
  )

const addSightings = (pool: Pool, month: string, ids: readonly [0 | 1 | 2, string][]) =>
  pool.query('insert into usage_sighting (workspace_id, month, entries) values (1, $1, $2)', [
    monthOf(Date.parse(`${month}-01`)),
    entriesOf(
      usageKeyOf('key'),
      ids.map(([kind, id]) => ({ kind, text: `1:${kind === 0 ? 0 : 1}:${id}` })),
    ),
  ])

describe('usage', async () => {
  const { admin, viewer, pool, url, databaseUrl } = await startTestAdmin({ clock: () => now })
  const run = cliAgainst({ databaseUrl, url })
  await admin('POST', '/admin/v1/workspaces', { name: 'shop' })
  await admin('POST', '/admin/v1/sources', { name: '=web, "new"', class: 'web' })
  const { user, anonymous, tied } = sightings
  await addCalls(pool, [
    ['2026-02-27', 1, 'track', 5],
    ['2026-02-28', 1, 'track', 2],
    ['2026-03-01', 1, 'track', 3],
    ['2026-03-01', 1, 'track', 4],
    ['2026-03-01', 1, 'page', 1],
    ['2026-03-02', 7, 'track', 10],
  ])
  await addSightings(pool, '2026-02', [[user, 'u1']])
  await addSightings(pool, '2026-03', [
    [user, 'u1'],
    [user, 'u2'],
    [anonymous, 'a1'],
    [anonymous, 'a2'],
    [tied, 'a3'],
  ])
  await addSightings(pool, '2026-03', [
    [user, 'u1'],
    [tied, 'a1'],
    [anonymous, 'a3'],
  ])
  const march = {
    month: '2026-03',
    calls: 18,
    trackedUsers: 3,
    userIds: 2,
    anonymousIds: 1,
    bySource: [
      { sourceId: 1, source: '=web, "new"', type: 'page', calls: 1 },
      { sourceId: 1, source: '=web, "new"', type: 'track', calls: 7 },
      { sourceId: 7, source: null, type: 'track', calls: 10 },
    ],
  }

  test('is that of this month when nothing is asked for', async () => {
    expect((await viewer('GET', '/admin/v1/usage')).body).toEqual({
      workspaceId: 1,
      from: '2026-03-01',
      until: '2026-03-16',
      days: [
        { day: '2026-03-01', sourceId: 1, source: '=web, "new"', type: 'page', calls: 1 },
        { day: '2026-03-01', sourceId: 1, source: '=web, "new"', type: 'track', calls: 7 },
        { day: '2026-03-02', sourceId: 7, source: null, type: 'track', calls: 10 },
      ],
      months: [march],
    })
  })

  test('of days that begin within a month shows that month whole', async () => {
    const path = '/admin/v1/usage?from=2026-02-28&until=2026-03-02&workspaceId=1'
    const { body } = await admin('GET', path)
    expect(body.days.map(({ day, calls }: { day: string; calls: number }) => [day, calls])).toEqual(
      [
        ['2026-02-28', 2],
        ['2026-03-01', 1],
        ['2026-03-01', 7],
      ],
    )
    expect(body.months).toMatchObject([{ month: '2026-02', calls: 7, trackedUsers: 1 }, march])
  })

  test('of a span without calls is empty, month by month', async () => {
    const { body } = await admin('GET', '/admin/v1/usage?from=2025-12-31&until=2026-01-02')
    expect(body.days).toEqual([])
    expect(body.months).toMatchObject([
      { month: '2025-12', calls: 0, trackedUsers: 0, bySource: [] },
      { month: '2026-01', calls: 0, trackedUsers: 0 },
    ])
  })

  test.each([
    ['from=2026-02-30', '/from'],
    ['from=march', '/from'],
    ['from=2026-03-02&until=2026-03-02', '/until'],
    ['from=2024-01-01&until=2026-01-01', '/from'],
    ['days=1', '/days'],
  ])('is refused for %s', async (query, path) => {
    const { status, body } = await admin('GET', `/admin/v1/usage?${query}`)
    expect(status).toBe(400)
    expect(body.error.problems).toMatchObject([{ path }])
    expect((await admin('GET', `/admin/v1/usage.csv?${query}`)).status).toBe(400)
  })

  test('as CSV has one row a figure, and no name can become a formula', async () => {
    const answer = await viewer('GET', '/admin/v1/usage.csv?from=2026-03-02&until=2026-03-03')
    expect(answer.headers.get('content-type')).toBe('text/csv; charset=utf-8')
    expect(answer.body.split('\r\n')).toEqual([
      'period,figure,source_id,source,type,amount',
      '2026-03-02,calls,7,,track,10',
      `2026-03,calls,1,"'=web, ""new""",page,1`,
      `2026-03,calls,1,"'=web, ""new""",track,7`,
      '2026-03,calls,7,,track,10',
      '2026-03,tracked_user_ids,,,,2',
      '2026-03,tracked_anonymous_ids,,,,1',
      '2026-03,tracked_users,,,,3',
      '',
    ])
  })

  test('is shown by the command line, and exported', async () => {
    const shown = await run(['usage', '--month', '2026-03'])
    expect(shown).toMatchObject({ code: 0, err: '' })
    expect(shown.lines[0]).toBe('MONTH    CALLS  TRACKED USERS  USER IDS  ANONYMOUS IDS')
    expect(shown.lines[1]).toBe('2026-03  18     3              2         1')
    expect(shown.lines).toContain('2026-03-02  7 (deleted)  track  10')
    const csv = await run(['usage', '--from', '2026-03-02', '--until', '2026-03-03', '--csv'])
    expect(csv.lines).toHaveLength(8)
    expect(csv.lines[1]).toBe('2026-03-02,calls,7,,track,10')
    const json = await run(['usage', '--json', '--workspace', 'shop'])
    expect(JSON.parse(json.out).months).toEqual([march])
    expect((await run(['usage', '--month', 'March'])).code).toBe(2)
    expect((await run(['usage', '--month', '2026-03', '--from', '2026-03-01'])).code).toBe(2)
  })
})

describe('the pipeline', async () => {
  const { admin, viewer, pool, url, databaseUrl } = await startTestAdmin({ clock: () => now })
  const run = cliAgainst({ databaseUrl, url })
  await admin('POST', '/admin/v1/workspaces', { name: 'shop' })
  await admin('POST', '/admin/v1/sources', { name: 'web', class: 'web' })
  await admin('POST', '/admin/v1/sources', { name: 'app', class: 'mobile' })
  const webhooks = [{ url: 'http://127.0.0.1:9/hook' }]
  await admin('POST', '/admin/v1/destinations', { name: 'Webhooks', sourceIds: [1], webhooks })
  await pool.query(
    `insert into pipeline_count values
       ('2026-03-15T12:00Z', 1, 0, 'received', 'track', '', 5),
       ('2026-03-15T12:00Z', 1, 0, 'appended', 'track', '', 3),
       ('2026-03-15T12:00Z', 1, 0, 'rejected', 'track', 'too_deep', 1),
       ('2026-03-15T12:00Z', 1, 0, 'filtered', 'track', 'plan_violated', 1),
       ('2026-03-15T12:00Z', 1, 1, 'filtered', 'track', 'sampled', 2),
       ('2026-03-15T11:00Z', 1, 0, 'received', 'track', '', 7),
       ('2026-03-15T11:00Z', 2, 0, 'received', 'page', '', 4)`,
  )
  const counted = (body: { counts: readonly Record<string, unknown>[] }) =>
    body.counts.map(({ source, destination, step, reason, calls }) =>
      [source, destination, step, reason, calls].filter((part) => part !== null).join(' '),
    )

  test('shows the steps of a source in their order, hours added up', async () => {
    const { body } = await viewer('GET', '/admin/v1/pipeline?sourceId=1')
    expect(counted(body)).toEqual([
      'web received 12',
      'web rejected too_deep 1',
      'web filtered plan_violated 1',
      'web appended 3',
      'web Webhooks filtered sampled 2',
    ])
    expect(body.since).toBe('2026-03-14T13:00:00.000Z')
  })

  test('shows all sources, and no more hours than asked for', async () => {
    const all = await admin('GET', '/admin/v1/pipeline')
    expect(counted(all.body)).toContain('app received 4')
    const { body } = await admin('GET', '/admin/v1/pipeline?hours=1')
    expect(body.since).toBe('2026-03-15T12:00:00.000Z')
    expect(counted(body)).toContain('web received 5')
    expect(counted(body)).not.toContain('app received 4')
  })

  test('is refused for a source there is not, and for too many hours', async () => {
    expect((await admin('GET', '/admin/v1/pipeline?sourceId=9')).status).toBe(404)
    expect((await admin('GET', '/admin/v1/pipeline?hours=721')).status).toBe(400)
  })

  test('is shown by the command line', async () => {
    const shown = await run(['pipeline', '--source', 'web', '--hours', '1'])
    expect(shown).toMatchObject({ code: 0, err: '' })
    expect(shown.lines[0]).toBe('SOURCE  DESTINATION  STEP      TYPE   REASON         CALLS')
    expect(shown.lines).toContain('web     Webhooks     filtered  track  sampled        2')
    expect((await run(['pipeline', '--source', 'nowhere'])).code).toBe(1)
  })
})
