import { describe, expect, test } from 'vitest'
import { startTestAdmin } from './start.ts'

const hook = { url: 'http://a.test/hook' }
const hooks = (...urls: string[]) => ({ webhooks: urls.map((url) => ({ url })) })
const where = { trait: 'plan', op: 'eq', value: 'pro' }
const [sources, destinations, audiences] = ['sources', 'destinations', 'audiences'].map(
  (kind) => `/admin/v1/${kind}`,
) as [string, string, string]

describe('what the admin API refuses', async () => {
  const { admin, pool } = await startTestAdmin({
    addresses: { allowPrivate: false, allowed: [] },
  })
  await admin('POST', '/admin/v1/workspaces', { name: 'shop' })
  await admin('POST', sources, { name: 'taken', class: 'web', writeKey: 'wk_t', secretKey: 'sk_t' })
  await admin('POST', destinations, { name: 'Taken', webhooks: [hook] })
  await admin('POST', audiences, { name: 'Taken', where })

  test.each([
    [sources, { class: 'web' }, 400, 'field_missing', '/name'],
    [sources, { name: 'a', class: 'tv' }, 400, 'field_invalid', '/class'],
    [sources, { name: 'a', class: 'web', colour: 1 }, 400, 'field_unknown', '/colour'],
    [sources, { name: '', class: 'web' }, 400, 'name_invalid', '/name'],
    [sources, { name: ' a', class: 'web' }, 400, 'name_invalid', '/name'],
    [sources, { name: 'a\n', class: 'web' }, 400, 'name_invalid', '/name'],
    [sources, { name: 'a\u0000b', class: 'web' }, 400, 'name_invalid', '/name'],
    [sources, { name: '\ud800', class: 'web' }, 400, 'name_invalid', '/name'],
    [sources, { name: 'x'.repeat(201), class: 'web' }, 400, 'name_invalid', '/name'],
    [sources, { name: 'taken', class: 'web' }, 409, 'name_taken', '/name'],
    [sources, { name: 'a', class: 'web', writeKey: 'wk_t' }, 409, 'write_key_taken', '/writeKey'],
    [sources, { name: 'a', class: 'web', writeKey: 'sk_t' }, 409, 'write_key_taken', '/writeKey'],
    [sources, { name: 'a', class: 'web', writeKey: 'a:b' }, 400, 'write_key_invalid', '/writeKey'],
    [sources, { name: 'a', class: 'web', writeKey: '' }, 400, 'write_key_invalid', '/writeKey'],
    [
      sources,
      { name: 'a', class: 'web', writeKey: 'k', secretKey: 'k' },
      400,
      'write_key_invalid',
      '/writeKey',
    ],
    [sources, { name: 'a', class: 'web', secretKey: 'ü' }, 400, 'secret_key_invalid', '/secretKey'],
    [
      sources,
      { name: 'a', class: 'web', secretKey: 'sk_t' },
      409,
      'secret_key_taken',
      '/secretKey',
    ],
    [
      sources,
      { name: 'a', class: 'web', secretKey: 'wk_t' },
      409,
      'secret_key_taken',
      '/secretKey',
    ],
    [destinations, { name: 'a' }, 400, 'webhooks_missing', '/webhooks'],
    [destinations, { name: 'a', webhooks: [] }, 400, 'webhooks_missing', '/webhooks'],
    [
      destinations,
      { name: 'a', ...hooks(...Array.from({ length: 6 }, () => 'http://a.test')) },
      400,
      'webhooks_too_many',
      '/webhooks',
    ],
    [
      destinations,
      { name: 'a', ...hooks('a.test') },
      400,
      'webhook_url_invalid',
      '/webhooks/0/url',
    ],
    [
      destinations,
      { name: 'a', ...hooks('http://a.test', 'ftp://a.test') },
      400,
      'webhook_url_invalid',
      '/webhooks/1/url',
    ],
    [
      destinations,
      { name: 'a', ...hooks('http://127.0.0.1') },
      400,
      'webhook_url_private',
      '/webhooks/0/url',
    ],
    [
      destinations,
      { name: 'a', webhooks: [{ ...hook, headers: { 'X-Signature': 'x' } }] },
      400,
      'header_reserved',
      '/webhooks/0/headers/X-Signature',
    ],
    [
      destinations,
      { name: 'a', webhooks: [{ ...hook, headers: { 'a/b': 'x' } }] },
      400,
      'header_name_invalid',
      '/webhooks/0/headers/a~1b',
    ],
    [
      destinations,
      { name: 'a', webhooks: [{ ...hook, headers: { 'X-A': 'x\r\ny' } }] },
      400,
      'header_value_invalid',
      '/webhooks/0/headers/X-A',
    ],
    [
      destinations,
      { name: 'a', webhooks: [{ ...hook, headers: { 'X-A': 1 } }] },
      400,
      'field_invalid',
      '/webhooks/0/headers/X-A',
    ],
    [destinations, { name: 'All', webhooks: [hook] }, 400, 'name_reserved', '/name'],
    [destinations, { name: 'Taken', webhooks: [hook] }, 409, 'name_taken', '/name'],
    [
      destinations,
      { name: 'a', webhooks: [hook], sourceIds: [999] },
      400,
      'source_unknown',
      '/sourceIds/0',
    ],
    [
      destinations,
      { name: 'a', webhooks: [hook], sharedSecret: '' },
      400,
      'shared_secret_invalid',
      '/sharedSecret',
    ],
    [
      destinations,
      { name: 'a', webhooks: [hook], historicalAfter: 'soon' },
      400,
      'historical_after_invalid',
      '/historicalAfter',
    ],
    [destinations, { name: 'a', webhooks: [hook], type: 'sms' }, 400, 'field_invalid', '/type'],
    [audiences, { name: 'a' }, 400, 'field_missing', '/where'],
    [audiences, { name: 'a', where: [] }, 400, 'field_invalid', '/where'],
    [audiences, { name: 'a', where: { all: [] } }, 400, 'condition_invalid', '/where/all'],
    [
      audiences,
      { name: 'a', where: { any: [where, { event: { name: 'x', window: { last: 'ever' } } }] } },
      400,
      'condition_invalid',
      '/where/any/1/event/window/last',
    ],
    [audiences, { name: '!?', where }, 400, 'key_empty', '/name'],
    [audiences, { name: 'TAKEN?', where }, 409, 'key_taken', '/name'],
    [audiences, { name: 'a', where, syncEvery: '59s' }, 400, 'sync_every_invalid', '/syncEvery'],
    [audiences, { name: 'a', where, syncEvery: '3651d' }, 400, 'sync_every_invalid', '/syncEvery'],
    [
      audiences,
      { name: 'a', where, destinationIds: [999] },
      400,
      'destination_unknown',
      '/destinationIds/0',
    ],
  ])('POST %s %j: %i %s at %s', async (...[path, body, status, code, at]) => {
    const answer = await admin('POST', path, body)
    expect(answer.status).toBe(status)
    expect(answer.body.error).toMatchObject({ code, message: expect.any(String) })
    expect(answer.body.error.problems).toContainEqual(expect.objectContaining({ code, path: at }))
  })

  test('a refused change changes nothing', async () => {
    const [destination] = (await admin('GET', destinations)).body.destinations
    const answer = await admin('PATCH', `${destinations}/${destination.id}`, {
      name: 'New',
      webhooks: [],
    })
    expect(answer.body.error.code).toBe('webhooks_missing')
    expect((await admin('GET', `${destinations}/${destination.id}`)).body).toEqual(destination)
  })

  test('all problems of a request are told at once', async () => {
    const { body } = await admin('POST', destinations, {
      name: 'All',
      sourceIds: [7, 8],
      webhooks: [{ url: 'x', headers: { Host: 'y' } }],
    })
    expect(body.error.problems.map(({ code }: { code: string }) => code)).toEqual([
      'name_reserved',
      'source_unknown',
      'source_unknown',
      'webhook_url_invalid',
      'header_reserved',
    ])
  })

  test('two at once who want one name: one gets it, the other is told', async () => {
    const answers = await Promise.all(
      Array.from({ length: 8 }, () => admin('POST', sources, { name: 'race', class: 'web' })),
    )
    expect(answers.map(({ status }) => status).toSorted()).toEqual([201, ...Array(7).fill(409)])
  })

  test('nothing refused left a trace', async () => {
    const { rows } = await pool.query('select name from audit_log order by id')
    expect(rows.map((row) => row['name'])).toEqual(['shop', 'taken', 'Taken', 'Taken', 'race'])
  })
})
