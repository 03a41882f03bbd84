// Telling a database that is away for a while from a fault that trying again cannot mend.
import { Fault } from '../fault.ts'
import { sqlState } from '../postgres/sql.ts'

const network = /^(?:ECONN|EPIPE|ETIMEDOUT|EHOSTUNREACH|ENETUNREACH|ENOENT|EAI_)/

/** Connection lost or ended by the server, server starting or stopping, out of resources; or no answer at all. */
export const isOutage = (error: unknown): boolean => {
  if (error instanceof Fault) return error.retriable
  // A mistake of ours may speak of a connection, too.
  if (error instanceof TypeError || error instanceof RangeError || error instanceof ReferenceError)
    return false
  const state = sqlState(error)
  if (state !== null) return /^(?:08|25P0[34]|53|57P|58)/.test(state)
  const { code, message } = (error ?? {}) as { code?: unknown; message?: unknown }
  if (typeof code === 'string') return network.test(code)
  return typeof message === 'string' && /connection|timeout/i.test(message)
}
