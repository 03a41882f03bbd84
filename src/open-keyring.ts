// The keys of this installation: from the settings, or from the file the embedded default makes once.
import { randomBytes } from 'node:crypto'
import { link, mkdir, readFile, unlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type Config, isEmbedded } from './config.ts'
import { type Keyring, keyOf, keyringOf, newKey } from './control/secret.ts'
import { Fault } from './fault.ts'

const fileName = 'secret.key'

/** A key that is set takes over from the file's, which goes on opening what it sealed. */
export const openKeyring = async (config: Config): Promise<Keyring> => {
  const { secretKey, secretKeyPrevious, dataDir } = config
  const previous = secretKeyPrevious ?? []
  if (!isEmbedded(config)) return keyringOf(secretKey, previous)
  const path = join(dataDir, fileName)
  if (secretKey === null) return keyringOf((await readKey(path)) ?? (await makeKey(path)), previous)
  const kept = await readKey(path)
  return keyringOf(secretKey, kept === null ? previous : [...previous, kept])
}

const readKey = async (path: string): Promise<string | null> => {
  const text = await readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return null
    throw new Fault('config_invalid', `the key file cannot be read: ${error.message}`, {
      cause: error,
    })
  })
  if (text === null) return null
  try {
    keyOf(text.trim())
  } catch (error) {
    throw new Fault('config_invalid', `${path} holds no key: restore it from a backup`, {
      cause: error,
    })
  }
  return text.trim()
}

/** Written whole before it has its name: a process killed here leaves no half a key. */
const makeKey = async (path: string): Promise<string> => {
  const draft = `${path}.${randomBytes(4).toString('hex')}`
  await mkdir(join(path, '..'), { recursive: true, mode: 0o711 })
  await writeFile(draft, `${newKey()}\n`, { mode: 0o600, flush: true })
  try {
    await link(draft, path)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  } finally {
    await unlink(draft)
  }
  return (await readKey(path)) as string
}
