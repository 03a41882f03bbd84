// What an audience that is made later counts of a user who was erased and came back.
import { afterEach, expect, test } from 'vitest'
import { audience, performed } from '../project/rig.ts'
import { cloneDatabase } from '../support/database.ts'
import { destinations, type Erasing, openErasing, sources } from './rig.ts'

const { pool } = await cloneDatabase()
const open: Erasing[] = []

afterEach(async () => {
  for (const each of open.splice(0)) await each.stop()
})

/** Whose orders are keyed to another partition than their calls are. */
const user = { kind: 'user', value: 'u3' } as const
const [once, twice] = [audience(1, performed('gte', 1)), audience(2, performed('gte', 2))]

test.each([
  ['in hand', 'waiting'],
  ['over', 'done'],
])(
  'nothing from before the order, however late it was received, the request %s',
  async (_, step) => {
    const rig = await openErasing(pool, [once])
    open.push(rig)
    rig.project()
    await rig.built()
    await rig.send({ userId: 'u3' })
    const id = await rig.ask({ ids: [user] })
    // Between the request and the order, as of a process that has not heard of it yet.
    rig.advance(1_000)
    await rig.send(
      { userId: 'u3' },
      { userId: 'u3', topic: 'calls.import' },
      { userId: 'u2' },
      { userId: 'u2' },
    )
    await rig.caughtUp()
    rig.relay()
    rig.erase()
    await rig.reaches(id, 'waiting')
    rig.advance(10_000)
    if (step === 'done') await rig.reaches(id, 'done')
    await rig.send({ userId: 'u3' })
    await rig.caughtUp()
    expect(await rig.members(1)).toEqual(['u2', 'u3'])
    rig.live.replace({ sources, destinations, audiences: [once, twice] })
    await rig.built()
    expect(await rig.members(2)).toEqual(['u2'])
  },
)
