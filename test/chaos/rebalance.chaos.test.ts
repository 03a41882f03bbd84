// Processes join, leave and are killed while messages flow: partitions change hands, and nothing is lost.
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, onTestFinished, test } from 'vitest'
import { deliverLimits } from '../../src/deliver/limits.ts'
import { cloneDatabase } from '../support/database.ts'
import { seed } from '../support/seed.ts'
import { seeded } from '../support/seeded.ts'
import { runsOr } from './form.ts'
import { openLine } from './line.ts'
import type { Blow } from './seen.ts'

/** In the long form, `npm run chaos -- deliver`, fewer than there are kills. */
const runs = Math.min(50, runsOr(8))
const positionEveryMs = 250
/** What was answered longer before a change than this must not come again, on a machine that does much else. */
const oldestMs = 5_000
/** By a clock that runs ten times as fast the order of whoever waits would soon be given up. */
const orderly = { headMaxMs: 10 * deliverLimits.headMaxMs }
const database = await cloneDatabase()

test(`processes that come, go and die under load lose nothing (${runs} changes, seed ${seed})`, async () => {
  const random = seeded(seed)
  const line = await openLine({
    database,
    manners: [
      () => ({ status: 200, afterMs: 0 }),
      () => ({ status: 200, afterMs: 50 }),
      () => ({ status: random() < 0.05 ? 503 : 200, afterMs: 0 }),
    ],
    users: 400,
    callsPerSecond: 60,
    speed: 10,
    limits: orderly,
  })
  onTestFinished(() => line.close())
  const changes: Blow[] = []
  const lives = [await line.start()]
  for (let change = 0; change < runs; change += 1) {
    await sleep(1_000 + Math.floor(random() * 1_000))
    const leaver = lives[Math.floor(random() * lives.length)]
    const isLeaving = lives.length > 2 || (lives.length > 1 && random() < 0.5)
    if (isLeaving && leaver) {
      lives.splice(lives.indexOf(leaver), 1)
      await (random() < 0.5 ? leaver.kill9() : leaver.stop())
    } else lives.push(await line.start())
    const lateMs = Math.max(...lives.map(({ seen }) => seen.lateMs), leaver?.seen.lateMs ?? 0)
    changes.push({ at: performance.now(), settledAt: performance.now() - oldestMs - lateMs })
    await line.committed.look()
  }
  await line.endLoad()
  await line.settled()
  for (const life of lives) await life.stop()
  await line.committed.look()
  const damages = line.seen.damages(changes, positionEveryMs)
  const duplicates = damages.reduce((sum, change) => sum + change.duplicates, 0)
  process.stdout.write(
    `${line.appended() * 3} pairs over ${runs} changes, seed ${seed}: ${duplicates} duplicates, ` +
      `${line.seen.outOfOrder.length} out of order\n`,
  )
  expect(line.seen.outOfOrder).toEqual([])
  expect(line.committed.found.unsettled).toEqual([])
  // Partitions move for a while after a change: what one owner had answered, the next may ask again.
  for (const { duplicates: again, inFlight, unwritten } of damages)
    expect(again).toBeLessThanOrEqual(inFlight + unwritten)
})
