// Tells the debugger which calls of watched sources were duplicates: only the projector knows, and only once it is written.
import type { Debugger, Told } from '../debugger/debugger.ts'
import type { Verdicts } from './judge.ts'
import type { Lane, Piece } from './lanes.ts'

export const tellDuplicates = (
  { isWatching, isWatched, tell }: Debugger,
  pieces: readonly Piece[],
  verdicts: Verdicts,
): void => {
  if (!isWatching()) return
  const judged = new Map<Lane, number>()
  const found = new Map<number, Told[]>()
  for (const { lane, calls } of pieces) {
    const start = judged.get(lane) ?? 0
    judged.set(lane, start + calls.length)
    const duplicate = verdicts.get(lane)?.duplicate ?? []
    for (const [at, { message }] of calls.entries()) {
      if (duplicate[start + at] !== true || !isWatched(message.sourceId)) continue
      const { type, event, messageId, receivedAt, body } = message
      const told = found.get(message.sourceId) ?? []
      found.set(message.sourceId, told)
      told.push({
        step: 'duplicate',
        reason: null,
        at: receivedAt,
        type,
        event,
        messageId,
        call: body,
      })
    }
  }
  for (const [sourceId, told] of found) tell(sourceId, told)
}
