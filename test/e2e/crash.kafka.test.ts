// On Kafka, collector and broker are killed with -9 while calls are sent; then the calls are counted.

import { pino } from 'pino'
import { afterAll, describe, expect, inject, test } from 'vitest'
import { kafkaSource } from '../../src/log/kafka.ts'
import { cloneDatabase } from '../support/database.ts'
import { applyFile, countLog, countMetered, countPosts, totalOf } from '../support/far-end.ts'
import { type Broker, startKafka } from '../support/kafka.ts'
import { type MillraceProcess, startProcess } from '../support/process.ts'
import { openReceiver } from '../support/receiver.ts'
import { messageIdOf, startSender } from '../support/sender.ts'
import { until } from '../support/until.ts'

const writeKey = 'wk_crash_kafka'
/** More of them in the long form, `npm run test:crash:kafka`. */
const kills = Number(process.env['CRASH_KILLS'] ?? 2)
/** A collector answers within this when its broker is away; what a busy machine adds is on top. */
const answerMsMax = 5_000
const machineMs = 10_000

describe.skipIf(inject('kafkaBrokers') === null)('on a broker of its own', async () => {
  const database = await cloneDatabase()
  const receiver = await openReceiver({ secret: 's3cret' })
  let broker: Broker
  let collector: MillraceProcess
  let readers: MillraceProcess

  afterAll(async () => {
    await Promise.all([collector?.kill9(), readers?.kill9()])
    await receiver.close()
    await broker?.stop()
  })

  const startWith = (roles: string) =>
    startProcess({
      databaseUrl: database.url,
      kafkaBrokers: broker.brokers,
      time: 'running',
      env: { MILLRACE_ROLES: roles },
    })

  const startReaders = async () => {
    readers = await startWith('project,sync,deliver,admin')
  }

  const missingFromLog = async (numbers: Iterable<number>) => {
    const source = kafkaSource({ brokers: broker.brokers, logger: pino({ level: 'silent' }) })
    const log = await countLog(source)
    await source.close()
    return { log, missing: [...numbers].filter((n) => !log.has(messageIdOf(n))) }
  }

  test(`no call that was answered 200 is missing, and none counts twice, over ${kills} kills of each`, async () => {
    broker = await startKafka()
    await startReaders()
    await applyFile(readers, fileFor(receiver.url))
    collector = await startWith('collect')
    const sender = startSender({
      url: () => collector.collectUrl,
      writeKey,
      workers: 8,
      callsPerBatch: 10,
      againEvery: 10,
    })
    const more = (calls: number, what: string) => {
      const from = sender.acknowledged.size
      return until(() => sender.acknowledged.size >= from + calls, what, 120_000)
    }
    for (let kill = 0; kill < kills; kill += 1) {
      await more(500, `calls before the collector's kill ${kill}`)
      await collector.kill9()
      const atKill = [...sender.acknowledged]
      collector = await startWith('collect')
      expect((await missingFromLog(atKill)).missing).toEqual([])

      await more(500, `calls before the broker's kill ${kill}`)
      await broker.kill()
      const refused = sender.statuses.get(503) ?? 0
      await until(() => (sender.statuses.get(503) ?? 0) > refused + 16, 'the collector refuses')
      const told = [...sender.acknowledged]
      await broker.restart()
      await more(200, `calls after the broker's return ${kill}`)
      expect((await missingFromLog(told)).missing).toEqual([])
    }
    await sender.finish()
    expect(sender.slowestMs(503)).toBeLessThan(answerMsMax + machineMs)
    // Requests that were cut off, or nothing was proved.
    expect(sender.statuses.get(0)).toBeGreaterThan(0)
    const sent = sender.acknowledged.size
    const { log, missing } = await missingFromLog(sender.acknowledged)
    expect(missing).toEqual([])
    expect(log.size).toBe(sent)
    expect([...log.values()].filter((times) => times > 1).length).toBeGreaterThan(0)
    if (await hasEnded(readers)) await startReaders()
    const arrived = async () => totalOf(await countMetered(readers)) >= sent
    await until(arrived, 'all calls are projected', 180_000)
    await until(() => countPosts(receiver).size >= sent, 'all calls are posted', 180_000)
    expect(await countMetered(readers)).toEqual({ 'shop/web': sent })
    expect(countPosts(receiver).size).toBe(sent)
    expect(receiver.badSignatures).toEqual([])
  }, 2_400_000)
})

const fileFor = (url: string) => ({
  workspaces: [
    {
      name: 'shop',
      sources: [{ name: 'web', class: 'server', writeKey }],
      destinations: [
        {
          name: 'Hooks',
          type: 'webhook',
          sources: ['web'],
          sharedSecret: 's3cret',
          webhooks: [{ url, headers: {} }],
        },
      ],
    },
  ],
})

/** A process whose broker went away may end, for its supervisor to start it again. */
const hasEnded = (millrace: MillraceProcess) =>
  Promise.race([millrace.done.then(() => true), Promise.resolve(false)])
