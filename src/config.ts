// Everything an operator can set, read from the environment once; all problems are reported at once.
import { type Static, type TSchema, Type } from 'typebox'
import { Value } from 'typebox/value'
import { archiveProblems, archiveSettings } from './archiving.ts'
import { regions } from './domain/configuration.ts'
import { readNetwork } from './domain/ip.ts'
import { Fault } from './fault.ts'
import { keepingSettings } from './keeping.ts'
import { integer, number, orNull, type Setting, setting } from './setting.ts'

export const roles = ['collect', 'project', 'sync', 'deliver', 'archive', 'admin'] as const
export type Role = (typeof roles)[number]

export type Environment = Readonly<Record<string, string | undefined>>

const secretKeyPattern = '^([0-9A-Fa-f]{64}|[A-Za-z0-9+/_-]{43}=?)$'

export const configSchema = Type.Object({
  collectPort: setting(
    integer(0, 65_535, 8080),
    number('MILLRACE_COLLECT_PORT', 'a port, 0 to 65535 (0: any free one)'),
  ),
  adminPort: setting(
    integer(0, 65_535, 8081),
    number('MILLRACE_ADMIN_PORT', 'a port, 0 to 65535 (0: any free one)'),
  ),
  host: setting(Type.String({ minLength: 1, default: '127.0.0.1' }), {
    variable: 'MILLRACE_HOST',
    reading: 'text',
    description: 'an address to listen on',
  }),
  dataDir: setting(Type.String({ minLength: 1, default: './data' }), {
    variable: 'MILLRACE_DATA_DIR',
    reading: 'text',
    description: 'a directory',
  }),
  /** Addresses and networks whose X-Forwarded-For names the client. */
  trustedProxies: setting(
    Type.Array(Type.String({ pattern: '^[0-9A-Fa-f:.]+(/\\d{1,3})?$' }), { default: [] }),
    {
      variable: 'MILLRACE_TRUSTED_PROXIES',
      reading: 'list',
      description: 'a list of addresses or networks like 10.0.0.0/8, separated by commas',
    },
  ),
  publicUrl: setting(
    orNull(
      Type.String({
        pattern: '^https?://(\\[[0-9A-Fa-f:]+\\]|[A-Za-z0-9._-]+)(:\\d{1,5})?(/[^\\s?#]*)?$',
      }),
    ),
    {
      variable: 'MILLRACE_PUBLIC_URL',
      reading: 'text',
      description: 'a URL with http or https, without query, fragment or password',
    },
  ),
  always200: setting(Type.Boolean({ default: false }), {
    variable: 'MILLRACE_ALWAYS_200',
    reading: 'boolean',
    description: 'true or false',
  }),
  databaseUrl: setting(orNull(Type.String({ pattern: '^postgres(ql)?://' })), {
    variable: 'MILLRACE_DATABASE_URL',
    reading: 'text',
    description: 'a URL like postgres://user:password@host:5432/database',
    secret: 'password',
  }),
  databaseConnections: setting(
    integer(12, 500, 24),
    number('MILLRACE_DATABASE_CONNECTIONS', 'a number of connections, 12 to 500'),
  ),
  kafkaBrokers: setting(
    orNull(Type.Array(Type.String({ pattern: '^[^\\s,:]+:\\d{1,5}$' }), { minItems: 1 })),
    {
      variable: 'MILLRACE_KAFKA_BROKERS',
      reading: 'list',
      description: 'a list of host:port, separated by commas',
    },
  ),
  /** Before every topic and group, where several installations share a cluster. */
  kafkaPrefix: setting(Type.String({ pattern: '^[A-Za-z0-9._-]{0,100}$', default: '' }), {
    variable: 'MILLRACE_KAFKA_PREFIX',
    reading: 'text',
    description: 'at most 100 letters, digits, dots, underscores and hyphens',
  }),
  schemaRegistryUrl: setting(orNull(Type.String({ pattern: '^https?://' })), {
    variable: 'MILLRACE_SCHEMA_REGISTRY_URL',
    reading: 'text',
    description: 'a URL with http or https',
    secret: 'password',
  }),
  partitions: setting(
    integer(1, 1_024, 12),
    number('MILLRACE_PARTITIONS', 'a number of partitions, 1 to 1024'),
  ),
  retentionDays: setting(
    integer(1, 3_650, 7),
    number('MILLRACE_RETENTION_DAYS', 'a number of days, 1 to 3650'),
  ),
  roles: setting(
    Type.Array(Type.Enum([...roles]), { minItems: 1, uniqueItems: true, default: [...roles] }),
    {
      variable: 'MILLRACE_ROLES',
      reading: 'list',
      description: `a list of distinct roles out of ${roles.join(', ')}, separated by commas`,
    },
  ),
  adminToken: setting(orNull(Type.String({ pattern: '^[\\x21-\\x7e]{16,256}$' })), {
    variable: 'MILLRACE_ADMIN_TOKEN',
    reading: 'text',
    description: '16 to 256 printable characters without spaces',
    secret: 'whole',
  }),
  apply: setting(orNull(Type.String({ minLength: 1 })), {
    variable: 'MILLRACE_APPLY',
    reading: 'text',
    description: 'a file as `millrace apply` takes it',
  }),
  region: setting(Type.Enum([...regions], { default: regions[0] }), {
    variable: 'MILLRACE_REGION',
    reading: 'text',
    description: 'oregon or dublin',
  }),
  /** `null`: allowed on the embedded default, refused where the database is given by URL. */
  allowPrivateDestinations: setting(orNull(Type.Boolean()), {
    variable: 'MILLRACE_ALLOW_PRIVATE_DESTINATIONS',
    reading: 'boolean',
    description: 'true or false',
  }),
  /** Where webhooks may go whatever else holds: also to reserved addresses, and where private ones are refused. */
  allowedNetworks: setting(Type.Array(Type.String(), { default: [] }), {
    variable: 'MILLRACE_ALLOWED_NETWORKS',
    reading: 'list',
    description: 'a list of addresses or networks like 10.1.0.0/16, separated by commas',
  }),
  /** What secrets of the configuration are sealed with; embedded, one is made and kept in the data directory. */
  secretKey: setting(orNull(Type.String({ pattern: secretKeyPattern })), {
    variable: 'MILLRACE_SECRET_KEY',
    reading: 'text',
    description: '32 bytes in base64 or hex, as `openssl rand -base64 32` makes them',
    secret: 'whole',
  }),
  /** What still opens secrets that were sealed with it. */
  secretKeyPrevious: setting(
    orNull(Type.Array(Type.String({ pattern: secretKeyPattern }), { maxItems: 5 })),
    {
      variable: 'MILLRACE_SECRET_KEY_PREVIOUS',
      reading: 'list',
      description: 'up to five keys as MILLRACE_SECRET_KEY takes them, separated by commas',
      secret: 'whole',
    },
  ),
  ...archiveSettings,
  ...keepingSettings,
  /** Signed events about what operators should look at. */
  operatorWebhookUrl: setting(orNull(Type.String({ pattern: '^https?://[^\\s@]+$' })), {
    variable: 'MILLRACE_OPERATOR_WEBHOOK_URL',
    reading: 'text',
    description: 'a URL with http or https, without a password',
    secret: 'whole',
  }),
  operatorWebhookSecret: setting(orNull(Type.String({ pattern: '^[\\x21-\\x7e]{1,1024}$' })), {
    variable: 'MILLRACE_OPERATOR_WEBHOOK_SECRET',
    reading: 'text',
    description: '1 to 1,024 printable characters without spaces',
    secret: 'whole',
  }),
  logLevel: setting(Type.Enum(['debug', 'info', 'warn', 'error', 'silent'], { default: 'info' }), {
    variable: 'MILLRACE_LOG_LEVEL',
    reading: 'text',
    description: 'debug, info, warn, error or silent',
  }),
})

export type Config = Readonly<Static<typeof configSchema>>

const settings = Object.entries(configSchema.properties) as unknown as readonly [
  keyof Config,
  TSchema & Setting,
][]

/** Throws one `Fault` naming every problem; an unknown MILLRACE_ variable is a problem, not a default. */
export const parseConfig = (env: Environment): Config => {
  const problems: string[] = []
  const values: Record<string, unknown> = {}
  for (const [key, schema] of settings) {
    const text = env[schema.variable]?.trim()
    if (text === undefined || text === '') {
      values[key] = Value.Default(schema, undefined)
      continue
    }
    values[key] = read(schema.reading, text)
    if (!Value.Check(schema, values[key]))
      problems.push(
        `${schema.variable} must be ${schema.description}${schema.secret ? '' : `, not "${text}"`}`,
      )
  }
  problems.push(
    ...networkProblems(values as Config),
    ...archiveProblems(values as Config, isSet(env['MILLRACE_ROLES'])),
    ...verificationProblems(env),
    ...unknownVariables(env),
  )
  if (problems.length > 0)
    throw new Fault('config_invalid', `the configuration is refused:\n  ${problems.join('\n  ')}`)
  return values as Config
}

const isSet = (text: string | undefined): boolean => (text ?? '').trim() !== ''

/** Beyond what a pattern can say. */
const networkProblems = ({ trustedProxies, allowedNetworks }: Config): readonly string[] =>
  [
    ['MILLRACE_TRUSTED_PROXIES', trustedProxies] as const,
    ['MILLRACE_ALLOWED_NETWORKS', allowedNetworks] as const,
  ].flatMap(([variable, networks]) =>
    networks
      .filter((text) => readNetwork(text) === null)
      .map((text) => `${variable} holds "${text}", which is no address or network`),
  )

const read = (reading: Setting['reading'], text: string): unknown => {
  switch (reading) {
    case 'text':
      return text
    case 'number':
      return /^\d+$/.test(text) ? Number(text) : text
    case 'boolean':
      return text === 'true' || (text === 'false' ? false : text)
    case 'list':
      return text.split(',').map((item) => item.trim())
  }
}

/** Its own connections verify whatever it says; those of libraries to Kafka, Postgres or a registry would not. */
const verificationProblems = (env: Environment): readonly string[] =>
  env['NODE_TLS_REJECT_UNAUTHORIZED'] === '0'
    ? [
        'NODE_TLS_REJECT_UNAUTHORIZED must not be 0: it switches the verification of certificates off for the whole process; NODE_EXTRA_CA_CERTS names a file of authorities to trust besides',
      ]
    : []

const unknownVariables = (env: Environment): readonly string[] => {
  const known = settings.map(([, { variable }]) => variable)
  return Object.keys(env)
    .filter((name) => name.startsWith('MILLRACE_') && !known.includes(name))
    .map((name) => `${name} is not a setting; the settings are ${known.join(', ')}`)
}

/** The resolved configuration for people: by variable, secrets redacted. */
export const describeConfig = (config: Config): Readonly<Record<string, unknown>> =>
  Object.fromEntries(
    settings.map(([key, { variable, secret }]) => [variable, redact(config[key], secret)]),
  )

const redact = (value: unknown, secret: Setting['secret']): unknown => {
  if (value === null || secret === undefined) return value
  return secret === 'whole' ? '***' : redactUrl(String(value))
}

const redactUrl = (text: string) => {
  if (!URL.canParse(text)) return '***'
  const url = new URL(text)
  if (url.password !== '') url.password = '***'
  if (url.searchParams.has('password')) url.searchParams.set('password', '***')
  return url.href
}

export const isEmbedded = (config: Config): boolean => config.databaseUrl === null

/** Where webhooks may go. */
export const addressRulesOf = (config: Config) => ({
  allowPrivate: allowsPrivateDestinations(config),
  allowed: config.allowedNetworks,
})

export const allowsPrivateDestinations = (config: Config): boolean =>
  config.allowPrivateDestinations ?? isEmbedded(config)

/** Processes that only collect, project and sync need no key: they neither sign nor show what is signed with. */
export const readsSecrets = ({ roles, apply }: Config): boolean =>
  apply !== null || roles.includes('deliver') || roles.includes('admin')
