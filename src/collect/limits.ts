// Every bound of the collect stage, with its default, and what a source's settings make of them.
import type { Configuration, Source } from '../domain/configuration.ts'
import type { CallLimits } from '../domain/normalise.ts'
import type { LoadLimits } from './gate/load.ts'

export type CollectLimits = CallLimits &
  LoadLimits & {
    /** After decompression; the compressed body may be as large. */
    readonly bodyBytesMax: number
    /** Decompressed bytes over compressed bytes. */
    readonly ratioMax: number
    readonly batchCallsMax: number
    /** The stored bodies of one request: a batch's context is written under every call. */
    readonly storedBytesMax: number
    /** One stored call: what any log takes as one entry. */
    readonly entryBytesMax: number
    /** Of the User-Agent header, as far as it is stored. */
    readonly userAgentLengthMax: number
    /** Bodies being read and values being appended, over all requests of this process. */
    readonly inFlightBytesMax: number
    /** Of these, beyond which requests that hold a historical call are refused. */
    readonly historicalBytesMax: number
    /** How long a client waits when demand just meets what can be met. */
    readonly retryAfterSeconds: number
    /** From the last byte of the body to 503. */
    readonly appendMsMax: number
    /** From the first byte of a request to its last. */
    readonly requestMsMax: number
    readonly drainMsMax: number
    /** Older at receipt than this, a call goes to `calls.import`. */
    readonly liveMsMax: number
  }

export const collectLimits: CollectLimits = {
  callBytesMax: 32_768,
  depthMax: 64,
  propertiesMax: 10_000,
  messageIdLengthMax: 100,
  idLengthMax: 512,
  bodyBytesMax: 524_288,
  ratioMax: 100,
  batchCallsMax: 2_500,
  storedBytesMax: 4_194_304,
  entryBytesMax: 1_000_000,
  userAgentLengthMax: 512,
  inFlightBytesMax: 67_108_864,
  historicalBytesMax: 33_554_432,
  retryAfterSeconds: 2,
  loopDelayMsMax: 500,
  loopSampleEveryMs: 250,
  loopSamples: 3,
  appendMsMax: 4_800,
  requestMsMax: 30_000,
  drainMsMax: 25_000,
  liveMsMax: 86_400_000,
}

/** Whatever a source's settings say: a body is decompressed and parsed in one go, and others wait for it. */
export const bytesHardMax = 4_194_304

/** A call may be stored with more than it came with. */
const storedFactor = 2

export const limitsOf = (
  limits: CollectLimits,
  { settings }: Pick<Source, 'settings'>,
): CollectLimits => {
  const { callBytesMax, bodyBytesMax, batchCallsMax } = settings
  if (callBytesMax === null && bodyBytesMax === null && batchCallsMax === null) return limits
  const bodyBytes = Math.min(bytesHardMax, bodyBytesMax ?? limits.bodyBytesMax)
  return {
    ...limits,
    callBytesMax: Math.min(bytesHardMax, callBytesMax ?? limits.callBytesMax),
    bodyBytesMax: bodyBytes,
    batchCallsMax: batchCallsMax ?? limits.batchCallsMax,
    storedBytesMax: Math.max(limits.storedBytesMax, storedFactor * bodyBytes),
  }
}

/** The most that any source may send: how far a body is read before it says whose it is. */
export const openBodyBytesMax = (
  limits: CollectLimits,
): ((configuration: Configuration) => number) => {
  let known: Configuration | null = null
  let bytesMax = limits.bodyBytesMax
  return (configuration) => {
    if (configuration === known) return bytesMax
    known = configuration
    bytesMax = limits.bodyBytesMax
    for (const source of configuration.sources.values())
      if (source.enabled) bytesMax = Math.max(bytesMax, limitsOf(limits, source).bodyBytesMax)
    return bytesMax
  }
}
