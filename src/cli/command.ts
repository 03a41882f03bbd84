// What a command of the CLI is: a file src/cli/<name>.ts exports `command: Command`; cli.ts dispatches to it.
import type { ParseArgsOptionsConfig } from 'node:util'
import type { Config, Environment } from '../config.ts'
import type { Pool } from '../postgres/sql.ts'

export type Command = {
  readonly name: string
  /** One line in `millrace help`. */
  readonly summary: string
  /** What follows `millrace <name>`, one form per line: `create NAME --class server`. */
  readonly usage: readonly string[]
  /** As node:util parseArgs takes them; `--help` is added by the dispatcher. */
  readonly options?: ParseArgsOptionsConfig
  /** How many positionals it takes; none when absent. */
  readonly positionals?: { readonly min: number; readonly max: number }
  /** Resolves with the exit code: 0; 1 when it failed, 2 when refused, after `terminal.err` said why. */
  run(call: Call): Promise<number>
}

export type Call = {
  /** `parseArgs` values; narrow with `text` and `flag`. */
  readonly values: Readonly<Record<string, unknown>>
  readonly positionals: readonly string[]
  readonly config: Config
  /** The configuration as if these variables had been set too. */
  configWith(variables: Environment): Config
  readonly terminal: Terminal
  /**
   * The migrated database: MILLRACE_DATABASE_URL, else the embedded one of a running Millrace on this data
   * directory, else the embedded one started for this command. Closed by the dispatcher when `run` settles.
   */
  database(): Promise<Pool>
}

export type Terminal = {
  /** Writes one line to standard output. */
  out(line: string): void
  /** Writes one line to standard error. */
  err(line: string): void
  readonly isTTY: boolean
  /** Writes a line over the last one written so, where a terminal can: what moves. */
  readonly over?: (line: string) => void
}

/** An option's text, or `null` when it was not given. */
export const text = (call: Call, option: string): string | null => {
  const value = call.values[option]
  return typeof value === 'string' ? value : null
}

/** The texts of an option that may be repeated. */
export const texts = (call: Call, option: string): readonly string[] => {
  const value = call.values[option]
  return Array.isArray(value) ? value.map(String) : []
}

export const flag = (call: Call, option: string): boolean => call.values[option] === true
