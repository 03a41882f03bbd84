// Millrace is killed with -9 while it is sent calls, again and again; then its calls are counted.
import { afterAll, expect, test } from 'vitest'
import { postgresSource } from '../../src/log/postgres.ts'
import { findPostgres } from '../../src/postgres/embedded.ts'
import { openPool } from '../../src/postgres/pool.ts'
import { applyFile, countLog, countMetered, countPosts, totalOf } from '../support/far-end.ts'
import { ownFolder } from '../support/folder.ts'
import { type MillraceProcess, removeDataDir, startProcess } from '../support/process.ts'
import { openReceiver } from '../support/receiver.ts'
import { seed } from '../support/seed.ts'
import { seeded } from '../support/seeded.ts'
import { messageIdOf, startSender } from '../support/sender.ts'
import { until } from '../support/until.ts'

/** More of them in the long form, `npm run test:crash`. */
const kills = Number(process.env['CRASH_KILLS'] ?? 4)
const writeKey = 'wk_crash_web'

const dataDir = await ownFolder('crash')
const receiver = await openReceiver({ secret: 's3cret' })
let millrace: MillraceProcess

afterAll(async () => {
  await millrace?.kill9()
  await receiver.close()
  await removeDataDir(dataDir)
})

const file = {
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
          webhooks: [{ url: receiver.url, headers: {} }],
        },
      ],
    },
  ],
}

const start = async () => {
  millrace = await startProcess({ dataDir, time: 'running' })
}

const logNow = async () => {
  const pool = openPool({
    url: (await findPostgres(dataDir)) ?? '',
    connectionsMax: 1,
    name: 'test',
  })
  const source = postgresSource({ pool })
  const counts = await countLog(source)
  await source.close()
  await pool.close()
  return counts
}

test(`no call that was answered 200 is missing, and none counts twice, over ${kills} kills (SEED=${seed})`, async () => {
  const random = seeded(seed)
  await start()
  await applyFile(millrace, file)
  const sender = startSender({
    url: () => millrace.collectUrl,
    writeKey,
    workers: 8,
    callsPerBatch: 10,
    againEvery: 10,
  })
  await until(() => sender.acknowledged.size > 500, 'calls are taken')
  for (let kill = 0; kill < kills; kill += 1) {
    const before = sender.acknowledged.size
    const after = before + 50 + Math.floor(random() * 500)
    await until(() => sender.acknowledged.size >= after, `calls before kill ${kill}`)
    await millrace.kill9()
    const atKill = [...sender.acknowledged]
    await start()
    const log = await logNow()
    // Before anything is sent again by a sender that knows better: what it was told, the log has.
    expect(atKill.filter((n) => !log.has(messageIdOf(n)))).toEqual([])
  }
  await sender.finish()
  const sent = sender.acknowledged.size
  // The kills must have hit requests in flight, or nothing was proved.
  expect(sender.statuses.get(0)).toBeGreaterThan(0)
  const log = await logNow()
  expect([...sender.acknowledged].filter((n) => !log.has(messageIdOf(n)))).toEqual([])
  expect(log.size).toBe(sent)
  expect([...log.values()].filter((times) => times > 1).length).toBeGreaterThan(0)
  await until(
    async () => totalOf(await countMetered(millrace)) >= sent,
    'all calls are projected',
    60_000,
  )
  await until(() => countPosts(receiver).size >= sent, 'all calls are posted', 120_000)
  expect(await countMetered(millrace)).toEqual({ 'shop/web': sent })
  expect(countPosts(receiver).size).toBe(sent)
  expect(receiver.badSignatures).toEqual([])
}, 600_000)
