// Tells the debugger what became of each call of a watched source; of the others nothing is even gathered.
import type { Debugger, Told } from '../../debugger/debugger.ts'
import { isObject, type Json, type Message } from '../../domain/message.ts'
import type { Receipt } from '../../domain/normalise.ts'
import type { Rejection } from '../../domain/rejection.ts'
import type { Refusal } from '../answer/answer.ts'
import { kindOf } from '../count.ts'
import type { Deps } from '../deps.ts'
import { speakerOf } from '../request/authenticate.ts'
import type { Request } from '../request/request.ts'
import { keyOfHeader } from '../request/write-key.ts'

export type Watched = {
  accept(message: Message): void
  /** Of what was filtered the stored body may be empty: the call is shown as it came. */
  filter(message: Message, call: Json): void
  reject(rejection: Rejection, call: Json): void
  /** Once it is known whether the log has what was accepted. */
  tell(isAppended: boolean): void
}

type Watching = Pick<Receipt, 'source' | 'type' | 'receivedAt'>

/** `null` when nobody watches the source. */
export const watch = (
  { isWatched, tell }: Debugger,
  { source, type, receivedAt: at }: Watching,
): Watched | null => {
  if (!isWatched(source.id)) return null
  const told: Told[] = []
  // A disabled source's calls go nowhere, and its callers are not told.
  const fate = source.enabled
    ? ({ step: 'accepted', reason: null } as const)
    : ({ step: 'filtered', reason: 'source_disabled' } as const)
  return {
    accept: (message) => {
      const { type: own, event, messageId, body } = message
      told.push({ ...fate, at, type: own, event, messageId, call: body })
    },
    filter: ({ type: own, event, messageId, filtered }, call) => {
      const reason = source.enabled ? filtered : 'source_disabled'
      told.push({ step: 'filtered', reason, at, type: own, event, messageId, call })
    },
    reject: ({ messageId, rejected: reason }, call) => {
      told.push({
        step: 'rejected',
        reason,
        at,
        type: kindOf(call, type),
        event: isObject(call) && typeof call['event'] === 'string' ? call['event'] : null,
        messageId,
        call,
      })
    },
    tell: (isAppended) => tell(source.id, isAppended ? told : told.map(unlessStored)),
  }
}

/** Their sender brings them again. */
const unlessStored = (told: Told): Told =>
  told.step === 'accepted' ? { ...told, step: 'refused', reason: 'log_unavailable' } : told

/** A request that was refused before its calls were looked at, where it is known whose it was. */
export const tellRefused = (
  deps: Pick<Deps, 'debugger' | 'live' | 'clock'>,
  { refused: reason, about }: Refusal,
  { authorization }: Pick<Request, 'authorization'>,
): void => {
  if (!deps.debugger.isWatching()) return
  const key = keyOfHeader(authorization)
  const sourceId = about?.['sourceId'] ?? (key === null ? null : speakerOf(deps, key)?.source.id)
  if (typeof sourceId !== 'number' || !deps.debugger.isWatched(sourceId)) return
  const at = deps.clock().getTime()
  const nothing = { type: 'unknown', event: null, messageId: null, call: null } as const
  deps.debugger.tell(sourceId, [{ step: 'refused', reason, at, ...nothing }])
}
