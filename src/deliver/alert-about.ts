// What an alert says of whom it is about: never a body, a secret, or a URL's query.
import type { Live } from '../domain/configuration.ts'
import { urlKey } from '../domain/url-key.ts'
import type { About } from './alert-store.ts'
import type { Level } from './episode-write.ts'

export const aboutDestination = (live: Live, destinationId: number): About => {
  const destination = live.now().destinations.get(destinationId)
  return {
    workspaceId: destination?.workspaceId ?? null,
    destinationId,
    destination: destination?.name ?? null,
  }
}

/** A query and a password may be secrets. */
export const bareUrl = (url: string): string => {
  const parsed = URL.parse(url)
  return parsed ? `${parsed.origin}${parsed.pathname}` : 'invalid'
}

/** The same within a key, which has to fit into an index. */
export const bareKey = (url: string): string => urlKey(bareUrl(url))

const recoveredKey = (destinationId: number, url: string): string =>
  `destination.recovered ${destinationId} ${bareKey(url)}`

/** By its answers, or because it is posted to again. */
export const recoveredKeys = (destinationId: number, url: string): readonly string[] => {
  const key = recoveredKey(destinationId, url)
  return [`${key} 0`, key]
}

export const levelEvent = (live: Live, { destinationId, url: whole, level, answer }: Level) => {
  const url = bareUrl(whole)
  const type = level === 0 ? ('destination.recovered' as const) : ('destination.failing' as const)
  const reason = answer.type === 'delivered' ? null : answer.reason
  const status = answer.type === 'delivered' ? null : answer.status
  const percent = level === 0 ? {} : { failurePercent: level }
  const about = { ...aboutDestination(live, destinationId), url, ...percent, reason, status }
  return { type, key: `${type} ${destinationId} ${bareKey(whole)} ${level}`, about }
}
