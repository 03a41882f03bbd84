// Brings the published libraries that receivers check our requests with.
import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

const folder = fileURLToPath(new URL('.', import.meta.url))
const stamp = join(folder, 'node_modules', '.made')
const installTimeoutMs = 600_000

/** Once for each state of the lock: what is there already needs no network. */
export const setup = async (): Promise<void> => {
  const lock = await readFile(join(folder, 'package-lock.json'))
  const wanted = createHash('sha256').update(lock).digest('hex')
  if ((await readFile(stamp, 'utf8').catch(() => null)) === wanted) return
  const options = { cwd: folder, timeout: installTimeoutMs }
  await promisify(execFile)('npm', ['ci', '--ignore-scripts'], options)
  await mkdir(join(folder, 'node_modules'), { recursive: true })
  await writeFile(stamp, wanted)
}
