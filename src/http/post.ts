// The outgoing HTTP port: one POST to one URL, and what its answer means for the message.
//
// Promises every adapter keeps (test/http):
// - The body's bytes are sent as given, with exactly the headers given plus host, connection,
//   content-length and user-agent.
// - Resolves always, except when the adapter itself is closed or broken: that is no attempt.
// - `delivered` is decided at the status line; a body that stalls or breaks later changes nothing.
// - The receiver has 5 s from the moment the request is written; connecting has its own 5 s; the whole
//   never takes longer than 10 s. Waiting for a place among too many requests counts for neither.
// - Redirects are not followed. At most 8 KiB of an answer are read, then the connection is destroyed.
// - Not a byte goes to an address that is not allowed, nor a byte of the request to a TLS peer that is
//   not verified or is self-signed.
import type { Answer } from '../domain/round.ts'
import type { PostTls } from './trust.ts'

export type { PostTls } from './trust.ts'

export type PostRequest = {
  readonly url: string
  /** By name; or names and values in turn, as a caller that posts often prepares them. */
  readonly headers: Readonly<Record<string, string>> | readonly string[]
  readonly body: Uint8Array
  /** What this URL adds to the system's authorities; the same object for each request saves hashing it. */
  readonly tls?: PostTls
}

/** Milliseconds; `null` for a step that did not happen, as on a connection that was there already. */
export type PostPhases = {
  readonly dnsMs: number | null
  readonly connectMs: number | null
  readonly tlsMs: number | null
  /** From the request written to the status line. */
  readonly firstByteMs: number | null
  /** From the request's turn to the answer that decided. */
  readonly totalMs: number
}

export type PostResult = {
  readonly answer: Answer
  readonly status: number | null
  readonly durationMs: number
  /** The first bytes of the answer's body as text; empty for a success. */
  readonly head: string
  readonly phases: PostPhases
  /** Whether the connection had served a request before. */
  readonly reused: boolean
}

export type Post = (request: PostRequest) => Promise<PostResult>

/** Connects, verifies the peer, and closes: `ok`, or the reason in the words of `Answer`. */
export type Probe = (url: string, tls?: PostTls) => Promise<string>
