// The process's one logger, on standard error: JSON lines, or readable ones on a terminal.
import { type Logger, pino } from 'pino'
import pretty from 'pino-pretty'

type Options = {
  readonly level: string
  readonly pretty: boolean
}

/** Standard output is for what a command answers. */
const standardError = 2

export const openLogger = ({ level, pretty: isPretty }: Options): Logger => {
  const base = { level, base: null, formatters: { level: (name: string) => ({ level: name }) } }
  // Synchronous: the last lines before an exit are the ones somebody will look for.
  const stream = isPretty
    ? pretty({ colorize: true, sync: true, singleLine: true, destination: standardError })
    : pino.destination({ dest: standardError, sync: true })
  return pino(base, stream)
}
