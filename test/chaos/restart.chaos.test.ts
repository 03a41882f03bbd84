// The real broker and the real Postgres are stopped, killed with -9 and started again under delivery load.
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, describe, expect, onTestFinished, test } from 'vitest'
import { deliverLimits } from '../../src/deliver/limits.ts'
import { cloneDatabase } from '../support/database.ts'
import { type Broker, startKafka } from '../support/kafka.ts'
import { seed } from '../support/seed.ts'
import { seeded } from '../support/seeded.ts'
import { until } from '../support/until.ts'
import { isLong } from './form.ts'
import { type Supervised, supervise } from './life.ts'
import { openLine } from './line.ts'
import { kafkaLog } from './line-log.ts'
import { openOwnPostgres } from './own-postgres.ts'
import type { Blow, Damage } from './seen.ts'

const rounds = isLong ? 20 : 2
const partitions = 4
const backMs = 120_000
/** Soon over when the broker is away. */
const sessionMs = 6_000
/** Where the broker stays: not over on a machine that hangs for seconds either, for what was in flight then is sent again. */
const longSessionMs = 30_000

const broker = await startKafka().catch((error: unknown) => {
  if (process.env['CI'] === 'true') throw error
  process.stderr.write(`NO KAFKA BROKER: restarts of it are not tested. ${String(error)}\n`)
  return null
})
afterAll(() => broker?.stop())

/** Of a clock that runs ten times as fast: as long as ever. */
const leases = {
  leaseMs: 10 * deliverLimits.leaseMs,
  leaseMarginMs: 10 * deliverLimits.leaseMarginMs,
  headMaxMs: 10 * deliverLimits.headMaxMs,
}

type Line = Awaited<ReturnType<typeof openLine>>

const manners = (random: () => number) => [
  () => ({ status: 200, afterMs: 0 }),
  () => ({ status: 200, afterMs: 20 }),
  () => ({ status: random() < 0.1 ? 503 : 200, afterMs: 0 }),
]

/** Rounds in flight when partitions were lost end within it, whoever owns them by then. */
const roundMs = 1_000
const machineMs = 1_000
const positionEveryMs = 250

/** Every time partitions were lost, or a process ended; memberships lose theirs one shortly after the other. */
const blowsOf = ({ lives }: Supervised): readonly Blow[] => {
  const blows: Blow[] = []
  for (const { seen } of lives)
    for (const { at, settledAt } of seen.lost) {
      const last = blows.at(-1)
      if (last && at + roundMs - last.at < 2 * roundMs) blows.pop()
      const first =
        last && at + roundMs - last.at < 2 * roundMs ? last.settledAt : Number.POSITIVE_INFINITY
      blows.push({ at: at + roundMs, settledAt: Math.min(first, settledAt - machineMs) })
    }
  return blows
}

const judge = async (line: Line, supervised: Supervised): Promise<readonly Damage[]> => {
  await line.endLoad()
  await line.settled()
  await supervised.stop()
  await line.committed.look()
  expect(line.committed.found.unsettled).toEqual([])
  expect(line.committed.found.offsets).toBeGreaterThan(0)
  expect(line.seen.outOfOrder).toEqual([])
  const damages = line.seen.damages(blowsOf(supervised), positionEveryMs)
  for (const { duplicates, inFlight, unwritten } of damages)
    expect(duplicates, `seed ${seed}`).toBeLessThanOrEqual(inFlight + unwritten)
  return damages
}

const sum = (damages: readonly Damage[], of: keyof Damage) =>
  damages.reduce((total, one) => total + one[of], 0)

const told = (damages: readonly Damage[]) =>
  `${sum(damages, 'duplicates')} duplicates; the bound: ${sum(damages, 'inFlight')} in flight + ` +
  `${sum(damages, 'unwritten')} answered since the last position; answered at most ` +
  `${Math.round(Math.max(0, ...damages.map(({ oldestMs }) => oldestMs)))} ms before`

const more = (line: Line, pairs: number, what: string) => {
  const wanted = line.seen.pairs() + pairs
  return until(() => line.seen.pairs() >= wanted, what, backMs)
}

describe.skipIf(broker === null)('on a broker of its own', async () => {
  const { brokers, halt, kill, restart } = broker as Broker
  const database = await cloneDatabase()
  const timeoutMs = (rounds * 60 + 600) * 1_000

  test(
    `a broker that stops or dies costs no message (${rounds} times, seed ${seed})`,
    async () => {
      const random = seeded(seed)
      const log = await kafkaLog({ brokers, partitions, sessionMs })
      const line = await openLine({
        database,
        log,
        manners: manners(random),
        users: 400,
        callsPerSecond: 100,
        speed: 10,
        limits: leases,
      })
      onTestFinished(() => line.close())
      const supervised = await supervise(line.start)
      for (let round = 0; round < rounds; round += 1) {
        await more(line, 300, `pairs before outage ${round}`)
        await line.committed.look()
        await (round % 2 === 0 ? kill() : halt())
        // Shorter than a session, and longer.
        await sleep(random() * (isLong ? 12_000 : 3_000))
        await restart()
        await more(line, 300, `pairs after outage ${round}`)
        await line.committed.look()
        expect(line.committed.found.unsettled, `outage ${round}, seed ${seed}`).toEqual([])
      }
      const damages = await judge(line, supervised)
      process.stdout.write(
        `${rounds} outages of the broker, seed ${seed}: ${line.appended()} calls, ` +
          `${line.failedAppends()} appends failed, ${supervised.lives.length - 1} processes ended, ` +
          `${damages.length} losses of partitions, ${told(damages)}; ${line.committed.found.offsets} ` +
          'committed offsets looked at\n',
      )
      expect(line.failedAppends()).toBeGreaterThan(0)
    },
    timeoutMs,
  )

  test(
    `a Postgres that stops or dies costs no message, and stops intake (${rounds} times, seed ${seed})`,
    async () => {
      const random = seeded(seed)
      const postgres = await openOwnPostgres()
      onTestFinished(() => postgres.close())
      const log = await kafkaLog({ brokers, partitions, sessionMs: longSessionMs })
      const line = await openLine({
        database: postgres,
        log,
        manners: manners(random),
        users: 400,
        callsPerSecond: 100,
        speed: 10,
        // Nobody dies: what was claimed may stay so for as long as an outage takes.
        limits: { ...leases, leaseMs: 10 * leases.leaseMs },
      })
      onTestFinished(() => line.close())
      const supervised = await supervise(line.start)
      const pausedNow = () => supervised.now().seen.paused['postgres'] ?? 0
      const sentAfter: number[] = []
      for (let round = 0; round < rounds; round += 1) {
        await more(line, 300, `pairs before outage ${round}`)
        await line.committed.look()
        const sent = line.seen.requests()
        await (round % 2 === 0 ? postgres.kill9() : postgres.stop())
        const appended = line.appended()
        await until(() => pausedNow() > 0, 'the brake holds partitions', backMs)
        await until(() => line.appended() > appended + 300, 'calls come in', backMs)
        // Intake goes on, and nothing more is sent: what is read beyond a batch waits in the log.
        await until(
          async () => {
            const [quiet, before] = [line.seen.requests(), line.appended()]
            await until(() => line.appended() > before + 100, 'more calls come in', backMs)
            return line.seen.requests() === quiet
          },
          `nothing is sent any more in outage ${round}`,
          backMs,
        )
        sentAfter.push(line.seen.requests() - sent)
        await postgres.start()
        await until(() => pausedNow() === 0, 'the brake is off', backMs)
        await more(line, 1_200, `pairs after outage ${round}`)
        await line.balanced()
        await line.committed.look()
        expect(line.committed.found.unsettled, `outage ${round}, seed ${seed}`).toEqual([])
      }
      const damages = await judge(line, supervised)
      const engaged = supervised.lives.flatMap(({ seen }) =>
        seen.pauses.filter(
          ({ paused }, at) => paused['postgres'] && !seen.pauses[at - 1]?.paused['postgres'],
        ),
      )
      process.stdout.write(
        `${rounds} outages of Postgres, seed ${seed}: ${line.appended()} calls, ` +
          `${supervised.lives.length - 1} processes ended, ${sentAfter.join(', ')} requests sent after ` +
          `it went, the brake held ${engaged.length} times, ${told(damages)}\n`,
      )
      expect(supervised.lives.length, supervised.lives[0]?.logTail()).toBe(1)
      // It does not stop and go.
      expect(engaged.length).toBe(rounds)
      // Shorter than leases: what was answered meanwhile is kept in memory until it can be written.
      expect(line.seen.repeatsSince(0)).toBe(0)
    },
    timeoutMs,
  )
})
