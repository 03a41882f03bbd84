// A replay whose process is killed with -9, on Kafka.
import { afterAll, describe, inject, test } from 'vitest'
import { cloneDatabase } from '../support/database.ts'
import { type Broker, startKafka } from '../support/kafka.ts'
import { type MillraceProcess, startProcess } from '../support/process.ts'
import { openReceiver } from '../support/receiver.ts'
import { seed } from '../support/seed.ts'
import { killWhileReplaying } from './kill-scene.ts'

const kills = Number(process.env['REPLAY_KILLS'] ?? 2)

describe.skipIf(inject('kafkaBrokers') === null)('a replay on Kafka', async () => {
  const database = await cloneDatabase()
  const receiver = await openReceiver({ secret: 's3cret' })
  let broker: Broker | null = null
  let millrace: MillraceProcess

  afterAll(async () => {
    await millrace?.kill9()
    await receiver.close()
    await broker?.stop()
  })

  test(`loses nothing and sends nothing twice that need not be, over ${kills} kills (SEED=${seed})`, async () => {
    broker = await startKafka()
    const { brokers } = broker
    const start = async () => {
      millrace = await startProcess({
        databaseUrl: database.url,
        kafkaBrokers: brokers,
        time: 'running',
      })
      return millrace
    }
    await killWhileReplaying({ receiver, start, seed, kills })
  }, 1_800_000)
})
