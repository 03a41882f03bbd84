import pino from 'pino'
import { afterEach, expect, test } from 'vitest'
import { startRebuild } from '../../src/rebuild/rebuild.ts'
import type { Running } from '../../src/running.ts'
import { aRig, audience, performed } from '../project/rig.ts'
import { cloneDatabase } from '../support/database.ts'
import { mortal } from '../sync/mortal.ts'
import { rebuildDeps, request, settled } from './rig.ts'

const { pool, url } = await cloneDatabase()
const running: Running[] = []

afterEach(async () => {
  await Promise.all(running.splice(0).map((each) => each.stop().catch(() => undefined)))
})

test('P9: killed at any await, it is taken over, and what is swapped in is whole', {
  timeout: 900_000,
}, async () => {
  const deaths = [2, 5, 9, 14, 20, 27, 35, 44, 54, 65, 77, 90, 105, 125, 150, 180, 215]
  for (const [round, at] of deaths.entries()) {
    const when = round % 2 === 0 ? 'before' : 'after'
    const rig = await aRig(pool, [audience(1, performed('gte', 2))])
    const projector = rig.start()
    running.push(projector)
    await rig.built()
    await rig.send(
      { userId: 'u1' },
      { anonymousId: 'a1' },
      { type: 'identify', userId: 'u1', anonymousId: 'a1' },
      { userId: 'u2', topic: 'calls.import' },
      { type: 'group', userId: 'u2', groupId: 'g' },
    )
    await rig.caughtUp()
    await rig.sync()
    const id = await request(rig)
    const deps = rebuildDeps(rig, url)
    const world = { pool, source: rig.log.source(), appender: rig.log.appender() }
    const dying = mortal(world, { at, when })
    const died = Promise.withResolvers<void>()
    const doomed = startRebuild({
      ...deps,
      pool: dying.pool,
      history: dying.source,
      openPool: (settings, most) => dying.also(deps.openPool(settings, most)),
      logger: pino({ level: 'warn' }, { write: () => died.resolve() }),
    })
    await Promise.race([died.promise, settled(pool, id)])
    running.push(startRebuild(deps))
    const found = await settled(pool, id)
    expect([at, when, found.state, found.differing]).toEqual([at, when, 'swapped', 0])
    expect([at, when, await rig.members(1)]).toEqual([at, when, ['u1']])
    const { rows } = await pool.query('select 1 from membership where cur is distinct from synced')
    expect([at, when, rows]).toEqual([at, when, []])
    await Promise.all(running.splice(0).map((each) => each.stop()))
    await doomed.stop().catch(() => undefined)
  }
})
