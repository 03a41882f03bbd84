// Counts what browsers and phones count about themselves: names we know, and one name for all others.
import { isObject, type Json } from '../domain/message.ts'
import { type Answer, type Refusal, refuse, success } from './answer/answer.ts'
import type { Count } from './count.ts'
import type { Deps } from './deps.ts'
import { shedLate } from './gate/admit.ts'
import { answerRefused } from './receive.ts'
import { parseJson, readBody } from './request/body.ts'
import type { Request } from './request/request.ts'

/** Nobody proves who they are here, so that nobody may make up a metric of ours. */
const known: ReadonlySet<unknown> = new Set([
  'analytics_js.invoke',
  'analytics_js.invoke.error',
  'analytics_js.integration.invoke',
  'analytics_js.integration.invoke.error',
  'analytics_mobile.invoke',
  'analytics_mobile.invoke.error',
  'analytics_mobile.integration.invoke',
  'analytics_mobile.integration.invoke.error',
])

export const clientMetricsLimits = { seriesMax: 1_000, valueMax: 1_000_000 } as const

/** `null` when the client went away before its body ended. */
export const receiveClientMetrics = async (
  deps: Deps,
  request: Pick<Request, 'stream' | 'encoding' | 'userAgent'>,
): Promise<Answer | null> => {
  const { stream, encoding } = request
  const late = shedLate(deps)
  if (late) return answerRefused(deps, late, request)
  const share = deps.pressure.open()
  try {
    const body = await readBody(stream, { ...deps.limits, encoding, share })
    if (body === null) return null
    const parsed = Buffer.isBuffer(body) ? parseJson(body) : body
    const outcome = 'refused' in parsed ? parsed : countClientMetrics(parsed.json, deps.count)
    return 'refused' in outcome ? answerRefused(deps, outcome, request) : outcome
  } finally {
    share.close()
  }
}

const countClientMetrics = (json: Json, count: Count): Answer | Refusal => {
  if (!isObject(json)) return refuse('body_not_object', 'the body is not a JSON object')
  const series = json['series']
  if (!Array.isArray(series)) return refuse('series_not_array', 'the body has no array "series"')
  const sums = new Map<string, number>()
  for (const item of series.slice(0, clientMetricsLimits.seriesMax)) {
    const read = readCounter(item)
    if (read) sums.set(read.metric, (sums.get(read.metric) ?? 0) + read.value)
  }
  for (const [metric, amount] of sums) count('clients.counted', { metric }, amount)
  return success
}

const readCounter = (item: Json): { readonly metric: string; readonly value: number } | null => {
  if (!isObject(item) || item['type'] !== 'Counter') return null
  const { metric, value } = item
  if (typeof metric !== 'string' || typeof value !== 'number') return null
  if (!(value >= 0 && value <= clientMetricsLimits.valueMax)) return null
  return { metric: known.has(metric) ? metric : 'other', value }
}
