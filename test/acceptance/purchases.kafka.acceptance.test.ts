// The same eighteen months on Kafka with a schema registry, at a hundred sampled instants and through
// three kills.
import { mkdtemp } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pino } from 'pino'
import { expect, test } from 'vitest'
import { openCodecs } from '../../src/log/avro.ts'
import { kafkaSource } from '../../src/log/kafka.ts'
import { openRegistry } from '../../src/log/registry.ts'
import { startKafka } from '../support/kafka.ts'
import { removeDataDir } from '../support/process.ts'
import { openReceiver } from '../support/receiver.ts'
import { startRegistry } from '../support/registry.ts'
import { seed } from '../support/seed.ts'
import { reachedBy } from './embedded.ts'
import { everyInstant } from './expectation.ts'
import { follow } from './follow.ts'
import { sharedSecret, startLine } from './line.ts'
import { readOutbound } from './outbound.ts'
import { firstDay, loadSampled } from './purchases.ts'

test('a hundred sampled syncs on Kafka equal the naive evaluator, through three kills', async () => {
  const { name, purchases } = loadSampled(seed)
  process.stdout.write(`purchases: ${name}, SEED=${seed}\n`)
  const [broker, registry] = [await startKafka(), await startRegistry()]
  const dataDir = await mkdtemp(join(tmpdir(), 'millrace-acceptance-'))
  const receiver = await openReceiver({ secret: sharedSecret })
  const line = await startLine(
    {
      dataDir,
      time: new Date(firstDay),
      kafkaBrokers: broker.brokers,
      env: { MILLRACE_SCHEMA_REGISTRY_URL: registry.url },
    },
    receiver.url,
  )
  const source = kafkaSource({ brokers: broker.brokers, logger: pino({ level: 'silent' }) })
  const codecs = await openCodecs({ registry: openRegistry({ url: registry.url }) })
  const outbound = readOutbound(source, codecs.outbound)
  const instants = everyInstant().filter((_, at) => at % 44 === 0)
  const { messages, kills } = await follow({ line, outbound, purchases, instants, kills: 3, seed })
  process.stdout.write(`${instants.length} syncs, ${messages} messages, ${kills} kills\n`)
  expect(instants.length).toBeGreaterThanOrEqual(100)
  expect(kills).toBe(3)
  expect(await reachedBy(receiver, messages)).toEqual({ told: messages, wrong: 0 })
  await source.close()
  await line.stop()
  await receiver.close()
  await Promise.all([broker.stop(), registry.stop()])
  await removeDataDir(dataDir)
}, 5_400_000)
