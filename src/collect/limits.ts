// Every bound of the collect stage, with its default.
import type { CallLimits } from '../domain/normalise.ts'

export type CollectLimits = CallLimits & {
  /** After decompression; the compressed body may be as large. */
  readonly bodyBytesMax: number
  /** Decompressed bytes over compressed bytes. */
  readonly ratioMax: number
  readonly batchCallsMax: number
  /** The stored bodies of one request: a batch's context is written under every call. */
  readonly storedBytesMax: number
  /** Of the User-Agent header, as far as it is stored. */
  readonly userAgentLengthMax: number
  /** Bodies being read and values being appended, over all requests of this process. */
  readonly inFlightBytesMax: number
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
  messageIdLengthMax: 100,
  idLengthMax: 512,
  bodyBytesMax: 524_288,
  ratioMax: 100,
  batchCallsMax: 2_500,
  storedBytesMax: 4_194_304,
  userAgentLengthMax: 512,
  inFlightBytesMax: 67_108_864,
  retryAfterSeconds: 2,
  appendMsMax: 4_800,
  requestMsMax: 30_000,
  drainMsMax: 25_000,
  liveMsMax: 86_400_000,
}
