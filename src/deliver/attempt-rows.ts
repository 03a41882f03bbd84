// Rows of the attempt log as COPY takes them, packed into chunks as they come.
import type { PostPhases, PostResult } from '../http/post.ts'
import {
  microsOf,
  putBoolean,
  putInt4,
  putInt8,
  putNull,
  putReal,
  putText,
} from '../postgres/binary-copy.ts'
import type { Delivery } from './stage.ts'

export type Attempt = {
  readonly delivery: Delivery
  readonly url: string
  readonly result: PostResult
  readonly attempt: number
  readonly startedAt: number
  /** Its chain's order was suspended. */
  readonly isSuspended?: boolean
}

/** In the order in which `putAttempt` writes them. */
export const attemptColumns =
  'started_at, topic, partition, log_offset, destination_id, chain, message_id, attempt, url, duration_ms, outcome, reason, status, dns_ms, connect_ms, tls_ms, first_byte_ms, reused, order_suspended, recovery_id, response_head'

const fields = 21
/** The lengths of all fields, every value of a fixed size, and our own words. */
const fixedBytes = 2 + 4 * fields + 3 * 8 + 6 * 4 + 4 * 4 + 2 + 256

/** More than its row takes. */
export const attemptBytesMax = ({ delivery, url, result }: Attempt, headMax: number): number =>
  fixedBytes + 3 * (delivery.messageId.length + url.length + Math.min(result.head.length, headMax))

/** Answers where the next row begins. */
export const putAttempt = (
  to: Buffer,
  attempt: Attempt,
  { at: start, headMax }: { readonly at: number; readonly headMax: number },
): number => {
  const { delivery, result } = attempt
  const { chain, row } = delivery
  const { answer, status } = result
  let at = to.writeInt16BE(fields, start)
  at = putInt8(to, microsOf(attempt.startedAt), at)
  at = putText(to, chain.partition.topic, at)
  at = putInt4(to, chain.partition.partition, at)
  at = putInt8(to, delivery.offset, at)
  at = putInt4(to, chain.lane.destinationId, at)
  at = putHash(to, chain.hash, at)
  at = putText(to, clean(delivery.messageId), at)
  at = putInt4(to, attempt.attempt, at)
  at = putText(to, clean(shown(attempt.url)), at)
  at = putInt4(to, Math.round(result.durationMs), at)
  at = putText(to, answer.type, at)
  at = answer.type === 'delivered' ? putNull(to, at) : putText(to, answer.reason, at)
  at = status === null ? putNull(to, at) : putInt4(to, status, at)
  at = putPhases(to, result.phases, at)
  at = putBoolean(to, result.reused, at)
  at = putBoolean(to, attempt.isSuspended === true, at)
  const recoveryId = row?.recoveryId ?? null
  at = recoveryId === null ? putNull(to, at) : putInt4(to, recoveryId, at)
  const { head } = result
  return head === '' ? putNull(to, at) : putText(to, clean(head.slice(0, headMax)), at)
}

/** The chain's hash, sixteen hexadecimal digits, as Postgres' signed integer. */
const putHash = (to: Buffer, hash: string, at: number): number => {
  const start = to.writeInt32BE(8, at)
  const high = to.writeUInt32BE(Number.parseInt(hash.slice(0, 8), 16), start)
  return to.writeUInt32BE(Number.parseInt(hash.slice(8), 16), high)
}

const putPhases = (to: Buffer, phases: PostPhases, start: number): number => {
  const { dnsMs, connectMs, tlsMs, firstByteMs } = phases
  return putTime(
    to,
    firstByteMs,
    putTime(to, tlsMs, putTime(to, connectMs, putTime(to, dnsMs, start))),
  )
}

/** Tenths of a millisecond tell enough. */
const putTime = (to: Buffer, ms: number | null, at: number): number =>
  ms === null ? putNull(to, at) : putReal(to, Math.round(ms * 10) / 10, at)

/** A query may carry a secret, so it is not logged. */
const shown = (url: string): string => {
  const query = url.indexOf('?')
  const bare = query < 0 ? url : url.slice(0, query)
  return bare.includes('@') ? bare.replace(/\/\/[^/@]*@/, '//') : bare
}

/** Postgres text has no NUL. */
const clean = (text: string): string =>
  text.includes('\0') ? text.replaceAll('\0', '\ufffd') : text
