// Rows of the outbox in the binary format of COPY: as arrays of a statement they are twice the work.
import type { Outbound } from '../domain/message.ts'
import {
  copyHeader,
  copyTrailer,
  microsOf,
  putInt4,
  putInt8,
  putNull,
  putText,
} from '../postgres/binary-copy.ts'

export type Posted = {
  readonly runId: number
  readonly at: Date
  readonly messages: readonly Outbound[]
}

export const copyOutbox = `copy outbox (shard, seq, run_id, message_id, origin, type, workspace_id,
  destination_id, user_id, at, body) from stdin (format binary)`

const fields = 11
/** Everything of a row that is not of variable length, and the lengths of what is. */
const fixedBytes = 2 + fields * 4 + 2 + 8 + 8 + 4 + 4 + 8
const chunkBytes = 65_536

export function* outboxRows({ runId, at: instant, messages }: Posted): Generator<Buffer> {
  const same = { runId, micros: microsOf(instant.getTime()) }
  let chunk = Buffer.allocUnsafe(chunkBytes)
  let at = copyHeader.copy(chunk)
  for (const message of messages) {
    const most = fixedBytes + textsLength(message) * 3 + message.body.length
    if (at + most > chunk.length) {
      yield chunk.subarray(0, at)
      chunk = Buffer.allocUnsafe(Math.max(chunkBytes, most))
      at = 0
    }
    at = writeRow(chunk, { ...same, message }, at)
  }
  yield chunk.subarray(0, at)
  yield copyTrailer
}

const textsLength = ({ messageId, origin, type, userId }: Outbound): number =>
  messageId.length + origin.length + type.length + (userId?.length ?? 0)

type Row = { readonly runId: number; readonly micros: number; readonly message: Outbound }

const writeRow = (to: Buffer, { runId, micros, message }: Row, start: number): number => {
  let at = to.writeInt16BE(fields, start)
  at = to.writeInt16BE(message.shard, to.writeInt32BE(2, at))
  at = putInt8(to, message.seq, at)
  at = putInt8(to, runId, at)
  at = putText(to, message.messageId, at)
  at = putText(to, message.origin, at)
  at = putText(to, message.type, at)
  at = putInt4(to, message.workspaceId, at)
  at = putInt4(to, message.destinationId, at)
  at = message.userId === null ? putNull(to, at) : putText(to, message.userId, at)
  at = putInt8(to, micros, at)
  at = to.writeInt32BE(message.body.length, at)
  to.set(message.body, at)
  return at + message.body.length
}
