// Operators hear once that a receiver fails and once that it recovered, though whoever tells it is killed with -9 meanwhile.
import type { ChildProcess } from 'node:child_process'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, onTestFinished, test } from 'vitest'
import { logKey } from '../../src/domain/message.ts'
import { openCodecs } from '../../src/log/avro.ts'
import { cloneDatabase } from '../support/database.ts'
import { openReceiver } from '../support/receiver.ts'
import { seed } from '../support/seed.ts'
import { seeded } from '../support/seeded.ts'
import { until } from '../support/until.ts'
import { runsOr } from './form.ts'
import { startLife } from './life.ts'
import { aCall } from './line.ts'
import { postgresLog } from './line-log.ts'

/** Each has two kills and a destination of its own: the same one is told of once an hour. */
const episodes = Math.min(30, Math.ceil(runsOr(4) / 2))
/** What was said by a process that is gone is taken over after a minute of its clock. */
const speed = 20
const patienceMs = 120_000
const callsAtOnce = 5

const codecs = await openCodecs({})
const database = await cloneDatabase()

test(`${episodes} episodes of failures, with two kills in each, are each told once (seed ${seed})`, async () => {
  const random = seeded(seed)
  const operator = await openReceiver({ secret: null })
  const hooks = await Promise.all(
    Array.from({ length: episodes }, () => openReceiver({ secret: null })),
  )
  const log = postgresLog(database.pool)
  const lives = new Set<ChildProcess>()
  onTestFinished(async () => {
    for (const child of lives) child.kill('SIGKILL')
    for (const hook of [operator, ...hooks]) await hook.close()
    await log.close()
  })
  const from = Date.now()
  const start = () =>
    startLife(
      {
        ...{ databaseUrl: database.url, log: log.choice, fail: null, limits: {} },
        ...{ clock: { from, speed }, operator: operator.url },
        targets: hooks.map(({ url }, at) => ({ url, sourceId: at + 1 })),
      },
      lives,
    )
  let n = 0
  const call = async (sourceId: number) => {
    const calls = Array.from({ length: callsAtOnce }, () => {
      n += 1
      return aCall(n, { users: 1_000_000, sourceId })
    })
    const entries = calls.map((one) => ({ key: logKey(one), value: codecs.call.encode(one) }))
    await log.appender.append('calls', entries)
  }
  /** Of one destination, each event once: one whose answer was lost comes again under its id. */
  const told = (destinationId: number): readonly string[] => {
    const events = operator.requests.map(({ json }) => json)
    const own = events.filter((event) => event['destinationId'] === destinationId)
    const byId = new Map(own.map((event) => [event['id'], event]))
    return [...byId.values()].map((event) => [event['type'], event['failurePercent']].join(' '))
  }
  /** With calls all the time, as answers tell what a receiver is like. */
  const untilTold = (id: number, type: string) =>
    until(
      async () => {
        await call(id)
        await sleep(50)
        return told(id).some((event) => event.startsWith(type))
      },
      `${type} of ${id}, seed ${seed}`,
      patienceMs,
    )
  let life = await start()
  let heard = 0
  const killAtAnyTime = async (id: number) => {
    await call(id)
    await sleep(Math.floor(random() * 1_500))
    if (told(id).length > 0) heard += 1
    await life.kill9()
    life = await start()
  }
  for (const [at, hook] of hooks.entries()) {
    const id = at + 1
    hook.reply(() => 503)
    await killAtAnyTime(id)
    await untilTold(id, 'destination.failing')
    hook.reply(() => 200)
    await killAtAnyTime(id)
    await untilTold(id, 'destination.recovered')
  }
  await life.stop()
  process.stdout.write(`${2 * episodes} kills, ${heard} of them after something was told\n`)
  for (let id = 1; id <= episodes; id += 1) {
    const events = told(id)
    expect(new Set(events).size, `${events}, seed ${seed}`).toBe(events.length)
    expect(events.filter((event) => event.startsWith('destination.recovered'))).toHaveLength(1)
    expect(events.at(-1)).toMatch(/recovered/)
  }
  const { rows } = await database.pool.query('select * from failing_url')
  expect(rows).toEqual([])
}, 1_800_000)
