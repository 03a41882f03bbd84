// The command line: finds the command, parses its arguments, opens what it asks for, and answers an exit code.
import { parseArgs } from 'node:util'
import { type Environment, parseConfig } from '../config.ts'
import { openDatabase } from '../database.ts'
import { Fault } from '../fault.ts'
import { openLogger } from '../logger.ts'
import type { Call, Command, Terminal } from './command.ts'

type Invocation = {
  readonly args: readonly string[]
  readonly env: Environment
  readonly terminal: Terminal
}

type Load = () => Promise<{ readonly command: Command }>

/** Loaded when called for, so that `millrace --help` does not load a whole pipeline. */
const commands: Readonly<Record<string, Load>> = {
  serve: () => import('./serve.ts'),
  migrate: () => import('./migrate.ts'),
  demo: () => import('./demo.ts'),
  apply: () => import('./apply.ts'),
  workspace: () => import('./workspace.ts'),
  source: () => import('./source.ts'),
  destination: () => import('./destination.ts'),
  audience: () => import('./audience.ts'),
  trait: () => import('./trait.ts'),
  sync: () => import('./sync.ts'),
  dead: () => import('./dead.ts'),
  rebuild: () => import('./rebuild.ts'),
  replay: () => import('./replay.ts'),
  doctor: () => import('./doctor.ts'),
  debug: () => import('./debug.ts'),
  usage: () => import('./usage.ts'),
  pipeline: () => import('./pipeline.ts'),
  archive: () => import('./archive.ts'),
  violations: () => import('./violations.ts'),
  'delete-user': () => import('./delete-user.ts'),
  suppress: () => import('./suppress.ts'),
  unsuppress: () => import('./unsuppress.ts'),
  import: () => import('./import.ts'),
}

/** Exit codes: 0 done, 1 it failed, 2 the command line or the configuration was refused. */
export const runCli = async (invocation: Invocation): Promise<number> => {
  const { terminal } = invocation
  const [name, ...args] = invocation.args
  if (name === undefined || name === 'help' || name === '--help') return printHelp(terminal)
  const load = commands[name]
  if (!load) {
    terminal.err(`millrace: no command "${name}"; run "millrace help" for the list`)
    return 2
  }
  const { command } = await load()
  const parsed = parse(command, args)
  if ('problem' in parsed) return refuse(terminal, command, parsed.problem)
  if (parsed.help) {
    for (const line of usageOf(command)) terminal.out(line)
    return 0
  }
  return runCommand(command, { ...invocation, ...parsed })
}

const printHelp = async (terminal: Terminal) => {
  terminal.out('millrace: self-hosted event collection')
  terminal.out('')
  for (const load of Object.values(commands)) {
    const { command } = await load()
    terminal.out(`  millrace ${command.name.padEnd(14)} ${command.summary}`)
  }
  terminal.out('')
  terminal.out(
    '"millrace COMMAND --help" shows its options. Settings are MILLRACE_ variables: see docs/operations.md.',
  )
  return 0
}

type Parsed = {
  readonly values: Readonly<Record<string, unknown>>
  readonly positionals: readonly string[]
  readonly help: boolean
}

const parse = (command: Command, args: readonly string[]): Parsed | { problem: string } => {
  const { min, max } = command.positionals ?? { min: 0, max: 0 }
  try {
    const { values, positionals } = parseArgs({
      args: [...args],
      options: { ...command.options, help: { type: 'boolean' } },
      allowPositionals: true,
    })
    if (values['help'] === true) return { values, positionals, help: true }
    if (positionals.length < min) return { problem: 'an argument is missing' }
    if (positionals.length > max) return { problem: `unexpected argument "${positionals[max]}"` }
    return { values, positionals, help: false }
  } catch (error) {
    return { problem: (error as Error).message }
  }
}

const usageOf = (command: Command): readonly string[] => [
  `${command.name}: ${command.summary}`,
  ...command.usage.map((line) => `  millrace ${command.name} ${line}`.trimEnd()),
  ...Object.entries(command.options ?? {}).map(
    ([name, { type }]) => `    --${name}${type === 'string' ? ' VALUE' : ''}`,
  ),
]

const refuse = (terminal: Terminal, command: Command, problem: string) => {
  terminal.err(`millrace ${command.name}: ${problem}`)
  for (const line of usageOf(command)) terminal.err(line)
  return 2
}

const runCommand = async (command: Command, invocation: Invocation & Parsed): Promise<number> => {
  const { terminal } = invocation
  const opened: (() => Promise<void>)[] = []
  try {
    const config = parseConfig(invocation.env)
    const code = await command.run({
      values: invocation.values,
      positionals: invocation.positionals,
      config,
      configWith: (variables) => parseConfig({ ...invocation.env, ...variables }),
      terminal,
      database: async () => {
        const logger = openLogger({ level: 'warn', pretty: terminal.isTTY })
        const database = await openDatabase({ config, logger, shared: true })
        opened.push(database.stop)
        return database.pool
      },
    } satisfies Call)
    return code
  } catch (error) {
    return fail(terminal, command, error)
  } finally {
    for (const close of opened.reverse()) await close()
  }
}

const fail = (terminal: Terminal, command: Command, error: unknown) => {
  if (!(error instanceof Fault)) throw error
  terminal.err(`millrace ${command.name}: ${error.message}`)
  return error.code === 'config_invalid' ? 2 : 1
}
