// The settings of a source as options of `millrace source add` and `set`; "default" takes one back.
import { failing, readValue, yesOrNo } from './client.ts'
import { type Call, text, texts } from './command.ts'

const toDefault = 'default'

export const settingOptions = {
  'ip-policy': { type: 'string' },
  'trust-client-ip': { type: 'string' },
  'ignore-sent-at': { type: 'string' },
  'allowed-origin': { type: 'string', multiple: true },
  'call-bytes': { type: 'string' },
  'body-bytes': { type: 'string' },
  'batch-calls': { type: 'string' },
  'calls-per-second': { type: 'string' },
  'tracking-plan': { type: 'string' },
} as const

export const settingUsage = [
  '[--ip-policy keep|truncate|drop] [--trust-client-ip yes|no] [--ignore-sent-at yes|no]',
  '[--allowed-origin ORIGIN…] [--call-bytes N] [--body-bytes N] [--batch-calls N]',
  '[--calls-per-second N] [--tracking-plan FILE] [--workspace NAME]   ("default" takes a setting back)',
].join(' ')

type Reading = (given: string, option: string) => unknown

const wholeNumber: Reading = (given, option) => {
  if (!/^\d{1,15}$/.test(given)) throw failing([`--${option} takes a whole number`], 2)
  return Number(given)
}

const readings: Readonly<Record<string, readonly [field: string, reading: Reading]>> = {
  'ip-policy': ['ipPolicy', (given) => given],
  'trust-client-ip': ['trustClientIp', yesOrNo],
  'ignore-sent-at': ['ignoreSentAt', yesOrNo],
  'call-bytes': ['callBytesMax', wholeNumber],
  'body-bytes': ['bodyBytesMax', wholeNumber],
  'batch-calls': ['batchCallsMax', wholeNumber],
  'calls-per-second': ['callsPerSecondMax', wholeNumber],
  'tracking-plan': ['trackingPlan', readValue],
}

/** Those that were given, as the admin API takes them. */
export const settingsGiven = async (call: Call): Promise<Readonly<Record<string, unknown>>> => {
  const settings: Record<string, unknown> = {}
  for (const [option, [field, reading]] of Object.entries(readings)) {
    const given = text(call, option)
    if (given === null) continue
    settings[field] = given === toDefault ? null : await reading(given, option)
  }
  const origins = texts(call, 'allowed-origin')
  if (origins.length > 0) settings['allowedOrigins'] = origins.includes(toDefault) ? null : origins
  return settings
}

export type Settings = {
  readonly ipPolicy: string
  readonly trustClientIp: boolean
  readonly ignoreSentAt: boolean
  readonly allowedOrigins: readonly string[]
  readonly callBytesMax: number | null
  readonly bodyBytesMax: number | null
  readonly batchCallsMax: number | null
  readonly callsPerSecondMax: number | null
  readonly trackingPlan: { readonly mode: string; readonly events: object } | null
}

export const settingRows = (source: Settings): readonly (readonly [string, string])[] => {
  const { trackingPlan: plan } = source
  const limit = (value: number | null) => (value === null ? 'as the installation' : String(value))
  return [
    ['ip policy', source.ipPolicy],
    ['trust client ip', source.trustClientIp ? 'yes' : 'no'],
    ['ignore sentAt', source.ignoreSentAt ? 'yes' : 'no'],
    ['allowed origins', source.allowedOrigins.join(' ') || 'any'],
    ['call bytes', limit(source.callBytesMax)],
    ['body bytes', limit(source.bodyBytesMax)],
    ['batch calls', limit(source.batchCallsMax)],
    ['calls per second', source.callsPerSecondMax?.toString() ?? 'no quota'],
    [
      'tracking plan',
      plan === null ? 'none' : `${plan.mode}, ${Object.keys(plan.events).length} events`,
    ],
  ]
}
