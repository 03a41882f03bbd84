// An import whose command and server are killed with -9, on Kafka.
import { randomBytes } from 'node:crypto'
import { pino } from 'pino'
import { afterAll, describe, inject, test } from 'vitest'
import { kafkaSource } from '../../src/log/kafka.ts'
import { cloneDatabase } from '../support/database.ts'
import { directAdmin, topicsOf } from '../support/kafka-harness.ts'
import { type MillraceProcess, startProcess } from '../support/process.ts'
import { seed } from '../support/seed.ts'
import { killWhileImporting } from './kill-scene.ts'

const brokers = inject('kafkaBrokers')?.split(',') ?? []
const kills = Number(process.env['IMPORT_KILLS'] ?? 2)
const lines = Number(process.env['IMPORT_LINES'] ?? 20_000)

describe.skipIf(brokers.length === 0)('on Kafka', async () => {
  const database = await cloneDatabase()
  const prefix = `imp${randomBytes(4).toString('hex')}.`
  const admin = directAdmin(brokers)
  let millrace: MillraceProcess

  afterAll(async () => {
    await millrace?.kill9()
    await admin.connect()
    await admin.deleteTopics({ topics: topicsOf(prefix) }).catch(() => undefined)
    await admin.disconnect()
  })

  test(`every line is imported once, over ${kills} kills of command and server (SEED=${seed})`, async () => {
    const start = async () => {
      millrace = await startProcess({
        databaseUrl: database.url,
        kafkaBrokers: brokers,
        time: 'running',
        env: { MILLRACE_KAFKA_PREFIX: prefix },
      })
      return millrace
    }
    const openLog = async () => kafkaSource({ brokers, prefix, logger: pino({ level: 'silent' }) })
    await killWhileImporting({ start, openLog, seed, kills, lines })
  }, 600_000)
})
