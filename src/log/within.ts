// A limit on how long anything of a log adapter may take.
import { Fault } from '../fault.ts'

/** Rejects with `log_unavailable` when the work takes longer; the work itself goes on. */
export const within = async <R>(ms: number, what: string, work: Promise<R>): Promise<R> => {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    const fail = () =>
      reject(new Fault('log_unavailable', `${what} took longer than allowed`, { retriable: true }))
    timer = setTimeout(fail, Math.max(0, ms))
  })
  try {
    return await Promise.race([work, late])
  } finally {
    clearTimeout(timer)
    // It is late: whoever asked has been told.
    work.catch(() => undefined)
  }
}
