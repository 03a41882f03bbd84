import { describe, expect, test } from 'vitest'
import { hashOf } from '../../src/control/credential.ts'
import {
  defaultDestinationSettings,
  defaultSourceSettings,
  defaultWebhook,
} from '../../src/domain/configuration.ts'
import { startTestAdmin } from './start.ts'

const hook = { url: 'http://127.0.0.1:9/hook', headers: { 'X-Team': 'growth' } }
const where = { event: { name: 'Order Completed' }, count: { op: 'gte', value: 2 } }

describe('configuring over the admin API', async () => {
  const { admin, viewer, pool, lines } = await startTestAdmin()
  const shop = (await admin('POST', '/admin/v1/workspaces', { name: 'shop' })).body

  test('a source is created with keys, changed, listed and deleted', async () => {
    const made = await admin('POST', '/admin/v1/sources', { name: 'web', class: 'web' })
    expect(made.status).toBe(201)
    expect(made.body).toEqual({
      id: expect.any(Number),
      workspaceId: shop.id,
      name: 'web',
      class: 'web',
      writeKey: expect.stringMatching(/^wk_/),
      secretKey: expect.stringMatching(/^sk_/),
      enabled: true,
      ...defaultSourceSettings,
    })
    const { id, secretKey, ...shown } = made.body
    const path = `/admin/v1/sources/${id}`
    expect((await admin('GET', path)).body).toEqual({ id, ...shown })
    const changed = await admin('PATCH', path, { enabled: false, class: 'mobile' })
    expect(changed.body).toEqual({ id, ...shown, enabled: false, class: 'mobile' })
    const rotated = await admin('PATCH', path, { secretKey: 'sk_mine' })
    expect(rotated.body.secretKey).toBe('sk_mine')
    const { rows } = await pool.query('select secret_key_hash as hash from source where id = $1', [
      id,
    ])
    expect(rows).toEqual([{ hash: hashOf('sk_mine') }])
    expect((await admin('GET', '/admin/v1/sources')).body.sources).toHaveLength(1)
    expect((await admin('DELETE', path)).status).toBe(204)
    expect((await admin('GET', path)).status).toBe(404)
    expect((await admin('DELETE', path)).status).toBe(404)
    expect(secretKey).not.toBe('sk_mine')
  })

  test('a destination is created, changed and shown without its secret', async () => {
    const source = (await admin('POST', '/admin/v1/sources', { name: 'app', class: 'server' })).body
    const made = await admin('POST', '/admin/v1/destinations', {
      name: 'Webhooks',
      sourceIds: [source.id],
      sharedSecret: 'hush',
      webhooks: [hook],
    })
    expect(made.status).toBe(201)
    expect(made.body).toEqual({
      id: expect.any(Number),
      workspaceId: shop.id,
      name: 'Webhooks',
      type: 'webhook',
      enabled: true,
      sourceIds: [source.id],
      signed: true,
      historical: true,
      historicalAfter: '1d',
      filters: [],
      ...defaultDestinationSettings,
      nextSecretAt: null,
      webhooks: [{ ...defaultWebhook, url: hook.url, headers: { 'X-Team': '(hidden)' } }],
    })
    const path = `/admin/v1/destinations/${made.body.id}`
    const changed = await admin('PATCH', path, { historicalAfter: '36h', enabled: false })
    expect(changed.body).toEqual({ ...made.body, historicalAfter: '1d12h', enabled: false })
    const other = { url: 'http://127.0.0.1:9/other' }
    const unsigned = await admin('PATCH', path, { sharedSecret: null, webhooks: [hook, other] })
    const urls = [{ url: hook.url }, { url: other.url }]
    expect(unsigned.body).toMatchObject({ signed: false, webhooks: urls })
    for (const client of [admin, viewer])
      expect((await client('GET', path)).body.webhooks[0].headers).toEqual({ 'X-Team': '(hidden)' })
    await admin('DELETE', `/admin/v1/sources/${source.id}`)
    expect((await admin('GET', path)).body.sourceIds).toEqual([])
    expect((await admin('DELETE', path)).status).toBe(204)
  })

  test('an audience keeps its key when it is renamed, and after it is deleted nobody else gets it', async () => {
    const destination = (
      await admin('POST', '/admin/v1/destinations', { name: 'Hooks', webhooks: [hook] })
    ).body
    const made = await admin('POST', '/admin/v1/audiences', {
      name: 'Big Spenders',
      where,
      destinationIds: [destination.id],
    })
    expect(made.status).toBe(201)
    expect(made.body).toEqual({
      id: expect.any(Number),
      workspaceId: shop.id,
      name: 'Big Spenders',
      key: 'big_spenders',
      where,
      text: expect.any(String),
      timezone: 'UTC',
      scope: 'user',
      includeAnonymous: true,
      retractOnDelete: false,
      entryEvents: false,
      destinationIds: [destination.id],
      syncEvery: '2h30m',
      state: 'backfilling',
      members: 0,
      anonymousMembers: 0,
    })
    const path = `/admin/v1/audiences/${made.body.id}`
    const renamed = await admin('PATCH', path, { name: 'Whales', syncEvery: '1m' })
    expect(renamed.body).toEqual({ ...made.body, name: 'Whales', syncEvery: '1m' })
    const create = (name: string) => admin('POST', '/admin/v1/audiences', { name, where })
    expect(await create('big spenders!')).toMatchObject({
      status: 409,
      body: { error: { code: 'key_taken', problems: [{ path: '/name' }] } },
    })
    expect((await create('Whales')).body.error.code).toBe('name_taken')
    expect((await admin('DELETE', path)).status).toBe(204)
    expect((await create('Big Spenders')).body.error.code).toBe('key_taken')
  })

  test('a computed trait is made, changed and deleted, and shares its keys with audiences', async () => {
    const path = '/admin/v1/traits'
    const measure = { event: { name: 'Order Completed' }, count: {} }
    const made = await admin('POST', path, { name: 'Orders', measure, timezone: 'Europe/Dublin' })
    expect(made.status).toBe(201)
    expect(made.body).toEqual({
      id: expect.any(Number),
      workspaceId: shop.id,
      name: 'Orders',
      key: 'orders',
      measure,
      text: "event('Order Completed').count()",
      timezone: 'Europe/Dublin',
      retractOnDelete: false,
      destinationIds: [],
      syncEvery: '2h30m',
      state: 'backfilling',
      users: 0,
    })
    const one = `${path}/${made.body.id}`
    const changed = await admin('PATCH', one, { retractOnDelete: true })
    expect(changed.body).toEqual({ ...made.body, retractOnDelete: true })
    expect((await admin('GET', path)).body.traits).toContainEqual(changed.body)
    expect((await admin('GET', `/admin/v1/audiences/${made.body.id}`)).status).toBe(404)
    const taken = await admin('POST', '/admin/v1/audiences', { name: 'orders!', where })
    expect(taken.body.error).toMatchObject({
      code: 'key_taken',
      problems: [{ message: expect.stringContaining('computed trait "Orders"') }],
    })
    const wrong = await admin('POST', path, { name: 'Wrong', measure: where })
    expect(wrong.body.error.problems[0]).toMatchObject({ code: 'condition_invalid' })
    expect(wrong.body.error.problems[0].path).toMatch(/^\/measure/)
    expect(
      (await admin('POST', path, { name: 'Z', measure, timezone: 'Mars' })).body.error.code,
    ).toBe('timezone_unknown')
    expect((await admin('DELETE', one)).status).toBe(204)
    expect((await admin('GET', one)).status).toBe(404)
  })

  test('audiences refer to one another and to computed traits, in no circle, and none is deleted under another', async () => {
    const audiences = '/admin/v1/audiences'
    const measure = { event: { name: 'Order Completed' }, sum: { prop: 'price' } }
    const trait = (await admin('POST', '/admin/v1/traits', { name: 'Spent', measure })).body
    const rich = { name: 'Rich', where: { computed: 'spent', op: 'gte', value: 100 } }
    const one = (await admin('POST', audiences, rich)).body
    const poor = { name: 'Poor', where: { audience: 'rich', in: false } }
    const two = await admin('POST', audiences, poor)
    expect(two.status).toBe(201)
    const refusals = [
      [{ where: { audience: 'poor' } }, '/where/audience', 'rich → poor → rich'],
      [{ where: { audience: 'nobody' } }, '/where/audience', 'there is none "nobody"'],
      [{ where: { audience: 'spent' } }, '/where/audience', 'there is none "spent"'],
      [{ where: { computed: 'spent', op: 'within_last', value: 'x' } }, '/where', ''],
    ] as const
    for (const [body, path, message] of refusals) {
      const answer = await admin('PATCH', `${audiences}/${one.id}`, body)
      expect(answer.body.error.code).toBe('condition_invalid')
      const [problem] = answer.body.error.problems
      expect(problem.path.startsWith(path)).toBe(true)
      expect(problem.message).toContain(message)
    }
    for (const path of [`/admin/v1/traits/${trait.id}`, `${audiences}/${one.id}`])
      expect((await admin('DELETE', path)).body.error.code).toBe('audience_referenced')
    for (const path of [`${audiences}/${two.body.id}`, `${audiences}/${one.id}`])
      expect((await admin('DELETE', path)).status).toBe(204)
    expect((await admin('DELETE', `/admin/v1/traits/${trait.id}`)).status).toBe(204)
  })

  test('a condition is taken as text, and says the column where it is wrong', async () => {
    const path = '/admin/v1/audiences'
    const text = "event('Order Completed').within(30 days).count() >= 2"
    const made = await admin('POST', path, { name: 'By text', where: text })
    expect(made.body).toMatchObject({
      text,
      where: {
        event: { name: 'Order Completed', window: { last: '30d' } },
        count: { op: 'gte', value: 2 },
      },
    })
    const wrong = await admin('PATCH', `${path}/${made.body.id}`, { where: "trait('a' = 1" })
    expect(wrong.body.error.problems[0]).toMatchObject({
      path: '/where',
      message: expect.stringMatching(/^line 1, column 11: /),
    })
    // What it refers to is looked up only when it is read; its place is still known.
    for (const [where, message] of [
      [
        "trait('a') = 1\nAND audience('nobody')",
        'line 2, column 5: expected the key of an audience: there is none "nobody"',
      ],
      ["audience('by_text')", 'line 1, column 1: expected no audience that refers to itself'],
      [
        "trait('a') > computed('none')",
        'line 1, column 14: expected the key of a computed trait: there is none "none"',
      ],
      [
        `trait('a') = "audience('nobody')"\nAND audience('nobody')`,
        'line 2, column 5: expected the key of an audience: there is none "nobody"',
      ],
    ] as const) {
      const lost = await admin('PATCH', `${path}/${made.body.id}`, { where })
      const [problem] = lost.body.error.problems
      expect(problem).toMatchObject({ path: '/where', message: expect.stringContaining(message) })
    }
    expect((await admin('DELETE', `${path}/${made.body.id}`)).status).toBe(204)
  })

  test('an audience is about users or about accounts, and stays so', async () => {
    const users = { users: { quantifier: 'all', where } }
    const create = (body: object) => admin('POST', '/admin/v1/audiences', body)
    const made = await create({ name: 'Whole Accounts', scope: 'account', where: users })
    expect(made).toMatchObject({ status: 201, body: { scope: 'account', where: users } })
    const path = `/admin/v1/audiences/${made.body.id}`
    const text = await admin('PATCH', path, { where: made.body.text.replace('ALL', 'NONE') })
    const none = { users: { quantifier: 'none', where } }
    expect(text).toMatchObject({ status: 200, body: { scope: 'account', where: none } })
    const refusal = { status: 400, body: { error: { code: 'scope_invalid' } } }
    expect(await admin('PATCH', path, { where })).toMatchObject(refusal)
    expect(await create({ name: 'Odd', scope: 'user', where: users })).toMatchObject(refusal)
    expect(await create({ name: 'Odd', scope: 'account', where })).toMatchObject(refusal)
    const said = await create({ name: 'Said By Itself', where: users })
    expect(said).toMatchObject({ status: 201, body: { scope: 'account' } })
    expect(await admin('GET', `${path}/explain?userId=u1`)).toMatchObject({ status: 409 })
    const inner = await create({ name: 'Within', where: { all: [users] } })
    expect(inner).toMatchObject({ status: 400, body: { error: { code: 'condition_invalid' } } })
    for (const { body } of [made, said])
      expect((await admin('DELETE', `/admin/v1/audiences/${body.id}`)).status).toBe(204)
  })

  test('an audience is listed with the members the projector found', async () => {
    const create = async (name: string) =>
      (await admin('POST', '/admin/v1/audiences', { name, where })).body.id
    const [one, two] = [await create('Counted'), await create('Empty')]
    await pool.query(
      `insert into membership (audience_id, shard, user_key, user_id, cur, synced)
       values ($1, 0, 1, 'u1', true, false), ($1, 0, 2, 'u2', false, true), ($1, 0, 3, null, true, false)`,
      [one],
    )
    await pool.query(
      `insert into audience_state (audience_id, workspace_id, version, state, condition, definition)
       values ($1, 1, 1, 'live', '{}', '')`,
      [one],
    )
    const { audiences } = (await viewer('GET', '/admin/v1/audiences')).body
    const standing = (id: number) =>
      audiences.find((audience: { id: number }) => audience.id === id)
    expect(standing(one)).toMatchObject({ state: 'live', members: 2, anonymousMembers: 1 })
    expect(standing(two)).toMatchObject({ state: 'backfilling', members: 0, anonymousMembers: 0 })
  })

  test('with two workspaces one must be named, and lists can be narrowed to one', async () => {
    const other = (await admin('POST', '/admin/v1/workspaces', { name: 'other' })).body
    const make = (body: object) =>
      admin('POST', '/admin/v1/sources', { name: 'narrow', class: 'web', ...body })
    expect((await make({})).body.error.code).toBe('workspace_required')
    expect((await make({ workspaceId: 999 })).body.error.code).toBe('workspace_unknown')
    expect((await make({ workspaceId: other.id })).status).toBe(201)
    const listed = await admin('GET', `/admin/v1/sources?workspaceId=${other.id}`)
    expect(listed.body.sources).toMatchObject([{ name: 'narrow', workspaceId: other.id }])
    const path = `/admin/v1/workspaces/${other.id}`
    expect((await admin('DELETE', path)).body.error.code).toBe('workspace_not_empty')
    await admin('DELETE', `/admin/v1/sources/${listed.body.sources[0].id}`)
    expect((await admin('DELETE', path)).status).toBe(204)
  })

  test('every mutation is in the audit log with its actor, and no secret is', async () => {
    const { entries } = (await admin('GET', '/admin/v1/audit?limit=500')).body
    const told = entries.map(
      (entry: Record<string, string>) =>
        `${entry['actor']} ${entry['action']} ${entry['kind']} ${entry['name']}`,
    )
    for (const line of [
      'environment created workspace shop',
      'environment created source web',
      'environment changed source web',
      'environment deleted source web',
      'environment created destination Webhooks',
      'environment changed destination Webhooks',
      'environment deleted destination Webhooks',
      'environment created audience Big Spenders',
      'environment changed audience Whales',
      'environment deleted audience Whales',
      'environment deleted workspace other',
    ])
      expect(told).toContain(line)
    expect(JSON.stringify(entries)).not.toMatch(/hush|sk_|growth/)
    const older = (await admin('GET', `/admin/v1/audit?before=${entries[0].id}&limit=1`)).body
    expect(older.entries).toEqual([entries[1]])
  })

  test('the log has one line a request, and no secret', () => {
    const all = lines.join('')
    expect(all).toContain('"route":"/admin/v1/sources/:id"')
    expect(all).not.toMatch(/hush|sk_|wk_|given-admin-token|growth/)
  })
})

test('what was answered as saved is in force in this process, whatever becomes of notifications', async () => {
  // Deaf, and never looking by itself.
  const { admin, live } = await startTestAdmin(
    {},
    { limits: { pollEveryMs: 3_600_000, refreshMsMax: 60_000 }, isDeaf: true },
  )
  await admin('POST', '/admin/v1/apply', { workspaces: [{ name: 'shop' }] })
  for (let at = 0; at < 5; at += 1) {
    const writeKey = `wk_at_once_${at}`
    const made = await admin('POST', '/admin/v1/sources', {
      name: `s${at}`,
      class: 'web',
      writeKey,
    })
    expect(live.now().sourceByWriteKey.get(writeKey)?.id).toBe(made.body.id)
    await admin('DELETE', `/admin/v1/sources/${made.body.id}`)
    expect(live.now().sourceByWriteKey.has(writeKey)).toBe(false)
  }
})
