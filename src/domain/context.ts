// The context a call is stored with: its own over its batch's, and what the request shows of its client.
import type { SourceSettings } from './configuration.ts'
import { keptAddress } from './ip.ts'
import { isObject, type Json, type JsonObject } from './message.ts'
import type { Receipt } from './normalise.ts'

const library = { name: 'http', version: 'v1' } as const

type Context = Record<string, Json>

export const contextOf = (call: JsonObject, receipt: Receipt): JsonObject => {
  const own = isObject(call['context']) ? call['context'] : {}
  const context: Context = { ...receipt.context, ...own }
  const isClient = receipt.source.class !== 'server' || context['direct'] === true
  const ip = ipOf({ own, isClient }, receipt)
  if (ip !== undefined) context['ip'] = ip
  else if ('ip' in context) delete context['ip']
  if (isClient && receipt.userAgent !== null && isAbsent(context['userAgent']))
    context['userAgent'] = receipt.userAgent
  if (isAbsent(context['library'])) context['library'] = library
  return context
}

type Told = { readonly own: JsonObject; readonly isClient: boolean }

/**
 * What a page claims of its address is not believed; a server, and a page that is trusted, know better.
 * The source's policy is about what is stored, whoever said it.
 */
const ipOf = ({ own, isClient }: Told, { source, context, ip }: Receipt): Json | undefined => {
  const { ipPolicy, trustClientIp } = source.settings
  const claimed = policed(own['ip'], ipPolicy) ?? policed(context['ip'], ipPolicy)
  if (!isClient) return claimed
  if ((source.class === 'server' || trustClientIp) && claimed !== undefined) return claimed
  return ip === null ? undefined : policed(ip, ipPolicy)
}

const policed = (ip: Json | undefined, policy: SourceSettings['ipPolicy']) =>
  isAbsent(ip) ? undefined : keptAddress(ip, policy)

const isAbsent = (value: Json | undefined): value is null | undefined | '' =>
  value === undefined || value === null || value === ''
