// Telling a database or a log that is away for a while from a fault that trying again cannot mend.
import { Fault } from '../fault.ts'
import { sqlState } from './sql.ts'

const network =
  /^(?:ECONN|EPIPE|ETIMEDOUT|EHOSTUNREACH|ENETUNREACH|EADDRNOTAVAIL|ENOENT|ENOTFOUND|EAI_)/

/** Connection lost or ended by the server, server starting or stopping, out of resources; or no answer at all. */
export const isAway = (error: unknown): boolean => {
  if (error instanceof Fault) return error.retriable
  const state = sqlState(error)
  if (state !== null) return /^(?:08|25P0[34]|53|57P|58)/.test(state)
  const { code, message } = (error ?? {}) as { code?: unknown; message?: unknown }
  if (typeof code === 'string') return network.test(code)
  return typeof message === 'string' && /connection|timeout|not queryable/i.test(message)
}

/** Whether starting over may help: it is away, gave way to another, was cancelled, or the system refused a call. */
export const isPassing = (error: unknown): boolean => {
  if (isAway(error)) return true
  const state = sqlState(error)
  if (state !== null) return /^(?:40|57)/.test(state)
  const { code } = (error ?? {}) as { code?: unknown }
  return !(error instanceof Fault) && typeof code === 'string' && /^E[A-Z]+$/.test(code)
}
