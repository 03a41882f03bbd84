// A rebuild beside a running projector, on a real database and the log in memory.
import pino from 'pino'
import { findRebuild, type RebuildView, requestRebuild } from '../../src/admin/rebuild-store.ts'
import { openPool } from '../../src/postgres/pool.ts'
import type { Pool } from '../../src/postgres/sql.ts'
import { rebuildLimits } from '../../src/rebuild/limits.ts'
import { startRebuild } from '../../src/rebuild/rebuild.ts'
import type { Running } from '../../src/running.ts'
import { codec, type Rig, until } from '../project/rig.ts'

type Starting = Parameters<typeof startRebuild>[0]

export const rebuildDeps = (rig: Rig, url: string): Starting => ({
  pool: rig.pool,
  openPool: (settings, connectionsMax) =>
    openPool({ url, connectionsMax, name: 'rebuild', settings }),
  history: rig.log.source(),
  codecs: { call: codec },
  clock: rig.clock,
  logger: pino({ level: 'silent' }),
  limits: { ...rebuildLimits, pollMs: 5, swapRetryMs: 5 },
})

type Wish = Partial<Parameters<typeof requestRebuild>[1]>

export const request = async (rig: Rig, wish: Wish = {}): Promise<number> => {
  const id = await requestRebuild(rig.pool, {
    actor: 'test',
    at: rig.clock(),
    verifyOnly: false,
    fromKept: false,
    acceptsDifferences: false,
    ...wish,
  })
  if (id === null) throw new Error('another rebuild is open')
  return id
}

/** Where it came to rest: over, or differing. */
export const settled = async (pool: Pool, id: number): Promise<RebuildView> => {
  let found: RebuildView | null = null
  await until(`rebuild ${id} comes to rest`, async () => {
    found = await findRebuild(pool, id)
    return ['differs', 'swapped', 'verified', 'cancelled', 'failed'].includes(found?.state ?? '')
  })
  return found as unknown as RebuildView
}

/** Asks for one, has it worked on and stops. */
export const rebuilt = async (
  rig: Rig,
  url: string,
  wish: Wish & { readonly over?: Partial<Starting> } = {},
): Promise<RebuildView> => {
  const { over, ...asked } = wish
  const id = await request(rig, asked)
  const running: Running = startRebuild({ ...rebuildDeps(rig, url), ...over })
  try {
    const found = await settled(rig.pool, id)
    if (found.state !== 'differs')
      await until('its schemas are dropped', async () => {
        const { rows } = await rig.pool.query(
          `select 1 from pg_namespace where nspname like 'rebuild%'`,
        )
        return rows.length === 0
      })
    return found
  } finally {
    await running.stop()
  }
}
