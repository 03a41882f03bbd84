// A server that is already there: another Millrace's, which is refused, or one whose Millrace was
// killed, which is stopped in good order so that the new one starts from a clean shutdown.
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFile, writeFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { failed, ifMissing } from './embedded-place.ts'

const run = promisify(execFile)

const limits = {
  /** A fast shutdown writes a checkpoint: seconds when much was dirty. */
  fastShutdownMs: 60_000,
  immediateShutdownMs: 10_000,
  pollEveryMs: 25,
}

type Postmaster = { readonly pid: number; readonly socket: string }

const ownerSetting = 'millrace.owner'

/** Server setting that names the process it belongs to, so that others see whether it still lives. */
export const ownerSettingOfThisProcess = async (): Promise<Readonly<Record<string, string>>> => ({
  [ownerSetting]: `${process.pid}:${(await bornOf(process.pid)) ?? ''}`,
})

/** Returns once no server runs on the cluster and Postgres will take it; a `Fault` if it is in use. */
export const clearCluster = async (cluster: string): Promise<void> => {
  const postmaster = await readPostmaster(cluster)
  if (postmaster === null) return
  const command = await serverCommand(postmaster.pid, cluster)
  if (command === null) {
    // Seen from another container, the server's process is invisible but its socket is not.
    if (await accepts(postmaster.socket)) throw inUse(cluster, 'a process that is not visible here')
    await disown(cluster, postmaster.pid)
    return
  }
  const [pid = '', born = ''] = (command.get(ownerSetting) ?? '').split(':')
  if (pid !== '' && (await bornOf(Number(pid))) === born) throw inUse(cluster, `process ${pid}`)
  await stopOrphan(postmaster.pid, cluster)
}

/** The socket directory of the server that runs on the cluster, or `null`. */
export const findRunning = async (cluster: string): Promise<string | null> => {
  const postmaster = await readPostmaster(cluster)
  if (postmaster === null || !(await accepts(postmaster.socket))) return null
  return join(postmaster.socket, '..')
}

const inUse = (cluster: string, who: string) =>
  failed(
    `${cluster} is in use by another Millrace (${who}): stop that one, or set MILLRACE_DATA_DIR to another directory`,
  )

/** postmaster.pid by lines: pid, data directory, start, port, socket directory, … */
const readPostmaster = async (cluster: string): Promise<Postmaster | null> => {
  const text = await readFile(join(cluster, 'postmaster.pid'), 'utf8').catch(ifMissing(null))
  if (text === null) return null
  const [pid = '', , , port = '', sockets = ''] = text.split('\n')
  return { pid: Math.abs(Number(pid)), socket: join(sockets, `.s.PGSQL.${port}`) }
}

/** The `-c` settings of a live server of this cluster; `null` when the pid is gone or somebody else's. */
const serverCommand = async (pid: number, cluster: string) => {
  if (!(pid > 0) || (await bornOf(pid)) === null) return null
  const args = await argumentsOf(pid)
  if (!args.includes(cluster) || !/postgres$/.test(args[0] ?? '')) return null
  return new Map(
    args.filter((arg) => arg.includes('=')).map((arg) => arg.split('=', 2) as [string, string]),
  )
}

const argumentsOf = async (pid: number): Promise<readonly string[]> => {
  if (process.platform === 'linux')
    return (await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')).split('\0')
  const { stdout } = await run('ps', ['-ww', '-o', 'args=', '-p', String(pid)]).catch(() => ({
    stdout: '',
  }))
  return stdout.trim().split(' ')
}

/** When a process was born: with its pid it names the process for good. `null`: no such, or a zombie. */
export const bornOf = async (pid: number): Promise<string | null> => {
  if (process.platform === 'linux') {
    const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '')
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    return stat === '' || fields[0] === 'Z' || fields[0] === 'X' ? null : (fields[19] ?? null)
  }
  const { stdout } = await run('ps', ['-o', 'lstart=', '-p', String(pid)]).catch(() => ({
    stdout: '',
  }))
  return stdout.trim() === '' ? null : stdout.trim().replaceAll(/\W+/g, '_')
}

const accepts = (socket: string) =>
  new Promise<boolean>((resolve) => {
    const connection = connect(socket)
    connection.once('connect', () => {
      connection.destroy()
      resolve(true)
    })
    connection.once('error', () => resolve(false))
  })

/**
 * Postgres refuses to start while the pid in its file is alive, whoever it is now. The file must stay:
 * its last lines let Postgres see whether processes of the old server still use its memory.
 */
const disown = async (cluster: string, pid: number): Promise<void> => {
  if ((await bornOf(pid)) === null) return
  const brief = spawn('true')
  await once(brief, 'exit')
  const path = join(cluster, 'postmaster.pid')
  const text = await readFile(path, 'utf8')
  await writeFile(path, [String(brief.pid), ...text.split('\n').slice(1)].join('\n'))
}

const stopOrphan = async (pid: number, cluster: string): Promise<void> => {
  const born = await bornOf(pid)
  for (const [signal, patience] of [
    ['SIGINT', limits.fastShutdownMs],
    ['SIGQUIT', limits.immediateShutdownMs],
  ] as const) {
    signalProcess(pid, signal)
    const deadline = performance.now() + patience
    while (performance.now() < deadline) {
      if ((await bornOf(pid)) !== born) return
      await sleep(limits.pollEveryMs)
    }
  }
  throw failed(`the Postgres server ${pid} left running on ${cluster} does not stop: kill it`)
}

const signalProcess = (pid: number, signal: NodeJS.Signals) => {
  try {
    process.kill(pid, signal)
  } catch (error) {
    if ((error as { code?: unknown }).code !== 'ESRCH') throw error
  }
}
