// An acceptance run on a Kafka broker and a schema registry of its own, by one process or several.
import { pino } from 'pino'
import { openCodecs } from '../../src/log/avro.ts'
import { kafkaSource } from '../../src/log/kafka.ts'
import { openRegistry } from '../../src/log/registry.ts'
import { ownFolder } from '../support/folder.ts'
import { startKafka } from '../support/kafka.ts'
import { type ProcessOptions, removeDataDir } from '../support/process.ts'
import { openReceiver } from '../support/receiver.ts'
import { startRegistry } from '../support/registry.ts'
import { type Reached, reachedBy } from './embedded.ts'
import type { Scenario } from './expectation.ts'
import { follow } from './follow.ts'
import { sharedSecret, startLine } from './line.ts'
import { readOutbound } from './outbound.ts'
import { firstDay } from './purchases.ts'

type Options = {
  readonly scenario: Scenario
  readonly instants: readonly number[]
  readonly kills: number
  readonly seed: number
  /** Several share this database; one alone starts its own. */
  readonly shared?: { readonly databaseUrl: string; readonly processes: number }
}

export const runOnKafka = async ({ shared, ...options }: Options): Promise<Reached> => {
  const [broker, registry] = await Promise.all([startKafka(), startRegistry()])
  const dataDir = await ownFolder('acceptance')
  const receiver = await openReceiver({ secret: sharedSecret })
  const where: ProcessOptions = shared ? { databaseUrl: shared.databaseUrl } : { dataDir }
  const line = await startLine(
    {
      ...where,
      time: new Date(firstDay),
      kafkaBrokers: broker.brokers,
      env: { MILLRACE_SCHEMA_REGISTRY_URL: registry.url },
    },
    {
      definitions: options.scenario.definitions,
      receiverUrl: receiver.url,
      processes: shared?.processes ?? 1,
    },
  )
  const source = kafkaSource({ brokers: broker.brokers, logger: pino({ level: 'silent' }) })
  const codecs = await openCodecs({ registry: openRegistry({ url: registry.url }) })
  try {
    const outbound = readOutbound(source, codecs.outbound)
    const followed = await follow({ ...options, line, outbound })
    return { ...followed, ...(await reachedBy(receiver, followed.messages)) }
  } finally {
    await source.close()
    await line.stop()
    await receiver.close()
    await Promise.all([broker.stop(), registry.stop()])
    await removeDataDir(dataDir)
  }
}
