// `millrace import FILE…`: brings past calls of files, folders and standard input into a running Millrace.

import { ContentError } from '../import/content.ts'
import { type Admin, type Ask, adminOptions, failing, readValue, withAdmin } from './client.ts'
import { type Call, type Command, flag, text } from './command.ts'
import { refuseMisfits } from './import-begin.ts'
import { type Input, inputsOf } from './import-input.ts'
import { importOne, type Options, type Outcome } from './import-one.ts'

export const command: Command = {
  name: 'import',
  summary:
    'import past calls from files, folders or standard input; started again, it goes on where it was',
  usage: [
    'FILE… --write-key KEY [--rejects FILE] [--pace N/s] [--dry-run] [--again]',
    'FOLDER --write-key KEY',
    '- --write-key KEY [--name NAME]',
    'FILE.csv --write-key KEY --map MAPPING [--format csv|tsv]',
  ],
  options: {
    ...adminOptions,
    'write-key': { type: 'string' },
    map: { type: 'string' },
    format: { type: 'string' },
    rejects: { type: 'string' },
    pace: { type: 'string' },
    name: { type: 'string' },
    'dry-run': { type: 'boolean' },
    again: { type: 'boolean' },
  },
  positionals: { min: 1, max: 10_000 },
  run: async (call) => {
    const stop = new AbortController()
    const heard = () => stop.abort()
    // What was sent is waited for; then the same command goes on from there.
    for (const signal of signals) process.once(signal, heard)
    try {
      return await withAdmin(call, async (ask, admin) => {
        const options = await optionsOf(call, { ask, admin, stopping: stop.signal })
        const inputs = await inputsOf({
          ...{ paths: call.positionals, name: text(call, 'name') },
          takesNamed: options.format === null,
          skip: (path) =>
            call.terminal.err(
              `${path} is left out: its name is none of calls; --format takes it too`,
            ),
        })
        refuseMisfits(options, inputs)
        const outcomes: Outcome[] = []
        for (const input of inputs) {
          outcomes.push(await importOne(options, input).catch(told(input)))
          if (stop.signal.aborted) break
        }
        return codeOf(outcomes)
      })
    } finally {
      for (const signal of signals) process.off(signal, heard)
    }
  },
}

/** What is wrong with a file is said of it by name. */
const told =
  ({ name }: Input) =>
  (error: Error): never => {
    if (error instanceof ContentError || 'syscall' in error)
      throw failing([`${name}: ${error.message}`], 2)
    throw error
  }

const signals = ['SIGINT', 'SIGTERM'] as const

/** 0: every line was taken; 3: some were rejected; 1: it was stopped. */
const codeOf = (outcomes: readonly Outcome[]): number => {
  if (outcomes.includes('stopped')) return 1
  return outcomes.includes('rejected') ? 3 : 0
}

const formats = ['ndjson', 'csv', 'tsv'] as const

type Given = { readonly ask: Ask; readonly admin: Admin; readonly stopping: AbortSignal }

const optionsOf = async (call: Call, given: Given): Promise<Options> => {
  const writeKey = text(call, 'write-key')
  if (writeKey === null) throw failing(['give the source with --write-key'], 2)
  const format = text(call, 'format')
  if (format !== null && !formats.some((known) => known === format))
    throw failing([`--format takes one of ${formats.join(', ')}`], 2)
  const map = text(call, 'map')
  if (map !== null && format === 'ndjson') throw failing(['--map is for csv and tsv'], 2)
  return {
    ...given,
    terminal: call.terminal,
    writeKey,
    format: format as Options['format'],
    mapping: map === null ? null : await readValue(map),
    rejects: text(call, 'rejects'),
    callsPerSecond: paceOf(text(call, 'pace')),
    isDryRun: flag(call, 'dry-run'),
    isAgain: flag(call, 'again'),
    isJson: flag(call, 'json'),
  }
}

const paceOf = (given: string | null): number | null => {
  if (given === null) return null
  const number = Number(/^(\d+(?:\.\d+)?)(?:\/s)?$/.exec(given)?.[1])
  if (!(number > 0)) throw failing(['--pace takes a number of calls per second, like 5000/s'], 2)
  return number
}
