// What may be set of how messages go to a destination, and that no answer, log line or audit entry tells a secret.
import { readFile } from 'node:fs/promises'
import { beforeAll, describe, expect, test } from 'vitest'
import { loadConfiguration } from '../../src/control/live.ts'
import { keyringOf } from '../../src/control/secret.ts'
import { aKeyring } from '../support/configuration.ts'
import { startTestAdmin } from './start.ts'

const pem = (name: string) => readFile(new URL(`../http/tls/${name}`, import.meta.url), 'utf8')
const [ca, certificate, key] = await Promise.all(['ca.crt', 'client.crt', 'client.key'].map(pem))

const { admin, viewer, pool, lines } = await startTestAdmin()
const path = '/admin/v1/destinations'
const url = 'https://a.test/hook'

let names = 0
const make = (over: object = {}) => {
  names += 1
  return admin('POST', path, { name: `D${names}`, webhooks: [{ url }], ...over })
}
const stored = async (id: number) => {
  const destination = (await loadConfiguration(pool, aKeyring)).destinations.get(id)
  if (!destination) throw new Error(`destination ${id} is gone`)
  return destination
}
const problemsOf = ({ body }: Awaited<ReturnType<typeof make>>) =>
  body.error.problems.map((problem: { code: string; path: string }) => [problem.code, problem.path])

beforeAll(async () => {
  expect((await admin('POST', '/admin/v1/workspaces', { name: 'shop' })).status).toBe(201)
})

const everything = {
  order: 'none',
  payload: 'full',
  replayOnHeal: true,
  sharedSecret: 'hush-current',
  nextSharedSecret: { secret: 'hush-next', activateAt: '2026-03-01T12:00:00.000Z' },
  signatures: { standardWebhooks: true, sha256: true, next: true },
  webhooks: [
    {
      url,
      headers: { Authorization: 'Bearer hush', 'X-Team': 'hush' },
      concurrencyMax: 4,
      requestsPerSecondMax: 2.5,
      ca,
      clientCertificate: { certificate, key },
    },
    { url: 'http://b.test/' },
  ],
}

describe('a destination', () => {
  test('without settings goes in order, as the specification says, and signs with one header', async () => {
    const { body } = await make()
    expect(body).toMatchObject({
      order: 'user',
      payload: 'spec',
      replayOnHeal: false,
      signed: false,
      signatures: { standardWebhooks: false, sha256: false, next: false },
      nextSecretAt: null,
      webhooks: [
        { concurrencyMax: null, requestsPerSecondMax: null, ca: null, clientCertificate: null },
      ],
    })
  })

  test('keeps every setting it is given, and shows all but what is secret', async () => {
    const made = await make(everything)
    expect(made.status).toBe(201)
    const { sharedSecret: _, nextSharedSecret, webhooks, ...settings } = everything
    const shown = {
      ...settings,
      signed: true,
      nextSecretAt: nextSharedSecret.activateAt,
      webhooks: [
        {
          ...webhooks[0],
          headers: { Authorization: '(hidden)', 'X-Team': '(hidden)' },
          clientCertificate: { certificate, key: '(hidden)' },
        },
        { url: 'http://b.test/', headers: {} },
      ],
    }
    expect(made.body).toMatchObject(shown)
    expect(made.body).not.toHaveProperty('sharedSecret')
    for (const client of [admin, viewer]) {
      expect((await client('GET', `${path}/${made.body.id}`)).body).toMatchObject(shown)
      const listed = (await client('GET', path)).body.destinations
      expect(listed.at(-1)).toMatchObject(shown)
    }
    expect(await stored(made.body.id)).toMatchObject({
      ...everything,
      nextSharedSecret: {
        secret: 'hush-next',
        activateAt: Date.parse(nextSharedSecret.activateAt),
      },
    })
  })

  test('keeps hidden values that are sent back as they were shown, for that very URL only', async () => {
    const made = await make(everything)
    const { webhooks } = (await admin('GET', `${path}/${made.body.id}`)).body
    const [first, second] = webhooks
    const back = { webhooks: [second, { ...first, concurrencyMax: 9 }] }
    expect((await admin('PATCH', `${path}/${made.body.id}`, back)).status).toBe(200)
    expect((await stored(made.body.id)).webhooks).toMatchObject([
      { url: 'http://b.test/' },
      { ...everything.webhooks[0], concurrencyMax: 9 },
    ])
    const moved = { webhooks: [{ ...first, url: 'https://elsewhere.test/' }] }
    expect(problemsOf(await admin('PATCH', `${path}/${made.body.id}`, moved))).toEqual([
      ['webhook_tls_invalid', '/webhooks/0/clientCertificate'],
      ['header_value_invalid', '/webhooks/0/headers/Authorization'],
      ['header_value_invalid', '/webhooks/0/headers/X-Team'],
      ['webhook_tls_invalid', '/webhooks/0/clientCertificate/key'],
    ])
  })

  test('changes only the fields given', async () => {
    const made = await make(everything)
    const change = { signatures: { sha256: false }, order: 'user' }
    const { body } = await admin('PATCH', `${path}/${made.body.id}`, change)
    expect(body).toMatchObject({
      order: 'user',
      payload: 'full',
      signatures: { standardWebhooks: true, sha256: false, next: true },
      nextSecretAt: everything.nextSharedSecret.activateAt,
    })
    expect(await stored(made.body.id)).toMatchObject({ sharedSecret: 'hush-current' })
  })

  test.each<[object, [string, string][]]>([
    [
      { webhooks: [{ url }, { url: `${url}#same` }] },
      [['webhook_url_duplicate', '/webhooks/1/url']],
    ],
    [
      { webhooks: [{ url }, { url: 'HTTPS://A.test:443/hook' }] },
      [['webhook_url_duplicate', '/webhooks/1/url']],
    ],
    [
      { webhooks: [{ url: 'http://a.test/', ca, clientCertificate: { certificate, key } }] },
      [
        ['webhook_tls_invalid', '/webhooks/0/ca'],
        ['webhook_tls_invalid', '/webhooks/0/clientCertificate'],
      ],
    ],
    [{ webhooks: [{ url, ca: 'no PEM' }] }, [['webhook_tls_invalid', '/webhooks/0/ca']]],
    [
      { webhooks: [{ url, headers: { 'X-A': '(hidden)' } }] },
      [['header_value_invalid', '/webhooks/0/headers/X-A']],
    ],
    [
      { webhooks: [{ url, concurrencyMax: 0, requestsPerSecondMax: 0 }] },
      [
        ['field_invalid', '/webhooks/0/concurrencyMax'],
        ['field_invalid', '/webhooks/0/requestsPerSecondMax'],
      ],
    ],
    [{ order: 'any' }, [['field_invalid', '/order']]],
    [{ payload: 'all' }, [['field_invalid', '/payload']]],
    [{ signatures: { sha256: true } }, [['shared_secret_missing', '/signatures']]],
    [{ signatures: { md5: true } }, [['field_unknown', '/signatures/md5']]],
    [
      { nextSharedSecret: { secret: 'x', activateAt: '2026-03-01' } },
      [['shared_secret_missing', '/nextSharedSecret']],
    ],
    [
      { sharedSecret: 's', nextSharedSecret: { secret: '', activateAt: 'soon' } },
      [
        ['shared_secret_invalid', '/nextSharedSecret/secret'],
        ['activate_at_invalid', '/nextSharedSecret/activateAt'],
      ],
    ],
    [
      { sharedSecret: 'whsec_short', signatures: { standardWebhooks: true } },
      [['shared_secret_invalid', '/sharedSecret']],
    ],
  ])('is refused with %j', async (over, expected) => {
    const refused = await make(over)
    expect(refused.status).toBe(400)
    expect(problemsOf(refused)).toEqual(expected)
  })

  test('cannot lose the secret that its headers are signed with', async () => {
    const made = await make({ sharedSecret: 's', signatures: { sha256: true } })
    const change = { sharedSecret: null }
    expect(problemsOf(await admin('PATCH', `${path}/${made.body.id}`, change))).toEqual([
      ['shared_secret_missing', '/signatures'],
    ])
    const both = { ...change, signatures: { sha256: false } }
    expect((await admin('PATCH', `${path}/${made.body.id}`, both)).status).toBe(200)
  })
})

describe('a shared secret', () => {
  test('is made when asked for, and shown in that answer only', async () => {
    const made = await make({ sharedSecret: 'generate' })
    const { id, sharedSecret } = made.body
    expect(sharedSecret).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/)
    expect(await stored(id)).toMatchObject({ sharedSecret })
    expect((await admin('GET', `${path}/${id}`)).body).not.toHaveProperty('sharedSecret')
    const again = await admin('PATCH', `${path}/${id}`, { sharedSecret: 'generate' })
    expect(again.body.sharedSecret).not.toBe(sharedSecret)
    expect(await stored(id)).toMatchObject({ sharedSecret: again.body.sharedSecret })
  })

  test('is replaced at a time to come: a day from now by default, the one there is signs until then', async () => {
    const { id } = (await make({ sharedSecret: 'old' })).body
    const before = Date.now()
    const { status, body } = await admin('POST', `${path}/${id}/secret`, {})
    expect(status).toBe(200)
    const at = Date.parse(body.nextSecretAt)
    expect(at).toBeGreaterThanOrEqual(before + 86_400_000)
    expect(at).toBeLessThanOrEqual(Date.now() + 86_400_000)
    expect(await stored(id)).toMatchObject({
      sharedSecret: 'old',
      nextSharedSecret: { secret: body.sharedSecret, activateAt: at },
    })
    // A second rotation replaces the one that waits.
    const given = { secret: 'given', activateAt: '2999-01-01T00:00:00Z' }
    const second = await admin('POST', `${path}/${id}/secret`, given)
    expect(second.body).not.toHaveProperty('sharedSecret')
    expect(second.body.nextSecretAt).toBe('2999-01-01T00:00:00.000Z')
    expect(await stored(id)).toMatchObject({
      sharedSecret: 'old',
      nextSharedSecret: { secret: 'given' },
    })
    const ended = await admin('PATCH', `${path}/${id}`, { nextSharedSecret: null })
    expect(ended.body.nextSecretAt).toBe(null)
  })

  test('is replaced at once where there is none, and where no time is left', async () => {
    const { id } = (await make()).body
    expect((await admin('POST', `${path}/${id}/secret`, { secret: 'one' })).body).toMatchObject({
      signed: true,
      nextSecretAt: null,
    })
    expect(await stored(id)).toMatchObject({ sharedSecret: 'one', nextSharedSecret: null })
    await admin('POST', `${path}/${id}/secret`, { secret: 'two', after: '0s' })
    expect(await stored(id)).toMatchObject({ sharedSecret: 'two', nextSharedSecret: null })
  })

  test('that took over is the one a further rotation replaces', async () => {
    const activateAt = '2020-01-01T00:00:00Z'
    const { id } = (
      await make({ sharedSecret: 'one', nextSharedSecret: { secret: 'two', activateAt } })
    ).body
    await admin('POST', `${path}/${id}/secret`, { secret: 'three', after: '1h' })
    expect(await stored(id)).toMatchObject({
      sharedSecret: 'two',
      nextSharedSecret: { secret: 'three' },
    })
  })

  test('set anew ends the rotation that waited, set to the same it does not', async () => {
    const next = { secret: 'two', activateAt: '2999-01-01T00:00:00Z' }
    const { id } = (await make({ sharedSecret: 'one', nextSharedSecret: next })).body
    await admin('PATCH', `${path}/${id}`, { sharedSecret: 'one' })
    expect(await stored(id)).toMatchObject({ nextSharedSecret: { secret: 'two' } })
    await admin('PATCH', `${path}/${id}`, { sharedSecret: 'other' })
    expect(await stored(id)).toMatchObject({ sharedSecret: 'other', nextSharedSecret: null })
  })

  test.each([
    { activateAt: 'tomorrow' },
    { after: 'soon' },
    { after: '1h', activateAt: '2026-03-01T12:00:00Z' },
  ])('is not replaced with the time %j', async (body) => {
    const { id } = (await make({ sharedSecret: 'old' })).body
    const refused = await admin('POST', `${path}/${id}/secret`, body)
    expect(problemsOf(refused)).toMatchObject([['activate_at_invalid', expect.any(String)]])
  })

  test('is replaced by admins alone, of destinations there are', async () => {
    expect((await viewer('POST', `${path}/1/secret`, {})).status).toBe(403)
    expect((await admin('POST', `${path}/999/secret`, {})).status).toBe(404)
  })
})

test('a file sets all of it, again without effect, and asks for a secret once', async () => {
  const { sharedSecret: _, nextSharedSecret: __, ...settings } = everything
  const destination = { name: 'Filed', sharedSecret: 'generate', ...settings }
  const file = { workspaces: [{ name: 'shop', destinations: [destination] }] }
  const dry = await admin('POST', '/admin/v1/apply?dryRun=true', file)
  expect(JSON.stringify(dry.body)).not.toMatch(/whsec_|hush/)
  const first = await admin('POST', '/admin/v1/apply', file)
  const { generated } = first.body.entities.at(-1)
  expect(generated.sharedSecret).toMatch(/^whsec_/)
  const again = await admin('POST', '/admin/v1/apply', file)
  expect(again.body.entities.at(-1)).toMatchObject({ action: 'unchanged', generated: {} })
  const { destinations } = await loadConfiguration(pool, aKeyring)
  const saved = [...destinations.values()].find(({ name }) => name === 'Filed')
  expect(saved).toMatchObject({ ...settings, sharedSecret: generated.sharedSecret })
})

test('no secret is in the audit log, in a log line or in the database', async () => {
  await make(everything)
  const { entries } = (await admin('GET', '/admin/v1/audit?limit=1000')).body
  const { rows } = await pool.query(
    'select d::text, w::text from destination d join webhook w on w.destination_id = d.id',
  )
  const told = JSON.stringify([entries, lines, rows])
  expect(told).toContain('D1')
  const fragment = String(key).split('\n')[1] as string
  for (const secret of ['hush', fragment, 'whsec_']) {
    expect(told.includes(secret)).toBe(false)
    expect(told.includes(Buffer.from(secret).toString('hex'))).toBe(false)
  }
})

describe('where no encryption key is set', async () => {
  const bare = await startTestAdmin({ keyring: keyringOf(null, []) })
  const make = (over: object) =>
    bare.admin('POST', path, { name: 'Plain', webhooks: [{ url }], ...over })
  beforeAll(() => bare.admin('POST', '/admin/v1/workspaces', { name: 'shop' }))

  test.each<[object, string]>([
    [{ sharedSecret: 's' }, '/sharedSecret'],
    [{ sharedSecret: 'generate' }, '/sharedSecret'],
    [{ webhooks: [{ url, headers: { 'X-A': 'b' } }] }, '/webhooks/0/headers'],
    [
      { webhooks: [{ url, clientCertificate: { certificate, key } }] },
      '/webhooks/0/clientCertificate',
    ],
  ])('nothing secret is taken: %j', async (over, place) => {
    const refused = await make(over)
    expect(refused.status).toBe(409)
    expect(problemsOf(refused)).toEqual([['encryption_key_missing', place]])
    expect(refused.body.error.message).toContain('MILLRACE_SECRET_KEY')
  })

  test('what was there before stays, through changes of everything else', async () => {
    const { body } = await make({})
    const secret = 'of-before'
    await bare.pool.query('update destination set shared_secret = $1', [secret])
    await bare.pool.query(`update webhook set headers = '{"X-A":"of-before"}'`)
    const kept = { url, headers: { 'X-A': '(hidden)' }, concurrencyMax: 2 }
    const changed = { name: 'Renamed', sharedSecret: secret, webhooks: [kept] }
    const { status } = await bare.admin('PATCH', `${path}/${body.id}`, changed)
    expect(status).toBe(200)
    const { destinations } = await loadConfiguration(bare.pool, keyringOf(null, []))
    expect(destinations.get(body.id)).toMatchObject({
      name: 'Renamed',
      sharedSecret: secret,
      webhooks: [{ headers: { 'X-A': 'of-before' }, concurrencyMax: 2 }],
    })
    const rotated = await bare.admin('POST', `${path}/${body.id}/secret`, {})
    expect(problemsOf(rotated)).toEqual([['encryption_key_missing', '/secret']])
  })
})
