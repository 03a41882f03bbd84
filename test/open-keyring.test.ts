// The keys of an installation: made once by the embedded default, from the settings elsewhere, refused when wrong.
import { mkdtemp, readdir, readFile, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { pino } from 'pino'
import { expect, test } from 'vitest'
import { type Environment, parseConfig } from '../src/config.ts'
import { newKey, seal, unseal } from '../src/control/secret.ts'
import { openKeyring } from '../src/open-keyring.ts'
import { prepareConfiguration } from '../src/prepare-configuration.ts'
import { cloneDatabase } from './support/database.ts'
import { ownFolder } from './support/folder.ts'

const directory = await ownFolder('keyring')

const open = (env: Environment) => openKeyring(parseConfig(env))

const here = async () => {
  const dataDir = await mkdtemp(join(directory, 'data-'))
  return { dataDir, path: join(dataDir, 'secret.key'), env: { MILLRACE_DATA_DIR: dataDir } }
}

test('the embedded default makes a key once, that its owner alone may read, also when many start at once', async () => {
  const { dataDir, path, env } = await here()
  const rings = await Promise.all(Array.from({ length: 8 }, () => open(env)))
  expect(new Set(rings.map(({ current }) => current?.id)).size).toBe(1)
  expect((await open(env)).current).toEqual(rings[0]?.current)
  expect((await stat(path)).mode & 0o777).toBe(0o600)
  expect(await readdir(dataDir)).toEqual(['secret.key'])
  const [one, other] = [await here(), await here()]
  expect((await open(one.env)).current?.id).not.toBe((await open(other.env)).current?.id)
})

test('a key that is set takes over from the one in the data directory, which still opens', async () => {
  const { path, env } = await here()
  const sealed = seal(await open(env), 'row', 'secret')
  const given = newKey()
  const ring = await open({ ...env, MILLRACE_SECRET_KEY: given })
  expect(unseal(ring, 'row', sealed)).toBe('secret')
  expect(ring.current?.bytes).toEqual(Buffer.from(given, 'base64'))
  expect((await readFile(path, 'utf8')).trim()).not.toBe(given)
})

test('a damaged key file is told, and not replaced', async () => {
  const { path, env } = await here()
  await writeFile(path, '')
  await expect(open(env)).rejects.toMatchObject({
    code: 'config_invalid',
    message: expect.stringContaining(path),
  })
  expect(await readFile(path, 'utf8')).toBe('')
})

test('beside a database by URL there is no key but the one that is set, and its predecessors', async () => {
  const { dataDir, env } = await here()
  const remote = { ...env, MILLRACE_DATABASE_URL: 'postgres://h/d' }
  expect(await open(remote)).toEqual({ current: null, previous: [] })
  expect(await readdir(dataDir)).toEqual([])
  const keys = {
    MILLRACE_SECRET_KEY: newKey(),
    MILLRACE_SECRET_KEY_PREVIOUS: `${newKey()}, ${newKey()}`,
  }
  expect((await open({ ...remote, ...keys })).previous).toHaveLength(2)
})

test.each(['short', `${'a'.repeat(63)}`, `${newKey()}x`])(
  '%j is no key, and is not repeated',
  (key) => {
    const read = () => parseConfig({ MILLRACE_SECRET_KEY: key, MILLRACE_SECRET_KEY_PREVIOUS: key })
    expect(read).toThrow(
      /MILLRACE_SECRET_KEY must be 32 bytes[\s\S]*MILLRACE_SECRET_KEY_PREVIOUS must be/,
    )
    expect(read).not.toThrow(new RegExp(`"${key}`))
  },
)

const file = (secret: string) =>
  JSON.stringify({
    workspaces: [
      {
        name: 'shop',
        destinations: [
          { name: 'Hooks', sharedSecret: secret, webhooks: [{ url: 'http://127.0.0.1:9/' }] },
        ],
      },
    ],
  })

test('a start rotates the key, warns without one, and ends with a fault when secrets do not open', async () => {
  const { pool } = await cloneDatabase()
  const { dataDir } = await here()
  const apply = join(dataDir, 'shop.json')
  await writeFile(apply, file('hush'))
  const lines: { readonly msg: string; readonly destinations?: number }[] = []
  const logger = pino({}, { write: (line: string) => void lines.push(JSON.parse(line)) })
  const [first, second] = [newKey(), newKey()]
  const start = async (env: Environment) => {
    const config = parseConfig({
      MILLRACE_DATABASE_URL: 'postgres://h/d',
      MILLRACE_ALLOW_PRIVATE_DESTINATIONS: 'true',
      ...env,
    })
    await prepareConfiguration({ pool, config, logger, keyring: await openKeyring(config) })
  }
  await expect(start({ MILLRACE_APPLY: apply })).rejects.toThrow(/encryption_key_missing/)
  await start({ MILLRACE_APPLY: apply, MILLRACE_SECRET_KEY: first })
  await start({ MILLRACE_SECRET_KEY: second, MILLRACE_SECRET_KEY_PREVIOUS: first })
  expect(lines.at(-1)).toMatchObject({ msg: 'secrets.sealed', destinations: 1 })
  await expect(start({ MILLRACE_SECRET_KEY: first })).rejects.toMatchObject({
    code: 'secret_key_wrong',
    message: expect.stringContaining('MILLRACE_SECRET_KEY'),
  })
  await expect(start({})).rejects.toMatchObject({ code: 'secret_key_missing' })
  // Whoever neither signs nor shows needs no key.
  await start({ MILLRACE_ROLES: 'collect,project,sync' })
  await start({ MILLRACE_SECRET_KEY: second })
  // As of before there were keys.
  await pool.query("update destination set sealed = null, shared_secret = 'hush'")
  await start({})
  expect(lines.at(-1)).toMatchObject({ msg: 'secrets.unsealed', destinations: 1 })
  await start({ MILLRACE_APPLY: apply })
  await start({ MILLRACE_SECRET_KEY: second })
  expect(lines.at(-1)).toMatchObject({ msg: 'secrets.sealed', destinations: 1 })
  expect(JSON.stringify(lines)).not.toContain('hush')
})
