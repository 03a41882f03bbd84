// The archive killed between every two steps in Postgres and the store: neither gap nor overlap, and no file left over.
import { test } from 'vitest'
import { cloneDatabase } from '../support/database.ts'
import { mortal } from './mortal.ts'
import { aCall, aRig, until } from './rig.ts'
import { expectSame, expectWhole, isArchived } from './whole.ts'

const { pool } = await cloneDatabase()

const calls = (count: number) =>
  Array.from({ length: count }, (_, at) => aCall({ userId: `u${at % 7}` }))

const tiny = { blockBytesMax: 300, segmentBytesMax: 500, segmentMsMax: 60_000 }

test('a process killed at any step leaves neither gap nor overlap, and no file that nobody names', async () => {
  for (let at = 1; at <= 50; at += 1)
    for (const when of ['before', 'after'] as const) {
      const rig = await aRig(pool)
      await rig.send(...calls(24))
      const source = rig.log.source()
      const dying = mortal(rig, { at, when })
      const limits = { ...tiny, figuresMs: 3_600_000 }
      const doomed = rig.start({ pool: dying.pool, store: dying.store, source, limits })
      const archived = until('archived or dead', async () => {
        rig.advance(60_000)
        return isArchived(rig)
      }).catch(() => undefined)
      await Promise.race([dying.dead, archived])
      source.vanish()
      await doomed.stop().catch(() => undefined)
      rig.start({ limits })
      await until('the next one has archived all', async () => {
        rig.advance(60_000)
        return isArchived(rig)
      })
      await until('what nobody names is swept', async () => {
        rig.advance(3_600_000)
        return JSON.stringify(await rig.files()) === JSON.stringify(await rig.named())
      })
      await expectWhole(rig)
      await expectSame(rig)
      await rig.stop()
    }
}, 600_000)
