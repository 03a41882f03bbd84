// The process's one logger, on standard error: JSON lines, or readable ones on a terminal.
import { type DestinationStream, type Logger, pino } from 'pino'
import pretty from 'pino-pretty'

export type { Logger } from 'pino'

type Options = {
  readonly level: string
  readonly pretty: boolean
  /** Standard error when absent: standard output is for what a command answers. */
  readonly stream?: DestinationStream
}

export const openLogger = (options: Options): Logger => {
  const base = { level: options.level, base: null, formatters: { level: levelName } }
  if (options.stream) return pino(base, options.stream)
  // Synchronous: the last lines before an exit are the ones somebody will look for.
  if (options.pretty)
    return pino(base, pretty({ colorize: true, sync: true, singleLine: true, destination: 2 }))
  return pino(base, pino.destination({ dest: 2, sync: true }))
}

const levelName = (level: string) => ({ level })
