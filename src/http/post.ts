// The outgoing HTTP port: one POST to one URL, and what its answer means for the message.
//
// Promises every adapter keeps (test/http/post.test.ts):
// - The body's bytes are sent as given, with exactly the headers given plus host, connection,
//   content-length and user-agent.
// - Resolves always, except when the adapter itself is closed or broken: that is no attempt.
// - `delivered` is decided at the status line; a body that stalls or breaks later changes nothing.
// - The receiver has 5 s from the moment the request is written; connecting has its own 5 s; the whole
//   never takes longer than 10 s.
// - Redirects are not followed. At most 8 KiB of an answer are read, then the connection is destroyed.
import type { Answer } from '../domain/round.ts'

export type PostRequest = {
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: Uint8Array
}

export type PostResult = {
  readonly answer: Answer
  readonly status: number | null
  readonly durationMs: number
  /** The first bytes of the answer's body as text; empty for a success. */
  readonly head: string
}

export type Post = (request: PostRequest) => Promise<PostResult>
