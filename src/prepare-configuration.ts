// What a start does to the configuration: applies the operator's file, then makes what a first start lacks.
import { readFile } from 'node:fs/promises'
import type { Logger } from 'pino'
import { addressRulesOf, type Config, readsSecrets } from './config.ts'
import { applyFile } from './control/apply.ts'
import { readFileText } from './control/file.ts'
import { ensureFirstStart, type FirstStart } from './control/first-start.ts'
import type { Problem } from './control/problem.ts'
import { sealSecrets } from './control/seal.ts'
import type { Keyring } from './control/secret.ts'
import { Fault } from './fault.ts'
import type { Pool } from './postgres/sql.ts'

type Deps = {
  readonly pool: Pool
  readonly config: Config
  readonly logger: Logger
  readonly keyring: Keyring
}

export const prepareConfiguration = async (deps: Deps): Promise<FirstStart> => {
  const { pool, config } = deps
  if (readsSecrets(config)) await sealAtStart(deps)
  if (config.apply !== null) await applyAtStart(deps, config.apply)
  return ensureFirstStart(pool, { token: config.adminToken })
}

/** A key set for the first time seals what was kept before, and a new one seals everything anew. */
const sealAtStart = async ({ pool, logger, keyring }: Deps): Promise<void> => {
  const { sealed, unsealed } = await sealSecrets(pool, keyring)
  if (sealed > 0) logger.info({ destinations: sealed }, 'secrets.sealed')
  if (unsealed > 0)
    logger.warn({ destinations: unsealed, setting: 'MILLRACE_SECRET_KEY' }, 'secrets.unsealed')
}

const applyAtStart = async (
  { pool, config, logger, keyring }: Deps,
  path: string,
): Promise<void> => {
  const text = await readFile(path, 'utf8').catch((error: Error) => {
    throw new Fault('config_invalid', `MILLRACE_APPLY: ${error.message}`, { cause: error })
  })
  const read = readFileText(text)
  if ('problems' in read) throw refused(path, read.problems)
  const applied = await applyFile(pool, read.file, {
    actor: 'MILLRACE_APPLY',
    addresses: addressRulesOf(config),
    keyring,
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
