// Logs as the file consumer writes them, made here where thousands of lines are needed at once.
import { randomUUID } from 'node:crypto'
import { appendFile, readdir, readFile } from 'node:fs/promises'
import { basename, dirname } from 'node:path'
import type { Ran } from './page.ts'
import { runPhp, sendPath, startPhp } from './page.ts'

export type Numbered = { readonly userId: string; readonly n: number }

/** A track call; each user has one, so that nobody's calls wait for another's. */
export const callOf = ({ userId, n }: Numbered) => ({
  type: 'track',
  messageId: randomUUID(),
  userId: `${userId}-${n}`,
  event: 'Counted',
  properties: { n },
  timestamp: new Date().toISOString(),
})

export const appendCalls = async (
  log: string,
  userId: string,
  [from, until]: readonly [number, number],
) => {
  const lines = Array.from({ length: until - from }, (_, at) =>
    JSON.stringify(callOf({ userId, n: from + at })),
  )
  await appendFile(log, `${lines.join('\n')}\n`)
}

export type Sending = {
  readonly writeKey: string
  readonly log: string
  readonly host: string
  readonly args?: readonly string[]
  readonly env?: Readonly<Record<string, string>>
}

const programOf = ({ writeKey, log, host, args = [], env = {} }: Sending) => ({
  script: sendPath,
  args: ['--secret', writeKey, '--file', log, '--host', host, ...args],
  env,
})

export const send = (sending: Sending): Promise<Ran> => runPhp(programOf(sending))
export const startSend = (sending: Sending) => startPhp(programOf(sending))

/** What stands beside a log, but for the lock that stays. */
export const besides = async (log: string): Promise<readonly string[]> =>
  (await readdir(dirname(log))).filter((name) => name !== `${basename(log)}.lock`)

export const rejectsOf = async (log: string): Promise<readonly Record<string, unknown>[]> =>
  (await readFile(`${log}.rejects`, 'utf8'))
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line))
