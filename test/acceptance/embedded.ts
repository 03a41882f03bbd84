// An acceptance run on the embedded default, from a fresh data directory to its removal.
import { expect } from 'vitest'
import { openCodecs } from '../../src/log/avro.ts'
import { postgresSource } from '../../src/log/postgres.ts'
import { findPostgres } from '../../src/postgres/embedded.ts'
import { openPool } from '../../src/postgres/pool.ts'
import { removeDataDir } from '../support/process.ts'
import { type Followed, follow } from './follow.ts'
import { startHooks } from './hooks.ts'
import { sharedSecret, startLine } from './line.ts'
import { readOutbound } from './outbound.ts'
import { firstDay, type Purchase } from './purchases.ts'

type Options = {
  readonly dataDir: string
  readonly purchases: readonly Purchase[]
  readonly instants: readonly number[]
  readonly kills: number
  readonly seed: number
}

/** `told`: distinct messages that reached the webhook with the right signature; `wrong`: with another. */
export type Reached = Followed & { readonly told: number; readonly wrong: number }

export const runEmbedded = async (options: Options): Promise<Reached> => {
  const { dataDir } = options
  const hooks = await startHooks(sharedSecret)
  const line = await startLine({ dataDir, time: new Date(firstDay) }, hooks.url)
  const url = (await findPostgres(dataDir)) ?? ''
  const pool = openPool({ url, connectionsMax: 2, name: 'acceptance' })
  const source = postgresSource({ pool })
  try {
    const outbound = readOutbound(source, (await openCodecs({})).outbound)
    const followed = await follow({ ...options, line, outbound })
    await expect
      .poll(() => hooks.bodies.size, { timeout: 120_000, interval: 100 })
      .toBe(followed.messages)
    return { ...followed, told: hooks.bodies.size, wrong: hooks.wrong() }
  } finally {
    await source.close()
    await pool.close()
    await line.stop()
    await hooks.close()
    await removeDataDir(dataDir)
  }
}
