// What a start does to the configuration: applies the operator's file, then makes what a first start lacks.
import { readFile } from 'node:fs/promises'
import type { Logger } from 'pino'
import { allowsPrivateDestinations, type Config } from './config.ts'
import { applyFile } from './control/apply.ts'
import { readFileText } from './control/file.ts'
import { ensureFirstStart, type FirstStart } from './control/first-start.ts'
import type { Problem } from './control/problem.ts'
import { Fault } from './fault.ts'
import type { Pool } from './postgres/sql.ts'

type Deps = { readonly pool: Pool; readonly config: Config; readonly logger: Logger }

export const prepareConfiguration = async (deps: Deps): Promise<FirstStart> => {
  const { pool, config } = deps
  if (config.apply !== null) await applyAtStart(deps, config.apply)
  return ensureFirstStart(pool, { token: config.adminToken })
}

const applyAtStart = async ({ pool, config, logger }: Deps, path: string): Promise<void> => {
  const text = await readFile(path, 'utf8').catch((error: Error) => {
    throw new Fault('config_invalid', `MILLRACE_APPLY: ${error.message}`, { cause: error })
  })
  const read = readFileText(text)
  if ('problems' in read) throw refused(path, read.problems)
  const applied = await applyFile(pool, read.file, {
    actor: 'MILLRACE_APPLY',
    allowPrivateDestinations: allowsPrivateDestinations(config),
    dryRun: false,
  })
  if (!applied.ok) throw refused(path, applied.problems)
  const changed = applied.entities.filter(({ action }) => action !== 'unchanged')
  logger.info({ path, entities: applied.entities.length, changed: changed.length }, 'file.applied')
}

const refused = (path: string, problems: readonly Problem[]) =>
  new Fault(
    'config_invalid',
    [
      `${path} (MILLRACE_APPLY) is refused:`,
      ...problems.map(({ code, path: at, message }) => `${at || '/'}: ${message} (${code})`),
    ].join('\n  '),
  )
