// An acceptance run on the embedded default, from a fresh data directory to its removal.
import { openCodecs } from '../../src/log/avro.ts'
import { postgresSource } from '../../src/log/postgres.ts'
import { findPostgres } from '../../src/postgres/embedded.ts'
import { openPool } from '../../src/postgres/pool.ts'
import { removeDataDir } from '../support/process.ts'
import { openReceiver, type Receiver } from '../support/receiver.ts'
import { until } from '../support/until.ts'
import type { Scenario } from './expectation.ts'
import { type Followed, follow } from './follow.ts'
import { sharedSecret, startLine } from './line.ts'
import { readOutbound } from './outbound.ts'
import { firstDay } from './purchases.ts'

type Options = {
  readonly dataDir: string
  readonly scenario: Scenario
  readonly instants: readonly number[]
  readonly kills: number
  readonly seed: number
}

/** `told`: distinct messages that reached the webhook with the right signature; `wrong`: with another. */
export type Reached = Followed & { readonly told: number; readonly wrong: number }

export const runEmbedded = async (options: Options): Promise<Reached> => {
  const { dataDir } = options
  const receiver = await openReceiver({ secret: sharedSecret })
  const line = await startLine(
    { dataDir, time: new Date(firstDay) },
    { definitions: options.scenario.definitions, receiverUrl: receiver.url },
  )
  const url = (await findPostgres(dataDir)) ?? ''
  const pool = openPool({ url, connectionsMax: 2, name: 'acceptance' })
  const source = postgresSource({ pool })
  try {
    const outbound = readOutbound(source, (await openCodecs({})).outbound)
    const followed = await follow({ ...options, line, outbound })
    return { ...followed, ...(await reachedBy(receiver, followed.messages)) }
  } finally {
    await source.close()
    await pool.close()
    await line.stop()
    await receiver.close()
    await removeDataDir(dataDir)
  }
}

/** Waits until the webhook has them all; a message sent twice, because of a kill, counts once. */
export const reachedBy = async (receiver: Receiver, messages: number) => {
  const told = () => new Set(receiver.requests.map(({ body }) => body.toString())).size
  await until(() => told() >= messages, `${messages} messages at the webhook`, 120_000)
  return { told: told(), wrong: receiver.badSignatures.length }
}
