// The settings document browsers and phones load before they send: where to, and nothing else to load.
import { hash } from 'node:crypto'
import { type Answer, answerRefusal, jsonAnswer, refuse } from './answer.ts'
import type { Place } from './place.ts'

/** How long clients keep trying: a day's outage of ours must not cost what they hold. */
const httpConfig = {
  rateLimitConfig: {
    enabled: true,
    maxRetryCount: 100,
    maxRetryInterval: 300,
    maxRateLimitDuration: 43_200,
    maxTotalBackoffDuration: 43_200,
  },
  backoffConfig: {
    enabled: true,
    maxRetryCount: 100,
    baseBackoffInterval: 0.5,
    maxBackoffInterval: 300,
    maxTotalBackoffDuration: 43_200,
    jitterPercent: 10,
  },
} as const

const enabled = { __default: { enabled: true, integrations: {} } } as const

/**
 * Exactly one integration: for any other a browser would load code from elsewhere. `apiHost` overrides
 * what a mobile client was told, and a sample rate of 0 keeps its counters from their vendor.
 */
const documentOf = (writeKey: string, { protocol, apiHost }: Place) => ({
  integrations: {
    'Segment.io': {
      apiKey: writeKey,
      apiHost,
      protocol,
      addBundledMetadata: true,
      unbundledIntegrations: [],
      bundledConfigIds: [],
      unbundledConfigIds: [],
      maybeBundledConfigIds: {},
      versionSettings: { version: '4.4.7', componentTypes: ['browser'] },
      httpConfig,
    },
  },
  plan: { track: enabled, identify: enabled, group: enabled },
  metrics: { sampleRate: 0, host: apiHost },
  edgeFunction: {},
  middlewareSettings: { routingRules: [] },
  enabledMiddleware: {},
  remotePlugins: [],
  legacyVideoPluginsEnabled: false,
  analyticsNextEnabled: true,
})

export const answerSettings = (
  writeKey: string,
  place: Place,
  ifNoneMatch: string | undefined,
): Answer => {
  const answer = jsonAnswer(documentOf(writeKey, place), {})
  const etag = `"${hash('sha256', answer.body, 'base64url').slice(0, 27)}"`
  const headers = { etag, 'cache-control': 'public, max-age=60', vary: 'Origin' }
  return isHeld(ifNoneMatch, etag) ? { status: 304, body: '', headers } : { ...answer, headers }
}

/** A proxy that compresses makes a tag weak; the document behind it is the same. */
const isHeld = (ifNoneMatch: string | undefined, etag: string) =>
  (ifNoneMatch ?? '')
    .split(',')
    .map((tag) => tag.trim().replace(/^W\//, ''))
    .some((tag) => tag === etag || tag === '*')

export const noSettings: Answer = {
  ...answerRefusal(refuse('not_found', 'no source has this write key')),
  headers: { 'cache-control': 'no-store', vary: 'Origin' },
}
