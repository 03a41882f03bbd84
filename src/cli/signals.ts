// Waiting to be told to stop, and making sure that stopping ends.
import type { Logger } from 'pino'

/** npm and the terminal both hand on a Ctrl-C: two of them within this time are one. */
const repeatMs = 2_000

/** Resolves at SIGTERM or SIGINT. A later second signal, or a drain over its time, ends the process at once. */
export const untilSignal = (drainMsMax: number, logger: Logger): Promise<NodeJS.Signals> =>
  new Promise((resolve) => {
    let first: number | null = null
    const heard = (signal: NodeJS.Signals) => {
      if (first === null) {
        first = performance.now()
        logger.info({ signal }, 'signal.received')
        setTimeout(() => giveUp(logger, 'the drain took too long'), drainMsMax).unref()
        resolve(signal)
      } else if (performance.now() - first > repeatMs) giveUp(logger, 'told to stop again')
    }
    process.on('SIGTERM', heard)
    process.on('SIGINT', heard)
  })

/** What was not finished is in the log and in Postgres: the next start goes on with it. */
const giveUp = (logger: Logger, reason: string) => {
  logger.error({ reason }, 'drain.abandoned')
  process.exit(1)
}
