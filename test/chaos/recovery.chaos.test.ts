// Thousands of destinations whose receivers fail together and are well again at one instant.
import type { ChildProcess } from 'node:child_process'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, onTestFinished, test } from 'vitest'
import { loadLedger, sumLedger } from '../../src/deliver/ledger.ts'
import { deliverLimits } from '../../src/deliver/limits.ts'
import { logKey } from '../../src/domain/message.ts'
import { openCodecs } from '../../src/log/avro.ts'
import { cloneDatabase } from '../support/database.ts'
import { until } from '../support/until.ts'
import { isLong } from './form.ts'
import { openHerd } from './herd.ts'
import { startLife } from './life.ts'
import { aCall } from './line.ts'
import { postgresLog } from './line-log.ts'

const sick = isLong ? 10_000 : 1_000
const healthy = 10
/** More than a breaker needs to open: the last ones of each are never tried before it is well. Again on a slow machine. */
const perDestination = 12
const answerMs = 20
const healthyCallsPerSecond = 20
/** A role's memory, whatever happens. */
const rssMax = 512 * 1_048_576
const mib = (bytes: number) => Math.round(bytes / 1_048_576)
const patienceMs = isLong ? 900_000 : 240_000
/** How long that may take: until all were tried, and most of them once more. */
const openMs = 15_000
/** What healthy destinations may wait for a call at the very most, on a machine that does much else. */
const healthyMsMax = 2_500

const codecs = await openCodecs({})
const database = await cloneDatabase()

const quantile = (values: readonly number[], share: number): number =>
  [...values].sort((a, b) => a - b)[Math.floor(values.length * share)] ?? Number.NaN

const holdsWithin = (holds: () => boolean, ms: number): Promise<boolean> =>
  until(holds, undefined, ms).then(
    () => true,
    () => false,
  )

/** Calls of the source of the healthy ones, all the time, and how long each took to each of them. */
const openPulse = (
  log: ReturnType<typeof postgresLog>,
  onArrival: (listener: (destination: number, n: number) => void) => void,
) => {
  const sentAt = new Map<number, number>()
  const lags = new Map<string, number[]>()
  let phase = 'start'
  let n = 1_000_000
  let isOn = true
  onArrival((destination, number) => {
    const at = sentAt.get(number)
    if (destination > sick && at !== undefined)
      lags.set(phase, [...(lags.get(phase) ?? []), performance.now() - at])
  })
  const beating = (async () => {
    while (isOn) {
      n += 1
      sentAt.set(n, performance.now())
      const call = aCall(n, { users: 1_000, sourceId: 2 })
      await log.appender.append('calls', [{ key: logKey(call), value: codecs.call.encode(call) }])
      await sleep(1_000 / healthyCallsPerSecond)
    }
  })()
  return {
    enter: (next: string) => {
      phase = next
    },
    count: () => sentAt.size,
    p99: (of: string) => Math.round(quantile(lags.get(of) ?? [], 0.99)),
    p50: (of: string) => Math.round(quantile(lags.get(of) ?? [], 0.5)),
    end: async () => {
      isOn = false
      await beating
    },
  }
}

test(
  `${sick} destinations that recover together get everything, and nobody is run over`,
  async () => {
    const herd = await openHerd({ sick, healthy, answerMs })
    const log = postgresLog(database.pool)
    const lives = new Set<ChildProcess>()
    const pulse = openPulse(log, herd.onArrival)
    onTestFinished(async () => {
      await pulse.end()
      for (const child of lives) child.kill('SIGKILL')
      await herd.close()
      await log.close()
    })
    const life = await startLife(
      {
        databaseUrl: database.url,
        log: log.choice,
        targets: herd.targets,
        fail: null,
        clock: { from: Date.now(), speed: 1 },
        limits: {},
      },
      lives,
    )
    const parked = async () => {
      const { rows } = await database.pool.query<{ rows: number }>(
        'select count(*)::int as rows from parked where destination_id <= $1',
        [sick],
      )
      return rows[0]?.rows ?? 0
    }
    pulse.enter('calm')
    await sleep(3_000)
    const calmRss = life.seen.rss
    pulse.enter('failing')
    const began = performance.now()
    let each = 0
    const send = async () => {
      const calls = Array.from({ length: perDestination }, (_, at) =>
        aCall(each + at + 1, { users: 1_000, sourceId: 1 }),
      )
      each += perDestination
      const entries = calls.map((call) => ({ key: logKey(call), value: codecs.call.encode(call) }))
      await log.appender.append('calls', entries)
      await until(async () => (await parked()) === sick * each, 'all are parked', patienceMs)
    }
    // What is parked for want of room was not tried yet: nobody can know of its destination that it is sick.
    const isLeftAlone = () => life.seen.shut === sick && life.seen.crowded === 0
    do await send()
    while (!(await holdsWithin(isLeftAlone, openMs)))
    const pairs = sick * each
    const parkedMs = performance.now() - began
    expect(herd.delivered()).toBe(0)

    pulse.enter('recovering')
    const healedAt = performance.now()
    herd.heal()
    await until(() => herd.delivered() >= pairs, 'all are delivered', patienceMs)
    const recoveredMs = performance.now() - healedAt
    await until(async () => (await parked()) === 0, 'nothing is parked', patienceMs)
    await pulse.end()
    await until(() => herd.taken() >= pairs + pulse.count() * healthy, 'the healthy ones have all')
    await life.stop()

    const most = Math.max(...herd.perSecond.values())
    process.stdout.write(
      `${sick} destinations with ${each} messages each: parked in ${Math.round(parkedMs)} ms ` +
        `after ${herd.seen.failures} tries, delivered in ${Math.round(recoveredMs)} ms, at most ${most} a ` +
        `second and ${herd.seen.sickInFlightMax} at once, ${herd.seen.repeats} twice; healthy p50/p99 in ms: ` +
        `calm ${pulse.p50('calm')}/${pulse.p99('calm')}, failing ${pulse.p50('failing')}/${pulse.p99('failing')}, ` +
        `recovering ${pulse.p50('recovering')}/${pulse.p99('recovering')}; memory ${mib(calmRss)} MiB calm, ` +
        `${mib(life.seen.rssMax)} MiB at most\n`,
    )
    const ledger = sumLedger(await loadLedger(database.pool))
    const all = BigInt(pairs + pulse.count() * healthy)
    expect(ledger).toMatchObject({ gap: 0n, consumed: all, delivered: all, dead: 0n, inFlight: 0n })
    expect(herd.seen).toMatchObject({ repeats: 0, unstable: 0 })
    expect(herd.stampede).toEqual([])
    const { roundsMax, firstShareMin } = deliverLimits
    expect(herd.seen.sickInFlightMax).toBeLessThanOrEqual(
      Math.ceil(roundsMax * (1 - firstShareMin)),
    )
    expect(life.seen.rssMax).toBeLessThan(rssMax)
    expect(pulse.p99('recovering')).toBeLessThan(healthyMsMax)
  },
  2 * patienceMs + 60_000,
)
