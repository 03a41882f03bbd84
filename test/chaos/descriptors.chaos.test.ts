// Out of descriptors: our own fault, which costs no receiver its breaker and no message its window.
import { fork } from 'node:child_process'
import { chmod, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, onTestFinished, test } from 'vitest'
import { loadLedger, sumLedger } from '../../src/deliver/ledger.ts'
import { digestOf, logKey } from '../../src/domain/message.ts'
import { openCodecs } from '../../src/log/avro.ts'
import { postgresAppender } from '../../src/log/postgres.ts'
import { cloneDatabase } from '../support/database.ts'
import { ownFolder } from '../support/folder.ts'
import { openReceiver } from '../support/receiver.ts'
import { until } from '../support/until.ts'
import type { FewNews, FewStart } from './few-descriptors-child.ts'

const codecs = await openCodecs({})
const database = await cloneDatabase()
const { pool } = database

/** What the runtime takes for itself, four connections to Postgres, and a few to receivers. */
const descriptors = 56
const destinations = 8
const calls = 40

const aCall = (n: number) => {
  const now = Date.now()
  const message = {
    ...{ messageId: `m${n}`, type: 'track' as const, workspaceId: 1, sourceId: 1 },
    ...{ userId: `u${n}`, anonymousId: null, previousId: null, groupId: null },
    ...{ event: 'Order Completed', timestamp: now, originalTimestamp: now, sentAt: null },
    ...{
      receivedAt: now,
      body: Buffer.from(JSON.stringify({ properties: { n } })),
      filtered: null,
    },
  }
  return { ...message, digest: digestOf(message) }
}

test('out of descriptors messages wait a little, no URL is left alone for it, and all arrive', async () => {
  const hook = await openReceiver({ secret: null })
  onTestFinished(hook.close)
  hook.reply(async () => {
    await sleep(200)
    return 200
  })
  const folder = await ownFolder('few')
  const execPath = join(folder, 'node')
  await writeFile(
    execPath,
    `#!/bin/sh\nulimit -n ${descriptors}\nexec "${process.execPath}" "$@"\n`,
  )
  await chmod(execPath, 0o755)
  const appender = postgresAppender({ pool, clock: () => new Date() })
  await appender.append(
    'calls',
    Array.from({ length: calls }, (_, n) => aCall(n)).map((call) => ({
      key: logKey(call),
      value: codecs.call.encode(call),
    })),
  )
  await appender.close()
  const urls = Array.from({ length: destinations }, (_, at) => `${hook.url}/${at + 1}`)
  const script = new URL('./few-descriptors-child.ts', import.meta.url)
  const child = fork(script, [], { execPath, execArgv: [], stdio: ['ignore', 2, 2, 'ipc'] })
  onTestFinished(() => void child.kill('SIGKILL'))
  const news: FewNews[] = []
  child.on('message', (one) => news.push(one as FewNews))
  child.send({ databaseUrl: database.url, urls } satisfies FewStart)
  const pairs = BigInt(calls * destinations)
  await until(
    async () => {
      const { delivered, parked, inFlight } = sumLedger(await loadLedger(pool))
      return delivered === pairs && parked === 0n && inFlight === 0n
    },
    'everything is delivered',
    180_000,
  )
  const { rows } = await pool.query<{ reason: string | null; amount: number }>(
    'select reason, count(*)::int as amount from attempt group by 1 order by 2 desc',
  )
  process.stdout.write(`attempts of ${pairs} by reason: ${JSON.stringify(rows)}\n`)
  // It did run out, and nothing else went wrong.
  expect(rows.some(({ reason }) => reason === 'local_resources')).toBe(true)
  expect(rows.filter(({ reason }) => reason && reason !== 'local_resources')).toEqual([])
  expect(news).toEqual([])
  expect(sumLedger(await loadLedger(pool))).toMatchObject({ dead: 0n, gap: 0n })
})
