import { describe, expect, test } from 'vitest'
import { readState } from '../../src/control/state.ts'
import { defaultSourceSettings } from '../../src/domain/configuration.ts'
import { startTestAdmin } from './start.ts'

const hook = { url: 'http://127.0.0.1:9/hook' }
const [sources, destinations, workspaces] = ['sources', 'destinations', 'workspaces'].map(
  (kind) => `/admin/v1/${kind}`,
) as [string, string, string]

const plan = {
  mode: 'block',
  events: {
    'Order Completed': {
      type: 'object',
      properties: { 'Order Total': { type: 'number' } },
      required: ['Order Total'],
    },
  },
  unplanned: 'forbid',
}

const settings = {
  ipPolicy: 'truncate',
  trustClientIp: true,
  ignoreSentAt: true,
  allowedOrigins: ['https://shop.example', 'http://localhost:3000', 'capacitor://localhost'],
  callBytesMax: 1_048_576,
  bodyBytesMax: 4_194_304,
  batchCallsMax: 10_000,
  callsPerSecondMax: 500,
  trackingPlan: plan,
}

describe('the settings of a source', async () => {
  const { admin, viewer, pool } = await startTestAdmin()
  await admin('POST', workspaces, { name: 'shop' })
  const make = async (name: string, over: object = {}) =>
    (await admin('POST', sources, { name, class: 'web', ...over })).body
  const changesOf = async () =>
    (await admin('GET', '/admin/v1/audit?limit=1')).body.entries[0].changes

  test('are given flat when it is created, shown to viewers too, and are what the stages see', async () => {
    const made = await make('all', settings)
    expect(made).toMatchObject(settings)
    expect((await viewer('GET', `${sources}/${made.id}`)).body).toMatchObject(settings)
    expect((await readState(pool)).sources.get(made.id)?.settings).toEqual(settings)
  })

  test('change one by one, null takes one back, and the audit log shows just what changed', async () => {
    const { id } = await make('one', settings)
    const path = `${sources}/${id}`
    const changed = await admin('PATCH', path, { ipPolicy: 'drop', callBytesMax: 2_048 })
    expect(changed.body).toMatchObject({ ...settings, ipPolicy: 'drop', callBytesMax: 2_048 })
    expect(await changesOf()).toEqual({
      ipPolicy: { from: 'truncate', to: 'drop' },
      callBytesMax: { from: 1_048_576, to: 2_048 },
    })
    const taken = Object.fromEntries(Object.keys(settings).map((name) => [name, null]))
    const back = await admin('PATCH', path, taken)
    expect(back.status).toBe(200)
    expect(back.body).toMatchObject(defaultSourceSettings)
    const { rows } = await pool.query('select settings from source where id = $1', [id])
    expect(rows).toEqual([{ settings: defaultSourceSettings }])
  })

  test('origins are kept as browsers write them, each once', async () => {
    const made = await make('origins', {
      allowedOrigins: [
        'HTTPS://Shop.Example:443',
        'https://shop.example',
        'https://bücher.example',
      ],
    })
    expect(made.allowedOrigins).toEqual(['https://shop.example', 'https://xn--bcher-kva.example'])
  })

  test('of a changed tracking plan the audit log shows only the events that changed', async () => {
    const events = { A: { type: 'object' }, B: { required: ['x'] } }
    const { id } = await make('planned', { trackingPlan: { mode: 'report', events } })
    const trackingPlan = { mode: 'omit', events: { ...events, B: {}, C: {} } }
    await admin('PATCH', `${sources}/${id}`, { trackingPlan })
    expect(await changesOf()).toEqual({
      trackingPlan: {
        from: { mode: 'report', events: { B: { required: ['x'] } }, unplanned: 'forbid' },
        to: { mode: 'omit', events: { B: {}, C: {} }, unplanned: 'forbid' },
      },
    })
  })

  test('schemas of draft 7 and 2020-12 are taken, also with one $id and with references within', async () => {
    const tree = { $id: 'https://x.test/tree', properties: { child: { $ref: '#' } } }
    const seven = {
      $schema: 'http://json-schema.org/draft-07/schema#',
      definitions: { sku: { type: 'string' } },
      properties: { sku: { $ref: '#/definitions/sku' } },
    }
    const newest = {
      $schema: 'https://json-schema.org/draft/2020-12/schema',
      $defs: { sku: { type: 'string' } },
      properties: { sku: { $ref: '#/$defs/sku' } },
    }
    const events = { Tree: tree, 'Tree too': tree, Seven: seven, Newest: newest, constructor: {} }
    const trackingPlan = { mode: 'block', events, unplanned: 'allow' }
    expect((await make('schemas', { trackingPlan })).trackingPlan).toEqual(trackingPlan)
  })

  test.each<[object, string, string]>([
    [{ ipPolicy: 'hash' }, 'field_invalid', '/ipPolicy'],
    [{ trustClientIp: 'yes' }, 'field_invalid', '/trustClientIp'],
    [{ callBytesMax: 1_023 }, 'field_invalid', '/callBytesMax'],
    [{ callBytesMax: 1_048_577 }, 'field_invalid', '/callBytesMax'],
    [{ bodyBytesMax: 4_194_305 }, 'field_invalid', '/bodyBytesMax'],
    [{ batchCallsMax: 10_001 }, 'field_invalid', '/batchCallsMax'],
    [{ batchCallsMax: 0 }, 'field_invalid', '/batchCallsMax'],
    [{ callsPerSecondMax: 0 }, 'field_invalid', '/callsPerSecondMax'],
    [{ callsPerSecondMax: 1.5 }, 'field_invalid', '/callsPerSecondMax'],
    [{ callsPerSecond: 5 }, 'field_unknown', '/callsPerSecond'],
    [{ allowedOrigins: ['https://a.test/'] }, 'origin_invalid', '/allowedOrigins/0'],
    [{ allowedOrigins: ['https://a.test', 'a.test'] }, 'origin_invalid', '/allowedOrigins/1'],
    [{ allowedOrigins: ['*'] }, 'origin_invalid', '/allowedOrigins/0'],
    [{ allowedOrigins: ['https://*.a.test'] }, 'origin_invalid', '/allowedOrigins/0'],
    [{ allowedOrigins: ['https://u:p@a.test'] }, 'origin_invalid', '/allowedOrigins/0'],
    [
      { allowedOrigins: Array.from({ length: 101 }, (_, at) => `https://a${at}.test`) },
      'origins_too_many',
      '/allowedOrigins',
    ],
    [{ trackingPlan: [] }, 'field_invalid', '/trackingPlan'],
    [{ trackingPlan: { events: {} } }, 'field_missing', '/trackingPlan/mode'],
    [{ trackingPlan: { ...plan, mode: 'ban' } }, 'field_invalid', '/trackingPlan/mode'],
    [{ trackingPlan: { ...plan, unplaned: 'allow' } }, 'field_unknown', '/trackingPlan/unplaned'],
    [{ trackingPlan: { ...plan, events: { A: true } } }, 'field_invalid', '/trackingPlan/events/A'],
    [
      { trackingPlan: { ...plan, events: { 'A/B': { type: 'objekt' } } } },
      'tracking_plan_invalid',
      '/trackingPlan/events/A~1B',
    ],
    [
      { trackingPlan: { ...plan, events: { A: { pattern: '(' } } } },
      'tracking_plan_invalid',
      '/trackingPlan/events/A',
    ],
    [
      { trackingPlan: { ...plan, events: { A: { $ref: 'https://evil.test/schema' } } } },
      'tracking_plan_invalid',
      '/trackingPlan/events/A',
    ],
    [
      { trackingPlan: { ...plan, events: { A: { $ref: '#/nowhere' } } } },
      'tracking_plan_invalid',
      '/trackingPlan/events/A',
    ],
    [
      { trackingPlan: { ...plan, events: { A: { $async: true } } } },
      'tracking_plan_invalid',
      '/trackingPlan/events/A',
    ],
    [
      {
        trackingPlan: { ...plan, events: { A: { properties: { b: { $id: 'https://b.test' } } } } },
      },
      'tracking_plan_invalid',
      '/trackingPlan/events/A',
    ],
    [
      { trackingPlan: { ...plan, events: { A: { enum: ['x'.repeat(524_288)] } } } },
      'tracking_plan_too_large',
      '/trackingPlan',
    ],
    [
      {
        trackingPlan: {
          ...plan,
          events: Object.fromEntries(Array.from({ length: 1_001 }, (_, at) => [`E${at}`, {}])),
        },
      },
      'tracking_plan_too_large',
      '/trackingPlan',
    ],
  ])('what is wrong is refused and told: %#', async (over, code, path) => {
    const answer = await admin('POST', sources, { name: 'refused', class: 'web', ...over })
    expect(answer.status).toBe(400)
    const told = answer.body.error.problems.map((problem: { code: string; path: string }) => [
      problem.code,
      problem.path,
    ])
    expect(told).toEqual([[code, path]])
    expect([...(await readState(pool)).sources.values()].map(({ name }) => name)).not.toContain(
      'refused',
    )
  })

  test('a limit that is refused says its bounds, and that null is one', async () => {
    const { body } = await admin('POST', sources, { name: 'r', class: 'web', callBytesMax: 1 })
    expect(body.error.message).toBe('/callBytesMax must be >= 1024, or be null')
  })

  test('a schema that was saved cannot spoil the check of the next one', async () => {
    const meta = { $id: 'https://json-schema.org/draft/2020-12/schema', type: 'string' }
    const both = { mode: 'block', events: { Meta: meta, Next: { type: 'objekt' } } }
    const answer = await admin('POST', sources, { name: 'm', class: 'web', trackingPlan: both })
    expect(answer.body.error.problems).toMatchObject([{ path: '/trackingPlan/events/Next' }])
  })
})

describe('the filters of a destination', async () => {
  const { admin, viewer, pool } = await startTestAdmin()
  await admin('POST', workspaces, { name: 'shop' })
  const where = { prop: 'price', op: 'gte', value: 100 }
  const filters = [
    { kind: 'block', paths: ['properties.Order Total', 'traits.email', 'context'] },
    { kind: 'sample', rate: 0.25 },
    { kind: 'drop', if: { types: ['page'], events: ['Order Completed'], where } },
    { kind: 'allow', paths: ['properties'], if: { types: ['track'] } },
  ]

  test('are given as a list, replaced whole, and shown as they were given', async () => {
    const made = await admin('POST', destinations, { name: 'A', webhooks: [hook], filters })
    expect(made.status).toBe(201)
    const path = `${destinations}/${made.body.id}`
    expect((await viewer('GET', path)).body.filters).toEqual(filters)
    expect((await readState(pool)).destinations.get(made.body.id)?.filters).toEqual(filters)
    await admin('PATCH', path, { name: 'B' })
    expect((await admin('GET', path)).body.filters).toEqual(filters)
    const [, sample] = filters
    expect((await admin('PATCH', path, { filters: [sample] })).body.filters).toEqual([sample])
    const [entry] = (await admin('GET', '/admin/v1/audit?limit=1')).body.entries
    expect(entry.changes).toEqual({ filters: { from: filters, to: [sample] } })
  })

  test.each<[unknown, string, string]>([
    [{ kind: 'sample', rate: 0.5 }, 'field_invalid', '/filters'],
    [[{ kind: 'keep' }], 'field_invalid', '/filters/0/kind'],
    [[{ kind: 'sample', rate: 1.1 }], 'field_invalid', '/filters/0/rate'],
    [[{ kind: 'sample' }], 'filter_invalid', '/filters/0/rate'],
    [[{ kind: 'drop' }], 'filter_invalid', '/filters/0/if'],
    [[{ kind: 'drop', if: {} }], 'filter_invalid', '/filters/0/if'],
    [[{ kind: 'drop', if: { types: ['delete'] } }], 'field_invalid', '/filters/0/if/types/0'],
    [[{ kind: 'drop', if: { types: [] } }], 'filter_invalid', '/filters/0/if/types'],
    [[{ kind: 'drop', if: { event: 'x' } }], 'field_unknown', '/filters/0/if/event'],
    [[{ kind: 'drop', if: { types: ['page'] }, rate: 1 }], 'filter_invalid', '/filters/0/rate'],
    [[{ kind: 'block' }], 'filter_invalid', '/filters/0/paths'],
    [[{ kind: 'block', paths: ['price'] }], 'filter_invalid', '/filters/0/paths/0'],
    [[{ kind: 'block', paths: ['properties.'] }], 'filter_invalid', '/filters/0/paths/0'],
    [[{ kind: 'allow', paths: ['context', 'userId'] }], 'filter_invalid', '/filters/0/paths/1'],
    [
      [{ kind: 'drop', if: { where: { all: [where, { prop: 'a', op: 'like' }] } } }],
      'filter_invalid',
      '/filters/0/if/where/all/1/op',
    ],
    [
      Array.from({ length: 51 }, () => ({ kind: 'sample', rate: 1 })),
      'filters_too_many',
      '/filters',
    ],
    [
      [{ kind: 'drop', if: { events: Array.from({ length: 600 }, () => 'x'.repeat(500)) } }],
      'filters_too_many',
      '/filters',
    ],
  ])('what cannot be applied is refused and told: %#', async (refused, code, path) => {
    const body = { name: 'refused', webhooks: [hook], filters: refused }
    const answer = await admin('POST', destinations, body)
    expect(answer.status).toBe(400)
    expect(answer.body.error.problems).toMatchObject([{ code, path }])
  })
})

test('a workspace is put on a grandfathered plan, and taken off it', async () => {
  const { admin, pool } = await startTestAdmin()
  const made = await admin('POST', workspaces, { name: 'shop', grandfathered: true })
  expect(made.body).toMatchObject({ regionalAccess: false, grandfathered: true })
  const path = `${workspaces}/${made.body.id}`
  expect((await admin('PATCH', path, { regionalAccess: true })).body.grandfathered).toBe(true)
  await admin('PATCH', path, { grandfathered: false })
  expect((await readState(pool)).workspaces.get(made.body.id)?.grandfathered).toBe(false)
})
