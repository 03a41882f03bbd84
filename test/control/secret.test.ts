// Secrets at rest: sealed under a key the database never holds, bound to their row, and never lost on the way there.
import { randomBytes } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { beforeEach, describe, expect, test } from 'vitest'
import { insertDestination } from '../../src/control/destination-store.ts'
import { loadConfiguration } from '../../src/control/live.ts'
import { sealSecrets } from '../../src/control/seal.ts'
import { type Keyring, keyringOf, newKey, seal, unseal } from '../../src/control/secret.ts'
import { readState } from '../../src/control/state.ts'
import { insertWorkspace } from '../../src/control/store.ts'
import { aDestination, aWebhook } from '../support/configuration.ts'
import { cloneDatabase } from '../support/database.ts'

const [first, second, third] = [newKey(), newKey(), newKey()]
const ring = keyringOf(first, [])
const noKey = keyringOf(null, [])

const codeOf = (work: () => unknown) => {
  try {
    work()
  } catch (error) {
    return (error as { code: string }).code
  }
  return null
}

describe('sealing', () => {
  test('what was sealed opens to the same text, and no two sealings look alike', () => {
    for (const text of ['', 's3cret', 'ключ 😀', 'x'.repeat(10_000)]) {
      const [one, other] = [seal(ring, 'row 1', text), seal(ring, 'row 1', text)]
      expect(unseal(ring, 'row 1', one)).toBe(text)
      expect(one.equals(other)).toBe(false)
      if (text.length > 3) expect(one.includes(Buffer.from(text))).toBe(false)
    }
  })

  test('in another row, changed in any byte, cut or emptied it does not open', () => {
    const sealed = seal(ring, 'row 1', 's3cret')
    expect(codeOf(() => unseal(ring, 'row 2', sealed))).toBe('secret_damaged')
    for (let at = 0; at < sealed.length; at += 1) {
      const changed = Buffer.from(sealed)
      changed[at] = (changed[at] as number) ^ 1
      expect(codeOf(() => unseal(ring, 'row 1', changed))).toMatch(/^secret_/)
      expect(codeOf(() => unseal(ring, 'row 1', sealed.subarray(0, at)))).toMatch(/^secret_/)
    }
  })

  test('a key reads the same in base64, unpadded, url-safe and in hex', () => {
    const bytes = Buffer.from(first, 'base64')
    for (const text of [first.replace('=', ''), bytes.toString('base64url'), bytes.toString('hex')])
      expect(unseal(keyringOf(text, []), 'row', seal(ring, 'row', 'x'))).toBe('x')
  })

  test('a previous key opens and never seals; an unknown one is told by its id and by its setting', () => {
    const rotated = keyringOf(second, [first])
    expect(unseal(rotated, 'row', seal(ring, 'row', 'old'))).toBe('old')
    expect(codeOf(() => unseal(ring, 'row', seal(rotated, 'row', 'new')))).toBe('secret_key_wrong')
    expect(() => unseal(keyringOf(third, []), 'row', seal(ring, 'row', 'x'))).toThrow(
      new RegExp(`key ${ring.current?.id}.*MILLRACE_SECRET_KEY_PREVIOUS`),
    )
    expect(codeOf(() => unseal(noKey, 'row', seal(ring, 'row', 'x')))).toBe('secret_key_missing')
    expect(codeOf(() => seal(noKey, 'row', 'x'))).toBe('secret_key_missing')
  })
})

describe('the secrets of destinations', async () => {
  const { pool } = await cloneDatabase()
  const clientCertificate = { certificate: 'public', key: 'private-zebra' }
  const secrets = {
    sharedSecret: 'current-zebra',
    nextSharedSecret: { secret: 'next-zebra', activateAt: Date.UTC(2026, 1, 1) },
    webhooks: [
      aWebhook({ url: 'http://a.test/', headers: { 'X-B': 'header-zebra', 'X-A': 'zebra' } }),
      aWebhook({ url: 'https://b.test/', clientCertificate, concurrencyMax: 3 }),
      aWebhook({ url: 'http://c.test/' }),
    ],
  }
  const plain = { nextSharedSecret: null, webhooks: secrets.webhooks.slice(0, 1) }

  const add = async (over: object, keyring: Keyring) =>
    pool.transaction(async (tx) => {
      const { id: workspaceId } = await insertWorkspace(tx, {
        name: randomBytes(4).toString('hex'),
        regionalAccess: false,
        grandfathered: false,
      })
      const sourceIds = new Set<number>()
      return insertDestination(tx, aDestination({ workspaceId, sourceIds, ...over }), keyring)
    })

  const loaded = async (id: number, keyring: Keyring) =>
    (await loadConfiguration(pool, keyring)).destinations.get(id)

  const stored = async () => {
    const { rows } = await pool.query<{ text: string }>(
      "select coalesce(string_agg(d::text, ''), '') || (select coalesce(string_agg(w::text, ''), '') from webhook w) as text from destination d",
    )
    return rows[0]?.text ?? ''
  }

  const version = async () => (await readState(pool)).version

  beforeEach(() => pool.query('truncate workspace cascade'))

  test('come back as they were saved, and no byte of them stands in the database', async () => {
    const id = await add(secrets, ring)
    expect(await loaded(id, ring)).toMatchObject(secrets)
    const text = await stored()
    const bytes = Buffer.from('zebra').toString('hex')
    expect(text).toContain('a.test')
    expect(text).not.toMatch(new RegExp(`zebra|${bytes}`))
  })

  test('read (hidden) where no keyring is given, so that what is shown cannot tell them', async () => {
    const id = await add(secrets, ring)
    const shown = (await readState(pool)).destinations.get(id)
    expect(JSON.stringify(shown)).not.toContain('zebra')
    expect(shown).toMatchObject({
      sharedSecret: '(hidden)',
      nextSharedSecret: { secret: '(hidden)', activateAt: secrets.nextSharedSecret.activateAt },
      webhooks: [{ headers: { 'X-B': '(hidden)', 'X-A': '(hidden)' } }, {}, { headers: {} }],
    })
    expect(shown?.webhooks[1]?.clientCertificate).toEqual({
      certificate: 'public',
      key: '(hidden)',
    })
    expect(shown?.webhooks[2]?.clientCertificate).toBe(null)
  })

  test('of before there was a key stay readable, and are sealed by the first start that has one', async () => {
    const id = await add({ sharedSecret: 'zebra', ...plain }, noKey)
    expect(await stored()).toContain('zebra')
    expect(await sealSecrets(pool, noKey)).toEqual({ sealed: 0, unsealed: 1 })
    expect(await loaded(id, noKey)).toMatchObject({ sharedSecret: 'zebra', ...plain })
    expect(await loaded(id, ring)).toMatchObject({ sharedSecret: 'zebra', ...plain })
    expect(await sealSecrets(pool, ring)).toEqual({ sealed: 1, unsealed: 0 })
    expect(await stored()).not.toContain('zebra')
    expect(await loaded(id, ring)).toMatchObject({ sharedSecret: 'zebra', ...plain })
  })

  test('are sealed anew by a start with another key, after which the old one may go', async () => {
    const ids = [await add(secrets, ring), await add({ sharedSecret: null, ...plain }, ring)]
    await add({ sharedSecret: null, nextSharedSecret: null }, ring)
    const rotated = keyringOf(second, [first])
    expect(await sealSecrets(pool, rotated)).toEqual({ sealed: 2, unsealed: 0 })
    const before = await version()
    expect(await sealSecrets(pool, rotated)).toEqual({ sealed: 0, unsealed: 0 })
    expect(await version()).toBe(before)
    expect(await loaded(ids[0] as number, keyringOf(second, []))).toMatchObject(secrets)
    await expect(sealSecrets(pool, ring)).rejects.toMatchObject({ code: 'secret_key_wrong' })
  })

  test('are left alone by a start with the wrong key, or with none', async () => {
    const id = await add(secrets, ring)
    const before = await stored()
    for (const [keyring, code] of [
      [keyringOf(second, []), 'secret_key_wrong'],
      [noKey, 'secret_key_missing'],
    ] as const)
      await expect(sealSecrets(pool, keyring)).rejects.toMatchObject({ code })
    expect(await stored()).toBe(before)
    expect(await loaded(id, ring)).toMatchObject(secrets)
  })

  test('whose key is lost are let go by what the documentation says, and their destinations stop', async () => {
    const lost = await add(secrets, ring)
    const unsigned = await add({ sharedSecret: null, nextSharedSecret: null }, ring)
    const page = await readFile(new URL('../../docs/operations.md', import.meta.url), 'utf8')
    const [, section = ''] = page.split('**A lost key**')
    const statements = section.match(/`update [^`]+`/g)?.slice(0, 2) ?? []
    expect(statements).toHaveLength(2)
    for (const statement of statements) await pool.query(statement.slice(1, -1))
    const other = keyringOf(second, [])
    expect(await sealSecrets(pool, other)).toEqual({ sealed: 0, unsealed: 0 })
    expect(await loaded(lost, other)).toMatchObject({
      enabled: false,
      sharedSecret: null,
      nextSharedSecret: null,
      webhooks: [{ headers: {} }, { clientCertificate: null }, {}],
    })
    expect(await loaded(unsigned, other)).toMatchObject({ enabled: true })
  })

  test('copied from one row to another do not open there', async () => {
    const [from, into] = [await add(secrets, ring), await add(secrets, ring)]
    const copy = (table: string, key: string) =>
      pool.query(
        `update ${table} t set sealed = s.sealed from ${table} s where s.${key} = $1 and t.${key} = $2`,
        [from, into],
      )
    expect(await loaded(into, ring)).toMatchObject(secrets)
    await copy('destination', 'id')
    await expect(loaded(into, ring)).rejects.toMatchObject({ code: 'secret_damaged' })
  })
})
