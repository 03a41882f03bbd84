// Deliver is killed with -9 at each point of the failure table and at random, under load; nothing may be missing.
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, onTestFinished, test } from 'vitest'
import { type DeliverLimits, deliverLimits } from '../../src/deliver/limits.ts'
import { cloneDatabase, type Database } from '../support/database.ts'
import { seed } from '../support/seed.ts'
import { seeded } from '../support/seeded.ts'
import { type Failpoint, failpoints } from './failpoint.ts'
import { runsOr } from './form.ts'
import type { Told } from './life.ts'
import { openLine } from './line.ts'
import type { Blow, Damage, Manner } from './seen.ts'

const positionEveryMs = 250
/** An answer that had arrived was settled this much later at the latest, on a machine that does much else. */
const machineMs = 1_000
/** Where two processes share the partitions nobody knows which of their positions counts. */
const oldestMs = 5_000

/** What is sent while nobody lives waits for the next one. */
const backlogMs = 3_000

type Scene = {
  readonly name: string
  readonly manners: (random: () => number) => readonly Manner[]
  readonly users: number
  readonly callsPerSecond: number
  readonly aheadMax?: number
  readonly speed: number
  readonly limits: Partial<DeliverLimits>
  readonly runs: number
}

let slowMs = 4_900

/** By a clock that runs ten times as fast the order of whoever waits, and leases on a busy machine, would soon be over. */
const lasting = {
  leaseMs: 10 * deliverLimits.leaseMs,
  leaseMarginMs: 10 * deliverLimits.leaseMarginMs,
  headMaxMs: 100 * deliverLimits.headMaxMs,
}

/** Soon after a start behind a backlog, each point in turn, while another process takes partitions, at any time. */
const turns = ['a start', ...failpoints, 'a rebalance', 'any time'] as const
type Turn = (typeof turns)[number]

const failpointOf = (turn: Turn): Failpoint | null =>
  failpoints.find((failpoint) => failpoint === turn) ?? null

const scenes: readonly Scene[] = [
  {
    name: '3 destinations of which one fails now and then',
    manners: (random) => [
      () => ({ status: 200, afterMs: 0 }),
      () => ({ status: 200, afterMs: 20 }),
      () => ({ status: random() < 0.1 ? 503 : 200, afterMs: 0 }),
    ],
    users: 400,
    callsPerSecond: 100,
    // What waited for 24 minutes would be out of its window, by this clock.
    aheadMax: 3_000,
    speed: 10,
    limits: lasting,
    runs: runsOr(turns.length),
  },
  {
    name: '10 destinations of which one answers in 4.9 s',
    manners: () => [
      () => ({ status: 200, afterMs: slowMs }),
      ...Array.from({ length: 9 }, () => () => ({ status: 200, afterMs: 0 })),
    ],
    users: 1_000,
    callsPerSecond: 30,
    speed: 1,
    limits: {},
    runs: runsOr(5),
  },
]

/** From when on what was answered may be in no position, for a process killed then. */
const settledBy = (at: number, { settledAt, lateMs }: Told): number =>
  // Before its first position too: one is due every 250 ms, and that a process hangs is no excuse but for so long.
  Math.max(settledAt, at - positionEveryMs - lateMs) - machineMs

type Struck = Blow & {
  readonly turn: Turn
  readonly isShared: boolean
  /** How long those who lived then hung at the most. */
  readonly lateMs: number
}

const report = (name: string, kills: readonly (Damage & { readonly turn: Turn })[]) => {
  const sum = (of: keyof Damage) => kills.reduce((total, kill) => total + kill[of], 0)
  const most = (of: keyof Damage) => Math.max(...kills.map((kill) => kill[of]))
  const within = kills.filter(({ duplicates, inFlight, lately }) => duplicates <= inFlight + lately)
  process.stdout.write(
    `${name}, seed ${seed}: ${kills.length} kills, ${sum('duplicates')} duplicates, at most ` +
      `${most('duplicates')} of one; the bound: ${sum('inFlight')} in flight + ${sum('unwritten')} ` +
      `answered since the last position; ${within.length} kills within what was in flight and ` +
      `answered in ${positionEveryMs} ms; answered at most ${Math.round(most('oldestMs'))} ms before\n`,
  )
  for (const { duplicates, inFlight, lately, unwritten } of kills.filter(
    ({ turn }) => turn === 'a start',
  ))
    process.stdout.write(
      `  soon after a start: ${duplicates} duplicates of ${inFlight} in flight + ${lately} answered in ` +
        `${positionEveryMs} ms (${unwritten} since a position was due, on this machine)\n`,
    )
}

const databases = await Promise.all(scenes.map(() => cloneDatabase()))

const killScene = async (
  { name, manners, runs, ...scene }: Scene,
  database: Database,
): Promise<void> => {
  slowMs = 4_900
  const random = seeded(seed)
  const line = await openLine({ manners: manners(random), database, ...scene })
  onTestFinished(() => line.close())
  const blows: Struck[] = []
  for (let run = 0; run < runs; run += 1) {
    const turn = turns[run % turns.length] as Turn
    const { fail, patienceMs } = aim(turn, random)
    if (turn === 'a start') await sleep(backlogMs)
    const lives = [await line.start(fail)]
    const patience = sleep(patienceMs, undefined, { ref: false })
    await Promise.race([lives[0]?.done, patience])
    if (turn === 'a rebalance') {
      lives.push(await line.start())
      await sleep(Math.floor(random() * 1_500))
      if (random() < 0.5) lives.reverse()
    }
    for (const life of lives) {
      const lateMs = Math.max(...lives.map(({ seen }) => seen.lateMs))
      await life.kill9()
      const killedAt = performance.now()
      const settledAt = settledBy(killedAt, life.seen)
      // On a machine that hung for a second a process may lose its partitions to nobody, and gain them again.
      const isShared = lives.length > 1 || life.seen.lost.length > 0
      blows.push({ at: killedAt, settledAt, turn, isShared, lateMs })
    }
    await line.balanced()
    await line.committed.look()
    expect(line.committed.found.unsettled, `run ${run}, seed ${seed}`).toEqual([])
    expect(line.seen.outOfOrder, `run ${run}, seed ${seed}`).toEqual([])
  }
  await line.endLoad()
  slowMs = 0
  const life = await line.start()
  await line.settled()
  await life.stop()
  await line.committed.look()
  const damages = line.seen.damages(blows, positionEveryMs)
  const kills = damages.map((damage, index) => ({ ...(blows[index] as Struck), ...damage }))
  report(name, kills)
  expect(line.seen.outOfOrder, `seed ${seed}`).toEqual([])
  expect(line.committed.found.unsettled).toEqual([])
  expect(line.committed.found.offsets).toBeGreaterThan(0)
  if (life.seen.lost.length === 0)
    expect(line.seen.repeatsSince(blows.at(-1)?.at ?? 0), `seed ${seed}`).toBe(0)
  // What was in flight, and what was answered since the last position: no more may come again.
  for (const [index, { duplicates, inFlight, unwritten, isShared }] of kills.entries())
    if (!isShared)
      expect(duplicates, `kill ${index}, seed ${seed}`).toBeLessThanOrEqual(inFlight + unwritten)
  for (const [index, kill] of kills.entries())
    expect(kill.oldestMs, `kill ${index}, seed ${seed}`).toBeLessThan(oldestMs + kill.lateMs)
  // The kills must have hit work under way, or nothing was proved.
  expect(kills.some(({ duplicates }) => duplicates > 0)).toBe(true)
}

/** Where it is to die, and how long that is waited for. */
const aim = (turn: Turn, random: () => number) => {
  const at = failpointOf(turn)
  const times = 1 + Math.floor(random() * (at && isRare(at) ? 6 : 150))
  // Longer than a position may be late: otherwise all that it answered would be excused.
  const longerMs = turn === 'a start' ? 1_500 : 0
  const patienceMs = 1_000 + longerMs + Math.floor(random() * 1_500)
  return { fail: at ? { at, times } : null, patienceMs }
}

/** Passed a few times in a second, not hundreds of times. */
const isRare = (at: string): boolean => /commit|recorded|position|claim|gone/.test(at)

const secondsEach = 20
const secondsMore = 600

for (const [at, scene] of scenes.entries())
  test(
    `${scene.name}: kills lose nothing, and repeat no more than was under way`,
    () => killScene(scene, databases[at] as Database),
    (scene.runs * secondsEach + secondsMore) * 1_000,
  )
