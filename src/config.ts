// Everything an operator can set, read from the environment once; all problems are reported at once.
import { type Static, type TSchema, Type } from 'typebox'
import { Value } from 'typebox/value'
import { regions } from './domain/configuration.ts'
import { Fault } from './fault.ts'

export const roles = ['collect', 'project', 'sync', 'deliver', 'admin'] as const
export type Role = (typeof roles)[number]

export type Environment = Readonly<Record<string, string | undefined>>

/** What the schema carries beside the type: where a value comes from and how it is shown. */
type Setting = {
  readonly variable: string
  readonly reading: 'text' | 'number' | 'boolean' | 'list'
  /** Completes "must be …". */
  readonly description: string
  /** Grants access: printed as `***`. A URL keeps everything but its password. */
  readonly secret?: 'whole' | 'password'
}

const setting = <T extends TSchema>(schema: T, about: Setting): T => ({ ...schema, ...about })

const orNull = <T extends TSchema>(schema: T) =>
  Type.Union([schema, Type.Null()], { default: null })

const integer = (minimum: number, maximum: number, fallback: number) =>
  Type.Integer({ minimum, maximum, default: fallback })

const number = (variable: string, description: string): Setting => ({
  variable,
  reading: 'number',
  description,
})

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
  problems.push(...unknownVariables(env))
  if (problems.length > 0)
    throw new Fault('config_invalid', `the configuration is refused:\n  ${problems.join('\n  ')}`)
  return values as Config
}

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

export const allowsPrivateDestinations = (config: Config): boolean =>
  config.allowPrivateDestinations ?? isEmbedded(config)
