// Deliver is killed with -9 at each point of the failure table and at random, under load; nothing may be missing.
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, onTestFinished, test } from 'vitest'
import { cloneDatabase, type Database } from '../support/database.ts'
import { seeded } from '../support/seeded.ts'
import { failpoints } from './failpoint.ts'
import { type Kill, type Manner, openLine } from './line.ts'

const seed = Number(process.env['CHAOS_SEED'] ?? Date.now() % 1_000_000)
/** 200 of them in the long form, `npm run chaos -- deliver`. */
const runs = Number(process.env['CHAOS_RUNS'] ?? 12)
const positionEveryMs = 250
/**
 * What was answered longer before a kill than this must not come again: an interval, its write, and the commit
 * that a position waits for, on a machine that does much else.
 */
const oldestMs = 5_000

type Scene = {
  readonly name: string
  readonly manners: (random: () => number) => readonly Manner[]
  readonly users: number
  readonly callsPerSecond: number
  readonly speed: number
}

let slowMs = 4_900

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
    speed: 10,
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
  },
]

const report = (name: string, kills: readonly Kill[]) => {
  const sum = (of: keyof Kill) => kills.reduce((total, kill) => total + kill[of], 0)
  const most = (of: keyof Kill) => Math.max(...kills.map((kill) => kill[of]))
  const within = kills.filter(({ duplicates, inFlight, lately }) => duplicates <= inFlight + lately)
  process.stdout.write(
    `${name}, seed ${seed}: ${kills.length} kills, ${sum('duplicates')} duplicates, at most ` +
      `${most('duplicates')} of one; ${sum('inFlight')} in flight + ${sum('lately')} sent within ` +
      `${positionEveryMs} ms; ${within.length} kills within that; answered at most ` +
      `${Math.round(most('oldestMs'))} ms before\n`,
  )
}

const databases = await Promise.all(scenes.map(() => cloneDatabase()))

test.each(scenes.map((scene, at) => ({ ...scene, database: databases[at] as Database })))(
  '$name: kills lose nothing, and repeat no more than was under way',
  async ({ name, manners, ...scene }) => {
    slowMs = 4_900
    const random = seeded(seed)
    const line = await openLine({ manners: manners(random), ...scene })
    onTestFinished(() => line.close())
    const killedAt: number[] = []
    for (let run = 0; run < runs; run += 1) {
      // Each point in turn, then at any time.
      const at = failpoints[run % (failpoints.length + 1)]
      const times = 1 + Math.floor(random() * (at?.includes('position') ? 6 : 150))
      const life = await line.start(at ? { at, times } : null)
      const patience = sleep(1_500 + Math.floor(random() * 2_000), undefined, { ref: false })
      await Promise.race([life.done, patience])
      await life.kill9()
      killedAt.push(performance.now())
      await line.balanced()
      expect(line.seen.outOfOrder, `run ${run}, seed ${seed}`).toEqual([])
    }
    await line.endLoad()
    slowMs = 0
    const life = await line.start()
    await line.settled()
    await life.stop()
    const kills = line.seen.killsAt(killedAt, positionEveryMs)
    report(name, kills)
    expect(line.seen.outOfOrder, `seed ${seed}`).toEqual([])
    expect(line.seen.repeatsSince(killedAt.at(-1) as number)).toBe(0)
    expect(Math.max(...kills.map((kill) => kill.oldestMs)), `seed ${seed}`).toBeLessThan(oldestMs)
    // The kills must have hit work under way, or nothing was proved.
    expect(kills.some(({ duplicates }) => duplicates > 0)).toBe(true)
  },
)
