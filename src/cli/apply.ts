// `millrace apply FILE`: makes the configuration say what the file says.
import { readFile } from 'node:fs/promises'
import type { AppliedEntity } from '../control/apply.ts'
import { readFileText } from '../control/file.ts'
import { adminOptions, failing, lineOf, withAdmin } from './client.ts'
import { type Call, type Command, flag } from './command.ts'

export const command: Command = {
  name: 'apply',
  summary: 'apply a configuration file, whole or not at all; what it does not name is left alone',
  usage: ['FILE [--dry-run]'],
  options: { ...adminOptions, 'dry-run': { type: 'boolean' } },
  positionals: { min: 1, max: 1 },
  run: (call) =>
    withAdmin(call, async (ask) => {
      const file = await read(call.positionals[0] ?? '')
      const dryRun = flag(call, 'dry-run')
      const applied = await ask<Applied>({
        method: 'POST',
        path: `/admin/v1/apply?dryRun=${dryRun}`,
        body: file,
      })
      if (flag(call, 'json')) call.terminal.out(JSON.stringify(applied, null, 2))
      else tell(call, applied)
      return 0
    }),
}

type Applied = { readonly dryRun: boolean; readonly entities: readonly AppliedEntity[] }

const read = async (path: string): Promise<unknown> => {
  const content = await readFile(path, 'utf8').catch((error: Error) => {
    throw failing([`${path} cannot be read: ${error.message}`], 2)
  })
  const result = readFileText(content)
  if ('problems' in result) throw failing(result.problems.map(lineOf), 2)
  return result.file
}

const marks = { created: '+', changed: '~', unchanged: '=' } as const

const tell = ({ terminal }: Call, { dryRun, entities }: Applied): void => {
  for (const entity of entities) {
    const { action, kind, workspace, name, changes, generated } = entity
    if (action === 'unchanged') continue
    const where = kind === 'workspace' ? name : `${workspace} / ${name}`
    terminal.out(`${marks[action]} ${kind} ${where}`)
    for (const [field, { from, to }] of Object.entries(changes)) {
      const before = from === undefined ? '' : `${JSON.stringify(from)} -> `
      terminal.out(`    ${field}: ${before}${JSON.stringify(to)}`)
    }
    if (generated.secretKey) terminal.out(`    secret key, shown this once: ${generated.secretKey}`)
    if (generated.sharedSecret)
      terminal.out(`    shared secret, shown this once: ${generated.sharedSecret}`)
  }
  const counts = Object.entries(marks).map(
    ([action]) => `${entities.filter((entity) => entity.action === action).length} ${action}`,
  )
  terminal.out(`${counts.join(', ')}${dryRun ? ' (dry run: nothing was saved)' : ''}`)
}
