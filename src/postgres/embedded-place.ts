// Where the embedded server lives: which user runs it, and directories that this user can reach.
// As root the server runs as somebody else, who cannot enter a 0700 home: then binaries and cluster
// move to a directory of the system, and the data directory keeps a pointer.
import { execFile } from 'node:child_process'
import { createHash, randomBytes } from 'node:crypto'
import {
  chmod,
  chown,
  link,
  lstat,
  mkdir,
  readFile,
  realpath,
  stat,
  unlink,
  writeFile,
} from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { Fault } from '../fault.ts'

const run = promisify(execFile)

/** The user the server runs as; `null`: the one this process runs as. */
export type Owner = { readonly uid: number; readonly gid: number } | null

export type Place = {
  readonly owner: Owner
  /** Real path of the data directory. */
  readonly dataDir: string
  /** Postgres's own data directory; may not exist yet. */
  readonly cluster: string
  readonly sockets: string
}

const pointerName = 'postgres.json'

/** Makes the data directory and decides; creates nothing else but the directories around the cluster. */
export const findPlace = async (given: string): Promise<Place> => {
  await mkdir(given, { recursive: true, mode: 0o711 })
  const dataDir = await realpath(given)
  const known = await knownCluster(dataDir)
  const owner = await ownerOf(known)
  const cluster = known ?? (await newCluster(dataDir, owner))
  if (!(await canReach(owner, dirname(cluster))))
    throw failed(
      `the user that owns ${cluster} cannot enter its directory: give it leave on every directory above (chmod o+x), or move the data directory to where it can`,
    )
  return { owner, dataDir, cluster, sockets: await socketDirectory(cluster, owner) }
}

/** The cluster a start before this one made, if any. */
export const knownCluster = async (dataDir: string): Promise<string | null> => {
  const pointer = await readFile(join(dataDir, pointerName), 'utf8').catch(ifMissing(null))
  const { cluster } = pointer === null ? { cluster: null } : readPointer(pointer, dataDir)
  if (cluster !== null) {
    if (await exists(cluster)) return cluster
    throw failed(
      `${join(dataDir, pointerName)} points to ${cluster}, which is gone: restore it, or remove the pointer to begin anew`,
    )
  }
  const inPlace = join(dataDir, 'postgres')
  return (await exists(join(inPlace, 'PG_VERSION'))) ? inPlace : null
}

const readPointer = (text: string, dataDir: string): { readonly cluster: string } => {
  try {
    return JSON.parse(text) as { cluster: string }
  } catch (error) {
    throw failed(`${join(dataDir, pointerName)} is not JSON: restore it from a backup`, error)
  }
}

/** Called once the cluster stands, so that a pointer never leads nowhere; false when another was first. */
export const leavePointer = async ({ cluster, dataDir }: Place): Promise<boolean> => {
  if (dirname(cluster) === dataDir) return true
  const path = join(dataDir, pointerName)
  const draft = `${path}.${randomBytes(4).toString('hex')}`
  await writeFile(draft, `${JSON.stringify({ cluster })}\n`, { mode: 0o600 })
  try {
    await link(draft, path)
    return true
  } catch (error) {
    if ((error as { code?: unknown }).code === 'EEXIST') return false
    throw error
  } finally {
    await unlink(draft)
  }
}

/** A cluster is run by the user that made it; a new one by ourselves, or as root by an unprivileged user. */
const ownerOf = async (cluster: string | null): Promise<Owner> => {
  const self = process.getuid?.()
  if (self === undefined)
    throw failed(
      'the embedded Postgres runs on Linux and macOS: give a database by MILLRACE_DATABASE_URL',
    )
  const made = cluster === null ? null : await stat(cluster)
  if (self !== 0) {
    if (made && made.uid !== self)
      throw failed(
        `${cluster} was made by user ${made.uid}, this is user ${self}: start as the same user as the first time, or change its owner`,
      )
    return null
  }
  if (made && made.uid !== 0) return { uid: made.uid, gid: made.gid }
  return (
    (await userNamed('postgres')) ?? (await userNamed('nobody')) ?? { uid: 65_534, gid: 65_534 }
  )
}

const userNamed = async (name: string): Promise<Owner> => {
  try {
    const [uid, gid] = await Promise.all([run('id', ['-u', name]), run('id', ['-g', name])])
    // macOS gives nobody as 4294967294, which the system calls want as -2.
    return { uid: Number(uid.stdout) | 0, gid: Number(gid.stdout) | 0 }
  } catch {
    return null
  }
}

const newCluster = async (dataDir: string, owner: Owner): Promise<string> => {
  if (owner === null) return join(dataDir, 'postgres')
  if (await canReach(owner, dirname(dataDir))) {
    // Others may pass through, not list; the cluster itself is 0700.
    await chmod(dataDir, (await stat(dataDir)).mode | 0o011)
    return join(dataDir, 'postgres')
  }
  const directory = join(await systemDirectory(owner), 'clusters')
  await mkdir(directory, { recursive: true, mode: 0o711 })
  // Not from the path alone: a data directory removed and made again begins anew.
  return join(directory, `${digest(dataDir)}-${randomBytes(4).toString('hex')}`)
}

/** Whether the user can pass through every directory down to `path`. */
export const canReach = async (owner: Owner, path: string): Promise<boolean> => {
  if (owner === null) return true
  for (let at = path; ; at = dirname(at)) {
    const { mode, uid, gid } = await stat(at)
    const bit = uid === owner.uid ? 0o100 : gid === owner.gid ? 0o010 : 0o001
    if ((mode & bit) === 0) return false
    if (at === dirname(at)) return true
  }
}

/** Root's own directory that everybody may pass through: nobody else can put files in our way there. */
export const systemDirectory = async (owner: Owner): Promise<string> => {
  const candidates = ['/var/lib/millrace', '/var/tmp/millrace', join(tmpdir(), 'millrace')]
  for (const path of candidates) {
    try {
      await mkdir(path, { recursive: true, mode: 0o755 })
      const { uid, mode } = await lstat(path)
      const safe = uid === 0 && (mode & 0o022) === 0
      if (safe && (await canReach(owner, path))) return path
    } catch {
      // Read-only or taken by a file: the next one.
    }
  }
  throw failed(
    `as root the embedded Postgres needs one of ${candidates.join(', ')} to belong to root alone and be open to pass through: make one, or start as an unprivileged user`,
  )
}

/** Beside the cluster, unless the path is too long for a socket: then in a short one of ours. */
const socketDirectory = async (cluster: string, owner: Owner): Promise<string> => {
  const beside = `${cluster}.sockets`
  const path = beside.length <= socketDirectoryLengthMax ? beside : await shortPath(cluster, owner)
  await mkdir(path, { recursive: true, mode: 0o700 })
  const { uid } = await lstat(path)
  if (uid !== process.getuid?.() && uid !== owner?.uid)
    throw failed(`${path} belongs to user ${uid}: remove it, the server's socket goes there`)
  await chmod(path, 0o700)
  if (owner) await chown(path, owner.uid, owner.gid)
  return path
}

const shortPath = async (cluster: string, owner: Owner): Promise<string> =>
  owner === null
    ? join('/tmp', `millrace-${digest(cluster)}`)
    : join(await systemDirectory(owner), `sockets-${digest(cluster)}`)

/** A socket path holds 103 bytes at most (macOS), `/.s.PGSQL.5432` included. */
const socketDirectoryLengthMax = 85

const digest = (text: string) => createHash('sha256').update(text).digest('hex').slice(0, 12)

export const exists = (path: string): Promise<boolean> =>
  stat(path).then(() => true, ifMissing(false))

export const ifMissing =
  <T>(value: T) =>
  (error: unknown): T => {
    if ((error as { code?: unknown }).code === 'ENOENT') return value
    throw error
  }

export const failed = (message: string, cause?: unknown) =>
  new Fault('embedded_postgres_failed', message, { cause })
