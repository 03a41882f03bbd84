// Settings: defaults that give a working embedded system, and refusals that name every problem at once.
import { expect, test } from 'vitest'
import {
  addressRulesOf,
  allowsPrivateDestinations,
  describeConfig,
  parseConfig,
} from '../src/config.ts'

const problemsOf = (env: Record<string, string>) => {
  try {
    parseConfig(env)
  } catch (error) {
    return (error as Error).message.split('\n').slice(1)
  }
  return []
}

test('with no variable set it is the embedded default with every role', () => {
  expect(parseConfig({ PATH: '/bin' })).toMatchObject({
    collectPort: 8080,
    adminPort: 8081,
    host: '127.0.0.1',
    dataDir: './data',
    databaseUrl: null,
    kafkaBrokers: null,
    partitions: 12,
    roles: ['collect', 'project', 'sync', 'deliver', 'archive', 'admin'],
    adminToken: null,
    region: 'oregon',
  })
})

test('an empty variable is an absent one', () => {
  expect(parseConfig({ MILLRACE_KAFKA_BROKERS: '', MILLRACE_COLLECT_PORT: ' ' })).toEqual(
    parseConfig({}),
  )
})

test('each kind of value is read', () => {
  expect(
    parseConfig({
      MILLRACE_COLLECT_PORT: '0',
      MILLRACE_KAFKA_BROKERS: 'a:9092, b:9093',
      MILLRACE_ROLES: 'collect,admin',
      MILLRACE_ALLOW_PRIVATE_DESTINATIONS: 'false',
      MILLRACE_PUBLIC_URL: 'https://events.example:8443/collect',
      MILLRACE_ALWAYS_200: 'true',
      MILLRACE_ALLOWED_NETWORKS: '10.1.0.0/16, fd00::/8,192.0.2.7',
    }),
  ).toMatchObject({
    collectPort: 0,
    kafkaBrokers: ['a:9092', 'b:9093'],
    roles: ['collect', 'admin'],
    allowPrivateDestinations: false,
    publicUrl: 'https://events.example:8443/collect',
    always200: true,
    allowedNetworks: ['10.1.0.0/16', 'fd00::/8', '192.0.2.7'],
  })
})

test.each([
  'events.example',
  'ftp://a.test',
  'https://u:p@a.test',
  'https://a.test/?q',
  'https://',
])('the public URL may not be %s', (text) => {
  expect(problemsOf({ MILLRACE_PUBLIC_URL: text })).toHaveLength(1)
})

test.each([
  ['MILLRACE_COLLECT_PORT', '65536'],
  ['MILLRACE_COLLECT_PORT', '80.5'],
  ['MILLRACE_ADMIN_PORT', 'http'],
  ['MILLRACE_DATABASE_URL', 'mysql://localhost'],
  ['MILLRACE_KAFKA_BROKERS', 'localhost'],
  ['MILLRACE_KAFKA_BROKERS', 'a:9092,,b:9092'],
  ['MILLRACE_ROLES', 'collect,collect'],
  ['MILLRACE_ROLES', 'ingest'],
  ['MILLRACE_ADMIN_TOKEN', 'short'],
  ['MILLRACE_REGION', 'Oregon'],
  ['MILLRACE_ALLOW_PRIVATE_DESTINATIONS', 'yes'],
  ['MILLRACE_PARTITIONS', '0'],
])('%s=%s is refused by its name', (name, value) => {
  expect(problemsOf({ [name]: value })).toEqual([expect.stringContaining(`${name} must be `)])
})

test('all problems are reported at once', () => {
  expect(
    problemsOf({ MILLRACE_COLLECT_PORT: '-1', MILLRACE_HOTS: '::1', MILLRACE_REGION: 'paris' }),
  ).toEqual([
    '  MILLRACE_COLLECT_PORT must be a port, 0 to 65535 (0: any free one), not "-1"',
    '  MILLRACE_REGION must be oregon or dublin, not "paris"',
    expect.stringContaining('  MILLRACE_HOTS is not a setting'),
  ])
})

test('a trusted proxy that no address can match is a problem', () => {
  expect(parseConfig({ MILLRACE_TRUSTED_PROXIES: '10.0.0.0/8, fd00::/8,::1' })).toMatchObject({
    trustedProxies: ['10.0.0.0/8', 'fd00::/8', '::1'],
  })
  expect(problemsOf({ MILLRACE_TRUSTED_PROXIES: '10.0.0.0/33,10.0.0.1,1:2' })).toEqual([
    '  MILLRACE_TRUSTED_PROXIES holds "10.0.0.0/33", which is no address or network',
    '  MILLRACE_TRUSTED_PROXIES holds "1:2", which is no address or network',
  ])
})

test('a secret is neither described nor quoted in a refusal', () => {
  const secrets = {
    MILLRACE_ADMIN_TOKEN: 'token-0123456789-xyzzy',
    MILLRACE_DATABASE_URL: 'postgres://user:xyzzy@host/millrace?password=xyzzy',
    MILLRACE_SCHEMA_REGISTRY_URL: 'https://user:xyzzy@registry',
  }
  const described = JSON.stringify(describeConfig(parseConfig(secrets)))
  expect(described).not.toContain('xyzzy')
  expect(described).toContain('host/millrace')
  expect(problemsOf({ MILLRACE_ADMIN_TOKEN: 'xyzzy', MILLRACE_DATABASE_URL: 'xyzzy' })).toEqual([
    expect.not.stringContaining('xyzzy'),
    expect.not.stringContaining('xyzzy'),
  ])
})

test('private destinations are allowed embedded, and refused beside a database by URL, unless set', () => {
  const url = { MILLRACE_DATABASE_URL: 'postgres://h/d' }
  const set = { MILLRACE_ALLOW_PRIVATE_DESTINATIONS: 'true' }
  expect(allowsPrivateDestinations(parseConfig({}))).toBe(true)
  expect(allowsPrivateDestinations(parseConfig(url))).toBe(false)
  expect(allowsPrivateDestinations(parseConfig({ ...url, ...set }))).toBe(true)
})

test('where webhooks may go follows from both of its settings', () => {
  expect(addressRulesOf(parseConfig({}))).toEqual({ allowPrivate: true, allowed: [] })
  const set = { MILLRACE_DATABASE_URL: 'postgres://h/d', MILLRACE_ALLOWED_NETWORKS: '10.1.0.0/16' }
  expect(addressRulesOf(parseConfig(set))).toEqual({
    allowPrivate: false,
    allowed: ['10.1.0.0/16'],
  })
})

test.each(['10.0.0.0/33', '300.1.1.1', 'fd00::/129', 'a.test'])(
  '%s is no network that could be allowed',
  (text) => {
    expect(problemsOf({ MILLRACE_ALLOWED_NETWORKS: text })).toEqual([
      expect.stringContaining('MILLRACE_ALLOWED_NETWORKS'),
    ])
  },
)

test('nothing starts where the environment switches the verification of certificates off', () => {
  expect(problemsOf({ NODE_TLS_REJECT_UNAUTHORIZED: '0' })).toEqual([
    expect.stringMatching(/NODE_TLS_REJECT_UNAUTHORIZED must not be 0.*NODE_EXTRA_CA_CERTS/),
  ])
  expect(problemsOf({ NODE_TLS_REJECT_UNAUTHORIZED: '1' })).toEqual([])
})

test('an archive is a folder or a bucket, and a bucket needs credentials', () => {
  expect(problemsOf({ MILLRACE_ARCHIVE: './archive', MILLRACE_ARCHIVE_DAYS: '0' })).toEqual([])
  expect(problemsOf({ MILLRACE_ARCHIVE: 'gs://events' })).toHaveLength(1)
  expect(problemsOf({ MILLRACE_ARCHIVE: 's3://events' })).toHaveLength(1)
  const credentials = {
    MILLRACE_ARCHIVE_ACCESS_KEY_ID: 'id',
    MILLRACE_ARCHIVE_SECRET_ACCESS_KEY: 'secret',
  }
  expect(problemsOf({ MILLRACE_ARCHIVE: 's3://events', ...credentials })).toEqual([])
  const shown = JSON.stringify(
    describeConfig(parseConfig({ MILLRACE_ARCHIVE: 's3://events', ...credentials })),
  )
  expect(shown).not.toContain('"secret"')
})

test('a process that is to archive alone must be told where', () => {
  expect(problemsOf({ MILLRACE_ROLES: 'archive' })).toHaveLength(1)
  expect(problemsOf({ MILLRACE_ROLES: 'archive', MILLRACE_ARCHIVE: 'a' })).toEqual([])
  expect(problemsOf({})).toEqual([])
})
