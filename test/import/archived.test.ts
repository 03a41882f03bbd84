// An import that is gone on with so late that the log has let go of what it had appended: the archive tells.
import { afterAll, expect, test } from 'vitest'
import { Fault } from '../../src/fault.ts'
import type { Appender } from '../../src/log/log.ts'
import { aRig, codecs, readAll } from '../archive/rig.ts'
import { cloneDatabase } from '../support/database.ts'
import { aTrack, importRig, ndjson } from './rig.ts'

const { pool } = await cloneDatabase()
const rig = await aRig(pool)

afterAll(() => rig.stop())

const topic = 'calls.import'

/** The log's ends are heard of, but not that it took the first so many entries. */
const dying = (first: number): Appender => {
  let isDead = false
  return {
    ...rig.appender,
    append: async (to, entries) => {
      if (isDead) return rig.appender.append(to, entries)
      isDead = true
      await rig.appender.append(to, entries.slice(0, first))
      throw new Fault('log_unavailable', 'broken by the test', { retriable: true })
    },
  }
}

test('what was appended of a chunk is found in the archive, and only the rest is appended', async () => {
  const history = rig.history()
  const { imports, another, make } = importRig(pool, { appender: dying(60), history })
  const found = await make()
  const bytes = ndjson(...Array.from({ length: 100 }, (_, n) => aTrack(n)))
  const chunk = { place: 0, line: 1, bytes, skipped: 0, isLast: true }
  await expect(imports.take(found, chunk)).rejects.toThrow('broken by the test')
  // A segment for each call: none is left open.
  rig.start({ limits: { segmentBytesMax: 1, blockBytesMax: 1 } })
  await rig.archived(topic)
  const appended = (await rig.source.bounds(topic)).map(({ end }) => end)
  for (const [partition, end] of appended.entries()) rig.log.truncate(topic, partition, end)
  expect(await rig.source.bounds(topic)).toEqual(
    appended.map((end) => expect.objectContaining({ start: end, end })),
  )
  expect(await another().take(found, chunk)).toMatchObject({ taken: { accepted: 100 } })
  const users: (string | null)[] = []
  for (const [partition, { end: until }] of (await history.bounds(topic)).entries())
    for (const { value } of await readAll(history, { topic, partition, from: 0n, until }))
      users.push(...(await codecs.call.decode([value])).map(({ userId }) => userId))
  expect(users.toSorted()).toEqual(Array.from({ length: 100 }, (_, n) => `u${n}`).toSorted())
})
