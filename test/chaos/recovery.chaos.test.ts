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
import { herdOr } from './form.ts'
import { openHerd } from './herd.ts'
import { startLife } from './life.ts'
import { aCall } from './line.ts'
import { postgresLog } from './line-log.ts'

const sick = herdOr(1_000)
const healthy = 10
/** More than a breaker needs to open: the last ones of each are never tried before it is well. Again on a slow machine. */
const perDestination = 12
const answerMs = 20
const healthyCallsPerSecond = 20
/** A role's memory, whatever happens. */
const rssMax = 512 * 1_048_576
const mib = (bytes: number) => Math.round(bytes / 1_048_576)
/** On a machine that does much else: each destination is tried a dozen times in a phase. */
const patienceMs = 600_000 + 240 * sick
/** How long that may take: until all were tried, and most of them once more. */
const openMs = 15_000
/** What healthy destinations may wait for a call at the very most, and so much more on a machine that does much else. */
const healthyMsMax = 2_500
const healthyTimesBare = 10
/** As in the kills. */
const machineMs = 1_000

const codecs = await openCodecs({})
const database = await cloneDatabase()

const quantile = (values: readonly number[], share: number): number =>
  [...values].sort((a, b) => a - b)[Math.floor(values.length * share)] ?? Number.NaN

const holdsWithin = (holds: () => boolean, ms: number): Promise<boolean> =>
  until(holds, undefined, ms).then(
    () => true,
    () => false,
  )

const note = (lags: Map<string, number[]>, phase: string, ms: number): void => {
  const known = lags.get(phase)
  if (known) known.push(ms)
  else lags.set(phase, [ms])
}

/** Calls of the source of the healthy ones, all the time, and how long each took to each of them. */
const openPulse = (
  log: ReturnType<typeof postgresLog>,
  onArrival: (listener: (destination: number, n: number) => void) => void,
) => {
  const sent = new Map<number, { readonly at: number; readonly phase: string }>()
  const lags = new Map<string, number[]>()
  const bareLags = new Map<string, number[]>()
  const everyMs = 1_000 / healthyCallsPerSecond
  let phase = 'start'
  let n = 1_000_000
  let isOn = true
  onArrival((destination, number) => {
    const call = sent.get(number)
    if (destination > sick && call) note(lags, call.phase, performance.now() - call.at)
  })
  const beating = (async () => {
    while (isOn) {
      n += 1
      const [at, of] = [performance.now(), phase]
      sent.set(n, { at, phase: of })
      const call = aCall(n, { users: 1_000, sourceId: 2 })
      await log.appender.append('calls', [{ key: logKey(call), value: codecs.call.encode(call) }])
      await sleep(everyMs)
      note(bareLags, of, performance.now() - at - everyMs)
    }
  })()
  return {
    enter: (next: string) => {
      phase = next
    },
    count: () => sent.size,
    /** What writing a call and waking up in time took, with no delivery in it: the machine's part. */
    bareP99: (of: string) => Math.round(quantile(bareLags.get(of) ?? [], 0.99)),
    p99: (of: string) => Math.round(quantile(lags.get(of) ?? [], 0.99)),
    p50: (of: string) => Math.round(quantile(lags.get(of) ?? [], 0.5)),
    end: async () => {
      isOn = false
      await beating
    },
  }
}

const memoryEveryMs = 20_000

/** What the process held, phase by phase. */
const openMemory = (rss: () => number) => {
  const phases: string[][] = []
  const look = () => phases.at(-1)?.push(String(mib(rss())))
  const timer = setInterval(look, memoryEveryMs)
  return {
    enter: (phase: string) => {
      phases.push([phase])
      look()
    },
    told: () => phases.map((phase) => phase.join(' ')).join(', '),
    end: () => clearInterval(timer),
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
        log: { type: 'postgres', movesSoon: false },
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
    await until(() => herd.taken() > 0, 'delivery has begun', patienceMs)
    pulse.enter('calm')
    await sleep(3_000)
    const memory = openMemory(() => life.seen.rss)
    onTestFinished(memory.end)
    memory.enter('calm')
    memory.enter('failing')
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
    // Nor do the healthy ones wait for what was there before.
    const before = pulse.count() * healthy
    await until(() => herd.taken() >= before, 'the healthy ones have what was sent', patienceMs)

    pulse.enter('recovering')
    memory.enter('recovering')
    const healedAt = performance.now()
    const [unheardBefore, awayBefore] = [life.seen.unheard, life.seen.awayMs()]
    herd.heal()
    await until(() => herd.delivered() >= pairs, 'all are delivered', patienceMs)
    const recoveredMs = performance.now() - healedAt
    await until(async () => (await parked()) === 0, 'nothing is parked', patienceMs)
    await pulse.end()
    const all = pairs + pulse.count() * healthy
    await until(() => herd.taken() >= all, 'the healthy ones have all', patienceMs)
    const { unheard, lost } = life.seen
    const awayMs = life.seen.awayMs() - awayBefore
    // What was answered so shortly before may not have been settled yet, on a machine that does much else.
    const exposed = herd.exposed(
      lost.map(({ at, settledAt }) => ({ at, settledAt: settledAt - machineMs })),
    )
    await life.stop()
    memory.end()

    const { roundsMax, firstShareMin } = deliverLimits
    const atOnceMax = Math.ceil(roundsMax * (1 - firstShareMin))
    const capPerSecond = (atOnceMax * 1_000) / answerMs
    const most = Math.max(...herd.perSecond.values())
    process.stdout.write(
      `${sick} destinations with ${each} messages each: parked in ${Math.round(parkedMs)} ms ` +
        `after ${herd.seen.failures} tries, delivered in ${Math.round(recoveredMs)} ms, at most ${most} in a ` +
        `second, where the cap allows ${capPerSecond}, and ${herd.seen.sickInFlightMax} at once, ${herd.seen.repeats} twice of ${unheard} unheard and ${exposed} ` +
        `exposed by ${lost.length} losses of partitions, ${Math.round(awayMs)} ms without; healthy p50/p99 in ms: ` +
        `calm ${pulse.p50('calm')}/${pulse.p99('calm')}, failing ${pulse.p50('failing')}/${pulse.p99('failing')}, ` +
        `recovering ${pulse.p50('recovering')}/${pulse.p99('recovering')}, the machine ${pulse.bareP99('recovering')}; memory in MiB, a number each ` +
        `${memoryEveryMs / 1_000} s: ${memory.told()}; ${mib(life.seen.rssMax)} at most\n`,
    )
    const lines = await loadLedger(database.pool)
    const { gap, consumed, delivered, dead, inFlight } = sumLedger(lines)
    const repeated = lines.reduce((sum, line) => sum + line.repeated, 0n)
    expect({ gap, dead, inFlight }).toEqual({ gap: 0n, dead: 0n, inFlight: 0n })
    expect([consumed - repeated, delivered - repeated]).toEqual([BigInt(all), BigInt(all)])
    expect(herd.seen.unstable).toBe(0)
    // A machine that hung for seconds gave requests up that were answered, and gave its partitions back: so many, and no more.
    expect(herd.seen.repeats).toBeLessThanOrEqual(unheard + exposed)
    expect(herd.stampede(unheard - unheardBefore)).toEqual([])
    expect(herd.seen.sickInFlightMax).toBeLessThanOrEqual(atOnceMax)
    expect(most).toBeLessThanOrEqual(1.2 * capPerSecond)
    expect(life.seen.rssMax).toBeLessThan(rssMax)
    // While a machine that hung had taken its partitions from it, nobody could deliver.
    expect(pulse.p99('recovering')).toBeLessThan(
      healthyMsMax + healthyTimesBare * pulse.bareP99('recovering') + awayMs,
    )
  },
  2 * patienceMs + 60_000,
)
