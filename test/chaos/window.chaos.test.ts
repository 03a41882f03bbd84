// Four hours of failures under virtual time, with the jitter of production: every step, and the last try in its place.
import { expect, test } from 'vitest'
import { retryAfterMaxMs, retryStepsMs } from '../../src/domain/retry.ts'
import { useRig } from '../deliver/rig.ts'
import { aDestination, aLive, to } from '../support/configuration.ts'
import { seed } from '../support/seed.ts'
import { seeded } from '../support/seeded.ts'
import { until } from '../support/until.ts'

const { receiver, open, rowsOf, drained, database } = await useRig()

const hour = 3_600_000
const windowMs = 4 * hour

/** The next instant at which something is due; `null`: nothing is parked. Waits while something is under way. */
const nextDue = async (rig: ReturnType<typeof open>): Promise<number | null> => {
  let due: number | null = null
  await until(async () => {
    const { rows } = await database.pool.query<{ due: Date | null; busy: boolean; all: number }>(
      `select min(next_at) as due, bool_or(lease_owner is not null or next_at <= $1) as busy,
              count(*)::int as all from parked`,
      [new Date(rig.now())],
    )
    const [found] = rows
    if (found?.busy) return false
    due = found?.due?.getTime() ?? null
    return true
  }, `nothing is under way at ${rig.now()}`)
  return due
}

test.each([
  { name: 'that fails', retryAfter: null },
  { name: 'that asks for 40 minutes each time', retryAfter: 2_400 },
  { name: 'that asks for a day', retryAfter: 86_400 },
])(
  `a receiver $name is tried at its steps for four hours, last within 10 s of their end (seed ${seed})`,
  async ({ retryAfter }) => {
    let rig: ReturnType<typeof open> | null = null
    const random = seeded(seed)
    const hooks = []
    // Each message has a destination of its own, so that no breaker stands between it and its steps.
    for (let at = 0; at < 5; at += 1) {
      const hook = await receiver('secret', () => rig?.now() ?? 0)
      const headers = retryAfter === null ? {} : { 'retry-after': String(retryAfter) }
      hook.reply(() => ({ status: 503, headers }))
      hooks.push(hook)
    }
    const destinations = hooks.map(({ url }, at) =>
      aDestination({ id: at + 1, name: `D${at}`, webhooks: to(url) }),
    )
    rig = open(aLive({ destinations }), { random })
    rig.start()
    const first = rig.now()
    await rig.append([rig.aCall()])
    await drained(rig)
    for (let due = await nextDue(rig); due !== null; due = await nextDue(rig)) rig.setNow(due)
    rig.setNow(first + 24 * hour)
    await new Promise((resolve) => setTimeout(resolve, 600))
    for (const { requests } of hooks) {
      const tries = requests.map(({ at }) => at - first)
      const last = tries.at(-1) as number
      expect(tries[0]).toBe(0)
      expect(last).toBeGreaterThanOrEqual(windowMs - 10_000)
      expect(last).toBeLessThanOrEqual(windowMs)
      tries.slice(1, -1).forEach((at, index) => {
        const step = retryStepsMs[Math.min(index, retryStepsMs.length - 1)] as number
        const asked = Math.min((retryAfter ?? 0) * 1_000, retryAfterMaxMs)
        const waited = at - (tries[index] as number)
        expect(waited).toBeGreaterThanOrEqual(Math.max(step / 2, asked))
        expect(waited).toBeLessThanOrEqual(Math.max(step * 1.5, asked) + 1)
      })
      expect(new Set(requests.map(({ body }) => body.toString())).size).toBe(1)
    }
    if (retryAfter === null)
      expect(new Set(hooks.map(({ requests }) => requests[1]?.at)).size).toBeGreaterThan(1)
    const dead = await rowsOf('dead')
    expect(dead.map(({ reason }) => reason)).toEqual(hooks.map(() => 'expired'))
    expect(await rowsOf('parked')).toEqual([])
  },
)
