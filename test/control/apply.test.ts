import { describe, expect, test } from 'vitest'
import { stringify } from 'yaml'
import { type Applied, applyFile } from '../../src/control/apply.ts'
import { hashOf } from '../../src/control/credential.ts'
import { readFileText } from '../../src/control/file.ts'
import type { ConfigurationFile } from '../../src/control/input.ts'
import { loadConfiguration } from '../../src/control/live.ts'
import { findVersion } from '../../src/control/state.ts'
import { defaultSourceSettings } from '../../src/domain/configuration.ts'
import type { Pool } from '../../src/postgres/sql.ts'
import { aKeyring } from '../support/configuration.ts'
import { cloneDatabase } from '../support/database.ts'

const shop = (over: object = {}): ConfigurationFile => ({
  workspaces: [
    {
      name: 'shop',
      sources: [
        { name: 'web', class: 'server', writeKey: 'wk_shop_web', secretKey: 'sk_shop_web' },
      ],
      destinations: [
        {
          name: 'Webhooks',
          type: 'webhook',
          sources: ['web'],
          sharedSecret: 'very secret',
          historical: true,
          webhooks: [
            {
              url: 'http://127.0.0.1:9999/hook',
              headers: { 'X-Team': 'growth', Authorization: 'Bearer t0p' },
            },
          ],
        },
      ],
      audiences: [
        {
          name: 'Big Spenders',
          destinations: ['Webhooks'],
          syncEvery: '2h30m',
          where: {
            event: { name: 'Order Completed', window: { last: '90d' } },
            count: { op: 'gte', value: 2 },
          },
        },
      ],
      traits: [
        {
          name: 'Orders',
          destinations: ['Webhooks'],
          measure: { event: { name: 'Order Completed' }, count: {} },
        },
      ],
      ...over,
    },
  ],
})

const options = {
  actor: 'test',
  addresses: { allowPrivate: true, allowed: [] },
  keyring: aKeyring,
  dryRun: false,
}

const actionsOf = (applied: Applied) =>
  applied.ok ? applied.entities.map(({ action, name }) => `${action} ${name}`) : applied.problems

const rowsOf = async (pool: Pool) => {
  const { rows } = await pool.query<{ n: string }>(
    `select (select count(*) from workspace) || ' ' || (select count(*) from source) || ' ' ||
            (select count(*) from destination) || ' ' || (select count(*) from audience) || ' ' ||
            (select count(*) from audit_log) as n`,
  )
  return rows[0]?.n
}

describe('applying a file to an empty database', async () => {
  const { pool } = await cloneDatabase()

  test('a dry run tells the whole difference and leaves nothing behind', async () => {
    const version = await findVersion(pool)
    const applied = await applyFile(pool, shop(), { ...options, dryRun: true })
    expect(actionsOf(applied)).toEqual([
      'created shop',
      'created web',
      'created Webhooks',
      'created Big Spenders',
      'created Orders',
    ])
    expect(await rowsOf(pool)).toBe('0 0 0 0 0')
    expect(await findVersion(pool)).toBe(version)
  })

  test('a file with problems anywhere is refused whole, each problem with its path', async () => {
    const file = shop({
      sources: [
        { name: 'web', class: 'server' },
        { name: 'web', class: 'server' },
        { name: 'app' },
      ],
      destinations: [
        { name: 'None', sources: ['web', 'nowhere'], webhooks: [] },
        {
          name: 'Bad',
          webhooks: [{ url: 'ftp://x.test' }, { url: 'http://x.test', headers: { Host: 'y' } }],
        },
      ],
      audiences: [
        { name: '!!!', where: { trait: 'a', op: 'eq', value: 1 }, destinations: ['None', 'Lost'] },
        { name: 'Two', where: { any: [] }, syncEvery: '30s' },
      ],
      traits: [{ name: 'sum' }],
    })
    const applied = await applyFile(pool, file, options)
    const problems = applied.ok ? [] : applied.problems.map(({ code, path }) => `${path} ${code}`)
    const root = '/workspaces/0'
    expect(problems.toSorted()).toEqual([
      `${root}/audiences/0/destinations/1 destination_unknown`,
      `${root}/audiences/0/name key_empty`,
      `${root}/audiences/1/syncEvery sync_every_invalid`,
      `${root}/audiences/1/where/any condition_invalid`,
      `${root}/destinations/0/sources/1 source_unknown`,
      `${root}/destinations/0/webhooks webhooks_missing`,
      `${root}/destinations/1/webhooks/0/url webhook_url_invalid`,
      `${root}/destinations/1/webhooks/1/headers/Host header_reserved`,
      `${root}/sources/1/name name_taken`,
      `${root}/sources/2/class field_missing`,
      `${root}/traits/0/measure field_missing`,
    ])
    expect(await rowsOf(pool)).toBe('0 0 0 0 0')
  })

  test('what it creates is what the stages see', async () => {
    await applyFile(pool, shop(), options)
    const { workspaces, sourceByWriteKey, destinations, audiences } = await loadConfiguration(
      pool,
      aKeyring,
    )
    const workspace = [...workspaces.values()][0]
    const source = sourceByWriteKey.get('wk_shop_web')
    const destination = [...destinations.values()][0]
    expect(workspace?.name).toBe('shop')
    expect(source).toMatchObject({ workspaceId: workspace?.id, class: 'server', enabled: true })
    expect(destination).toMatchObject({
      name: 'Webhooks',
      sharedSecret: 'very secret',
      sourceIds: new Set([source?.id]),
      historical: true,
      historicalAfterMs: 86_400_000,
      webhooks: [
        {
          url: 'http://127.0.0.1:9999/hook',
          headers: { 'X-Team': 'growth', Authorization: 'Bearer t0p' },
        },
      ],
    })
    expect([...audiences.values()]).toMatchObject([
      { key: 'big_spenders', destinationIds: [destination?.id], syncEveryMs: 9_000_000 },
      { kind: 'trait', key: 'orders', destinationIds: [destination?.id] },
    ])
  })

  test('applied again it changes nothing: no version, no audit entry', async () => {
    const [version, rows] = [await findVersion(pool), await rowsOf(pool)]
    const applied = await applyFile(pool, shop(), options)
    expect(actionsOf(applied)).toEqual([
      'unchanged shop',
      'unchanged web',
      'unchanged Webhooks',
      'unchanged Big Spenders',
      'unchanged Orders',
    ])
    expect(await findVersion(pool)).toBe(version)
    expect(await rowsOf(pool)).toBe(rows)
  })

  test('what the file does not name is left alone, field by field', async () => {
    const file = {
      workspaces: [{ name: 'shop', destinations: [{ name: 'Webhooks', historical: false }] }],
    }
    const applied = await applyFile(pool, file, options)
    expect(actionsOf(applied)).toEqual(['unchanged shop', 'changed Webhooks'])
    expect(applied.ok && applied.entities[1]?.changes).toEqual({
      historical: { from: true, to: false },
    })
    const { destinations, audiences, sources } = await loadConfiguration(pool, aKeyring)
    expect([sources.size, destinations.size, audiences.size]).toEqual([1, 1, 2])
    expect([...destinations.values()][0]).toMatchObject({
      sharedSecret: 'very secret',
      webhooks: [{}],
    })
    await applyFile(pool, shop(), options)
  })

  test('a changed secret is told as changed, never shown, in answer and audit log', async () => {
    const changed = {
      workspaces: [
        {
          name: 'shop',
          sources: [{ name: 'web', secretKey: 'sk_other' }],
          destinations: [
            {
              name: 'Webhooks',
              sharedSecret: 'another secret',
              webhooks: [
                { url: 'http://127.0.0.1:9999/hook', headers: { Authorization: 'Bearer n3w' } },
              ],
            },
          ],
        },
      ],
    }
    const applied = await applyFile(pool, changed, options)
    expect(applied.ok && applied.entities.map(({ changes }) => Object.keys(changes))).toEqual([
      [],
      ['secretKey'],
      ['sharedSecret', 'webhooks'],
    ])
    const { rows } = await pool.query<{ log: string }>('select changes::text as log from audit_log')
    const told = JSON.stringify(applied) + rows.map(({ log }) => log).join()
    expect(told).not.toMatch(/sk_shop|sk_other|very secret|another secret|t0p|n3w/)
  })

  test('keys the file does not give are made and shown once', async () => {
    const file = {
      workspaces: [{ name: 'made', sources: [{ name: 'app', class: 'mobile' as const }] }],
    }
    const dry = await applyFile(pool, file, { ...options, dryRun: true })
    expect(dry.ok && dry.entities[1]?.generated).toEqual({})
    const applied = await applyFile(pool, file, options)
    const made = applied.ok ? applied.entities[1]?.generated : null
    const { rows } = await pool.query<{ key: string; hash: Buffer }>(
      "select write_key as key, secret_key_hash as hash from source where name = 'app'",
    )
    expect(made).toEqual({ writeKey: rows[0]?.key, secretKey: expect.stringMatching(/^sk_/) })
    expect(rows[0]?.hash).toEqual(hashOf(made?.secretKey ?? ''))
    const again = await applyFile(pool, file, options)
    expect(again.ok && again.entities[1]).toMatchObject({ action: 'unchanged', generated: {} })
  })

  describe('with settings, filters and a plan', () => {
    const trackingPlan = {
      mode: 'omit' as const,
      events: { 'Order Completed': { required: ['Order Total'] } },
    }
    const block = { kind: 'block' as const, paths: ['traits.email'] }
    const file = (over: { source?: object; destination?: object; workspace?: object } = {}) => ({
      workspaces: [
        {
          name: 'settled',
          sources: [{ name: 'app', class: 'web' as const, writeKey: 'wk_settled', ...over.source }],
          destinations: [
            { name: 'CRM', webhooks: [{ url: 'http://127.0.0.1:9/crm' }], ...over.destination },
          ],
          ...over.workspace,
        },
      ],
    })
    const changed = (applied: Applied) =>
      applied.ok
        ? applied.entities
            .filter(({ action }) => action === 'changed')
            .map(({ name, changes }) => [name, changes])
        : applied.problems

    test('a dry run shows the difference, applying makes it, and again there is none', async () => {
      await applyFile(pool, file(), options)
      const wish = file({
        workspace: { grandfathered: true },
        source: { ipPolicy: 'drop', allowedOrigins: ['HTTPS://Shop.example'], trackingPlan },
        destination: { filters: [block] },
      })
      const difference = [
        ['settled', { grandfathered: { from: false, to: true } }],
        [
          'app',
          {
            ipPolicy: { from: 'keep', to: 'drop' },
            allowedOrigins: { from: [], to: ['https://shop.example'] },
            trackingPlan: { from: null, to: { ...trackingPlan, unplanned: 'forbid' } },
          },
        ],
        ['CRM', { filters: { from: [], to: [block] } }],
      ]
      expect(changed(await applyFile(pool, wish, { ...options, dryRun: true }))).toEqual(difference)
      expect(changed(await applyFile(pool, wish, options))).toEqual(difference)
      expect(changed(await applyFile(pool, wish, options))).toEqual([])
    })

    test('what the file does not set is left alone, and null takes a setting back', async () => {
      expect(changed(await applyFile(pool, file(), options))).toEqual([])
      const back = file({ source: { ipPolicy: null, allowedOrigins: null, trackingPlan: null } })
      await applyFile(pool, back, options)
      const { sourceByWriteKey, destinations } = await loadConfiguration(pool, aKeyring)
      expect(sourceByWriteKey.get('wk_settled')?.settings).toEqual(defaultSourceSettings)
      expect([...destinations.values()].find(({ name }) => name === 'CRM')?.filters).toEqual([
        block,
      ])
    })

    test('what is wrong with them is told with its place in the file', async () => {
      const wrong = file({
        source: {
          allowedOrigins: ['shop.example'],
          trackingPlan: { ...trackingPlan, events: { A: { type: 'objekt' } } },
        },
        destination: { filters: [{ kind: 'sample' }] },
      })
      const applied = await applyFile(pool, wrong, options)
      expect(applied.ok ? [] : applied.problems.map(({ code, path }) => `${path} ${code}`)).toEqual(
        [
          '/workspaces/0/sources/0/allowedOrigins/0 origin_invalid',
          '/workspaces/0/sources/0/trackingPlan/events/A tracking_plan_invalid',
          '/workspaces/0/destinations/0/filters/0/rate filter_invalid',
        ],
      )
    })
  })

  test('what others refer to may stand after them, and a circle is refused', async () => {
    const counted = { event: { name: 'Order Completed' }, count: {} }
    const many = { computed: 'orders_made', op: 'gte', value: 2 }
    const traits = [{ name: 'Orders Made', measure: counted }]
    const referring = { any: [{ audience: 'chosen_few', in: true }, many] }
    const audiences = [
      { name: 'All Of Them', where: "audience('friends') OR audience('chosen_few')" },
      { name: 'Friends', where: referring },
      { name: 'Chosen Few', where: many },
    ]
    const applied = await applyFile(
      pool,
      { workspaces: [{ name: 'club', audiences, traits }] },
      options,
    )
    expect(applied).toMatchObject({
      ok: true,
      entities: ['club', 'Orders Made', 'Chosen Few', 'Friends', 'All Of Them'].map((name) => ({
        name,
        action: 'created',
      })),
    })
    const circle = [
      { name: 'Left', where: { audience: 'right', in: true } },
      { name: 'Right', where: { audience: 'left', in: true } },
    ]
    const refused = await applyFile(
      pool,
      { workspaces: [{ name: 'round', audiences: circle }] },
      options,
    )
    expect(refused).toMatchObject({ ok: false, problems: [{ code: 'condition_invalid' }, {}] })
  })

  test('a hundred audiences and two appliers at once end in one of each', async () => {
    const audiences = Array.from({ length: 100 }, (_, index) => ({
      name: `Group ${index}`,
      where: { trait: 'plan', op: 'eq', value: index },
    }))
    const file = { workspaces: [{ name: 'crowd', audiences }] }
    const both = await Promise.all([applyFile(pool, file, options), applyFile(pool, file, options)])
    const created = both.flatMap((applied) =>
      applied.ok ? applied.entities.filter(({ action }) => action === 'created') : [],
    )
    expect(created).toHaveLength(101)
  })
})

describe('reading a file', () => {
  test('YAML says the same as JSON', () => {
    const file = shop()
    expect(readFileText(stringify(file))).toEqual({ file })
    expect(readFileText(JSON.stringify(file, null, 2))).toEqual({ file })
  })

  test('settings, plans and filters are read as written, null too', () => {
    const file = shop({
      grandfathered: true,
      sources: [
        {
          name: 'web',
          ...{ ipPolicy: null, callBytesMax: 2_048, allowedOrigins: [] },
          trackingPlan: { mode: 'report', events: { 'Order/Completed': { type: 'object' } } },
        },
      ],
      destinations: [
        {
          name: 'CRM',
          filters: [{ kind: 'drop', if: { where: { prop: 'a', op: 'exists' } } }],
        },
      ],
    })
    expect(readFileText(stringify(file))).toEqual({ file })
  })

  test('what YAML would take for a date or a yes stays text', () => {
    const text = 'workspaces:\n  - name: 2026-01-01\n    sources: [{name: yes, class: web}]\n'
    const read = readFileText(text)
    expect(read).toEqual({
      file: { workspaces: [{ name: '2026-01-01', sources: [{ name: 'yes', class: 'web' }] }] },
    })
  })

  test.each([
    ['{ "workspaces": [', 'file_invalid', ''],
    ['workspaces: [', 'file_invalid', ''],
    ['workspaces: []\nworkspaces: []', 'file_invalid', ''],
    ['', 'field_invalid', ''],
    ['{}', 'field_missing', '/workspaces'],
    ['{"workspaces":[{"name":"a","sorces":[]}]}', 'field_unknown', '/workspaces/0/sorces'],
    ['{"workspaces":[{"name":1}]}', 'field_invalid', '/workspaces/0/name'],
    [
      '{"workspaces":[{"name":"a","sources":[{"name":"b","ipPolcy":"drop"}]}]}',
      'field_unknown',
      '/workspaces/0/sources/0/ipPolcy',
    ],
    [
      '{"workspaces":[{"name":"a","destinations":[{"name":"b","filters":[{"kind":"keep"}]}]}]}',
      'field_invalid',
      '/workspaces/0/destinations/0/filters/0/kind',
    ],
    [
      '{"workspaces":[{"name":"a","sources":[{"name":"b","class":"tv"}]}]}',
      'field_invalid',
      '/workspaces/0/sources/0/class',
    ],
  ])('%j is refused with %s at %j', (text, code, path) => {
    const read = readFileText(text)
    expect('problems' in read && read.problems).toMatchObject([{ code, path }])
  })
})
