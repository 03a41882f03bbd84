// What may be set for a source beside its name, class and keys: the form it is written in, and its checks.
import Type, { type Static, type TSchema } from 'typebox'
import { defaultSourceSettings, ipPolicies, type SourceSettings } from '../domain/configuration.ts'
import type { JsonObject } from '../domain/message.ts'
import { planModes, type TrackingPlan } from '../domain/tracking-plan.ts'
import { at, type Problem } from './problem.ts'
import { closed, oneOf } from './schema.ts'
import { trackingPlanProblems } from './tracking-plan.ts'

const originsMax = 100
const originCharactersMax = 300

const setting = <T extends TSchema>(schema: T, description: string) =>
  Type.Optional(Type.Union([schema, Type.Null()], { description }))

const limit = (minimum: number, maximum: number, what: string) =>
  setting(
    Type.Integer({ minimum, maximum }),
    `${what}; ${minimum} to ${maximum}; null: as the installation.`,
  )

const TrackingPlanInput = closed({
  mode: oneOf(planModes),
  events: Type.Unsafe<Record<string, JsonObject>>({
    type: 'object',
    additionalProperties: { type: 'object' },
    description: 'By the name of a track call: a JSON Schema of its properties.',
  }),
  unplanned: Type.Optional(oneOf(['forbid', 'allow'])),
})

/** Written flat beside the source's other fields; `null` is the default again. */
export const settingInputs = {
  ipPolicy: setting(
    oneOf(ipPolicies),
    'What is kept of addresses: all (keep), their network (truncate), nothing (drop).',
  ),
  trustClientIp: setting(
    Type.Boolean(),
    'Whether the context.ip a page claims stands over the address it comes from.',
  ),
  ignoreSentAt: setting(
    Type.Boolean(),
    "Whether a client's clock is left alone, whatever it says it was sent at.",
  ),
  allowedOrigins: setting(
    Type.Array(Type.String()),
    'Origins whose pages may send, like https://shop.example; empty: any.',
  ),
  callBytesMax: limit(1_024, 1_048_576, 'Bytes of one call'),
  bodyBytesMax: limit(1_024, 4_194_304, 'Bytes of a request after decompression'),
  batchCallsMax: limit(1, 10_000, 'Calls of one batch'),
  callsPerSecondMax: setting(
    Type.Integer({ minimum: 1, maximum: 10_000_000 }),
    'Over all processes; null: no quota.',
  ),
  trackingPlan: setting(TrackingPlanInput, 'Which track calls are expected; null: any.'),
}

const SettingsInput = Type.Object(settingInputs)
type SettingsInput = Static<typeof SettingsInput>

export const settingNames = Object.keys(defaultSourceSettings) as readonly (keyof SourceSettings)[]

/** The settings that were given, in the form they are kept in. */
export const settingsOf = (input: SettingsInput): Partial<SourceSettings> => {
  const given = settingNames.filter((name) => input[name] !== undefined)
  return Object.fromEntries(given.map((name) => [name, kept(name, input)]))
}

const kept = (name: keyof SourceSettings, input: SettingsInput): unknown => {
  const value = input[name] ?? defaultSourceSettings[name]
  if (name === 'allowedOrigins')
    return [...new Set((input.allowedOrigins ?? []).map((text) => originOf(text) ?? text))]
  // One order of fields, so that the same plan is the same text.
  if (name === 'trackingPlan' && input.trackingPlan) {
    const { mode, events, unplanned = 'forbid' } = input.trackingPlan
    return { mode, events, unplanned } satisfies TrackingPlan
  }
  return value
}

/** As browsers write it in the Origin header; `null` for what no browser would send. */
const originOf = (text: string): string | null => {
  if (text.length > originCharactersMax || !/^[a-z][a-z0-9+.-]*:\/\/[^\s/\\?#@]+$/i.test(text))
    return null
  const url = URL.parse(text)
  if (!url || url.host === '' || url.host.includes('*')) return null
  return `${url.protocol}//${url.host}`.toLowerCase()
}

/** Of what is new only: what is kept was checked when it was saved. */
export const settingsProblems = async (
  settings: Partial<SourceSettings>,
  current: SourceSettings,
  path: string,
): Promise<readonly Problem[]> => {
  const { allowedOrigins = [], trackingPlan = null } = settings
  const isNewPlan = JSON.stringify(trackingPlan) !== JSON.stringify(current.trackingPlan)
  return [
    ...originProblems(allowedOrigins, at(path, 'allowedOrigins')),
    ...(trackingPlan !== null && isNewPlan
      ? await trackingPlanProblems(trackingPlan, at(path, 'trackingPlan'))
      : []),
  ]
}

const originProblems = (origins: readonly string[], path: string): readonly Problem[] => {
  const problems: Problem[] = origins.flatMap((text, index) =>
    originOf(text) === null
      ? [
          {
            code: 'origin_invalid',
            path: at(path, index),
            message: `"${text}" is no origin like "https://shop.example" or "http://localhost:3000": scheme, host and port, without a path`,
          },
        ]
      : [],
  )
  if (origins.length > originsMax)
    problems.unshift({
      code: 'origins_too_many',
      path,
      message: `a source has at most ${originsMax} origins, this one has ${origins.length}`,
    })
  return problems
}
