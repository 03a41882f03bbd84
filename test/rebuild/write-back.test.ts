import { afterEach, expect, test } from 'vitest'
import { begin } from '../../src/rebuild/begin.ts'
import type { RebuildDeps } from '../../src/rebuild/deps.ts'
import { openFold } from '../../src/rebuild/fold.ts'
import { rebuildLimits } from '../../src/rebuild/limits.ts'
import { openRebuildMeter } from '../../src/rebuild/meter.ts'
import { schemaOf } from '../../src/rebuild/schema.ts'
import { findOpen, readPositions } from '../../src/rebuild/store.ts'
import type { Running } from '../../src/running.ts'
import { aRig, type Rig } from '../project/rig.ts'
import { cloneDatabase } from '../support/database.ts'
import { rebuildDeps, rebuilt, request } from './rig.ts'
import { audiences, lives } from './scene.ts'

const { pool, url } = await cloneDatabase()
const running: Running[] = []

afterEach(async () => {
  await Promise.all(running.splice(0).map((each) => each.stop()))
})

const hour = 3_600_000

const lived = async (seed: number): Promise<Rig> => {
  const rig = await aRig(pool, audiences)
  running.push(rig.start())
  await rig.built()
  for (let round = 0; round < 4; round++) {
    await rig.send(...lives(rig, seed + round, 60))
    rig.advance(3 * hour)
  }
  await rig.caughtUp()
  return rig
}

const limitsOf = (writeBackBytesMax: number, batchCallsMax = 7) => ({
  ...rebuildLimits,
  ...{ pollMs: 5, swapRetryMs: 5, runCallsMax: Math.min(5, batchCallsMax), writeBackBytesMax },
  project: { ...rebuildLimits.project, batchCallsMax },
})

/** By the fold itself, which nobody starts again: how many users there are, and how often they were written. */
const folded = async (rig: Rig, limits: RebuildDeps['limits']) => {
  const id = await request(rig, { verifyOnly: true })
  const open = await findOpen(pool)
  if (open === null) throw new Error('no rebuild is open')
  const deps: RebuildDeps = {
    ...rebuildDeps(rig, url),
    meter: openRebuildMeter(),
    limits,
  }
  await begin(deps, open)
  const own = deps.openPool({ search_path: `${schemaOf(id)},public` }, 4)
  try {
    const fold = await openFold(deps, own)
    const targets = await readPositions(pool)
    const { signal } = new AbortController()
    await fold.foldUntil(targets, { signal, pace: async () => undefined })
    expect(fold.positions()).toEqual(targets)
    const { rows } = await own.query<{ users: number; writes: number }>(
      `select count(*)::int as users, sum(ver)::int as writes from ustate where merged_into is null`,
    )
    return rows[0] as (typeof rows)[number]
  } finally {
    await own.close()
    await pool.query(`drop schema ${schemaOf(id)} cascade`)
    await pool.query(
      `update rebuild set state = 'cancelled', ended_at = 'epoch' where ended_at is null`,
    )
  }
}

test('a user is written once for all the batches that fit into memory, and once for each batch where none fits', async () => {
  const rig = await lived(700)
  const wide = await folded(rig, limitsOf(64 * 1_048_576))
  expect(wide.users).toBeGreaterThan(20)
  expect(wide.writes).toBe(wide.users)
  const narrow = await folded(rig, limitsOf(1))
  expect(narrow.users).toBe(wide.users)
  expect(narrow.writes).toBeGreaterThan(2 * wide.writes)
})

test.each([1, 20_000, 64 * 1_048_576])(
  'with %d bytes in memory the state is the live one',
  async (bytes) => {
    const rig = await lived(800)
    const found = await rebuilt(rig, url, { verifyOnly: true, over: { limits: limitsOf(bytes) } })
    expect(found.differences).toEqual([])
    expect([found.state, found.differing]).toEqual(['verified', 0])
  },
)

test('an id leads to whom its user has become by two merges that were written apart', async () => {
  const rig = await aRig(pool, audiences)
  running.push(rig.start())
  await rig.built()
  for (const sent of [
    { userId: 'ka' },
    { userId: 'kb' },
    { userId: 'kc' },
    { type: 'alias', userId: 'kb', previousId: 'ka' },
    { type: 'alias', userId: 'kc', previousId: 'kb' },
    { userId: 'ka' },
  ] as const) {
    await rig.send(sent)
    // Partitions have no order but that of receipts, and that in which merges were decided.
    await rig.caughtUp()
    rig.advance(hour)
  }
  expect(await folded(rig, limitsOf(1, 1))).toMatchObject({ users: 1 })
})
