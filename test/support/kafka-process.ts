// A server process of the tests that dies with the test run, however the run ends.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { open, readFile } from 'node:fs/promises'

export type Owned = {
  readonly pid: number
  running(): boolean
  /** The last lines it printed. */
  output(): Promise<string>
  /** Sends the signal and waits for the end; insists with SIGKILL after `patienceMs`. */
  end(signal: NodeJS.Signals, patienceMs?: number): Promise<void>
}

/**
 * The guard in the background reads this process's end of a pipe, which closes when this process
 * dies, and then kills the server: a run that is itself killed leaves nothing behind.
 */
const guarded = `exec 3<&0
"$@" </dev/null >&2 & server=$!
echo $server
{ read -r _ <&3; kill -9 $server; } 2>/dev/null & guard=$!
wait $server
kill $guard 2>/dev/null`

export const own = async (command: readonly string[], logFile: string): Promise<Owned> => {
  const log = await open(logFile, 'a')
  const shell = spawn('sh', ['-c', guarded, 'sh', ...command], {
    stdio: ['pipe', 'pipe', log.fd],
    detached: true,
  })
  await log.close()
  let ended = false
  const end = once(shell, 'exit').then(() => {
    ended = true
  })
  const { stdin, stdout } = shell
  if (stdin === null || stdout === null) throw new Error('a shell without its pipes')
  const [line] = (await once(stdout, 'data')) as [Buffer]
  const pid = Number(line.toString())
  return {
    pid,
    running: () => !ended,
    output: async () => (await readFile(logFile, 'utf8')).split('\n').slice(-40).join('\n'),
    end: async (signal, patienceMs = 15_000) => {
      if (ended) return
      process.kill(pid, signal)
      const insist = setTimeout(() => stdin.end(), patienceMs)
      await end
      clearTimeout(insist)
    },
  }
}
