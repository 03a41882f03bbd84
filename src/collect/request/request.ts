// One request as its routes hand it in: what its path, query and headers say, and the body still to be read.
import type { Readable } from 'node:stream'
import type { CallType } from '../../domain/message.ts'

export type Request = {
  /** `null` for a batch, whose calls name their own; `unknown` when the path names none of ours. */
  readonly type: CallType | 'unknown' | null
  readonly stream: Readable
  readonly authorization: string | undefined
  /** A write key in the query, on routes that take it there. */
  readonly queryKey: string | null
  /** Of the page that sends, as its browser says; `null` when it says none. */
  readonly origin: string | null
  /** A pixel's call comes from whoever looks at it, whatever the class of its source. */
  readonly isPixel: boolean
  readonly encoding: string | undefined
  readonly retryCount: number
  readonly ip: string | null
  readonly userAgent: string | null
}
