// Erased users go from segments: written anew, swapped in, and the old file removed, whatever dies in between.
import { afterEach, expect, test } from 'vitest'
import type { Erasures } from '../../src/archive/erasures.ts'
import { uncompressed } from '../../src/archive/frames.ts'
import { readPath } from '../../src/archive/name.ts'
import { cloneDatabase } from '../support/database.ts'
import { mortal } from './mortal.ts'
import { aCall, aRig, gathered, plain, type Rig, readAll, start, until } from './rig.ts'
import { isArchived, segmentsOf } from './whole.ts'

const { pool } = await cloneDatabase()
let rig: Rig

afterEach(() => rig.stop())

const limits = { segmentMsMax: 60_000, segmentBytesMax: 1_200, blockBytesMax: 700 }

/** Erasure n is of the nth user named, for what was sent before `at`. */
const erasing = (...erased: readonly { userId: string; at: number }[]): Erasures => ({
  newest: async () => BigInt(erased.length),
  load: async (_, after) => ({
    upTo: BigInt(erased.length),
    isErased: ({ userId, sentAt }) =>
      erased.some(
        (each, n) => BigInt(n) >= after && each.userId === userId && sentAt.getTime() < each.at,
      ),
  }),
})

const filled = async () => {
  rig = await aRig(pool)
  for (let at = 0; at < 40; at++)
    await rig.send(aCall({ userId: `user-${at % 4}`, anonymousId: `a${at % 4}` }))
  await rig.send(aCall({ userId: 'user-1', receivedAt: start + 1_000 }))
}

const allArchived = () =>
  until('all is archived', async () => {
    rig.advance(60_000)
    return isArchived(rig)
  })

/** Every byte that the store holds, uncompressed. */
const grep = async (text: string): Promise<readonly string[]> => {
  const found: string[] = []
  for (const path of await rig.files()) {
    const bytes = (await rig.store.get(path)) ?? Buffer.alloc(0)
    const pieces = await gathered(uncompressed(readPath(path)?.compression ?? 'zstd', bytes))
    if (Buffer.concat(pieces).includes(text)) found.push(path)
  }
  return found
}

const history = async (partition: number) => {
  const { end = 0n } = (await rig.source.bounds('calls'))[partition] ?? {}
  rig.log.truncate('calls', partition, end)
  return readAll(rig.history(), { topic: 'calls', partition, from: 0n, until: end })
}

const heldWithout = async (gone: (text: string) => boolean) => {
  const held = []
  for (const partition of [0, 1]) {
    const { end = 0n } = (await rig.source.bounds('calls'))[partition] ?? {}
    const range = { topic: 'calls', partition, from: 0n, until: end } as const
    const entries = await readAll(rig.source, range)
    held.push(plain(entries.filter(({ value }) => !gone(Buffer.from(value).toString()))))
  }
  return held
}

const ofUser1 = (text: string) => text.includes('user-1')

test('an erased user is in no file of the store within an hour, and all others are as they were', async () => {
  await filled()
  const others = await heldWithout(ofUser1)
  rig.start({ limits })
  await allArchived()
  expect((await grep('user-1')).length).toBeGreaterThan(0)
  await rig.stop()
  rig.start({ limits, erasures: erasing({ userId: 'user-1', at: start + 2_000 }) })
  await until('the user is gone', async () => {
    rig.advance(3_600_000)
    return (await grep('user-1')).length === 0
  })
  expect((await segmentsOf(rig)).some(({ generation }) => generation > 0)).toBe(true)
  expect(await rig.files()).toEqual(await rig.named())
  for (const partition of [0, 1]) expect(plain(await history(partition))).toEqual(others[partition])
})

test('what was sent after the request stays', async () => {
  await filled()
  rig.start({ limits, erasures: erasing({ userId: 'user-1', at: start + 500 }) })
  await allArchived()
  await until('the erasure is carried out', async () => {
    rig.advance(3_600_000)
    const { rows } = await pool.query('select from archive_segment where erased_to < 1')
    return rows.length === 0
  })
  const all = [...(await history(0)), ...(await history(1))]
  expect(all.filter(({ value }) => ofUser1(Buffer.from(value).toString()))).toHaveLength(1)
})

test('a segment that holds nobody erased is not written anew, and none is read twice for one erasure', async () => {
  await filled()
  let reads = 0
  const store: Rig['store'] = {
    ...rig.store,
    get: (path) => {
      reads += 1
      return rig.store.get(path)
    },
  }
  let newest = 1n
  const nobody = { userId: 'nobody', at: start + 2_000 }
  const erasures: Erasures = {
    newest: async () => newest,
    load: (sql, after) =>
      erasing(...Array.from({ length: Number(newest) }, () => nobody)).load(sql, after),
  }
  rig.start({ limits, store, erasures })
  await allArchived()
  const files = await rig.files()
  const looked = (upTo: bigint) =>
    until('every segment was looked at', async () => {
      rig.advance(3_600_000)
      const { rows } = await pool.query('select from archive_segment where erased_to < $1', [upTo])
      return rows.length === 0
    })
  await looked(1n)
  newest = 2n
  await looked(2n)
  expect(reads).toBe(files.length * 2)
  expect(await rig.files()).toEqual(files)
})

test('killed at any step of it, the erasure is carried out by the next', async () => {
  for (const [at, when] of [
    [15, 'after'],
    [21, 'before'],
    [27, 'after'],
    [33, 'before'],
  ] as const) {
    await filled()
    const others = await heldWithout(ofUser1)
    rig.start({ limits })
    await allArchived()
    await rig.stop()
    const erasures = erasing({ userId: 'user-1', at: start + 2_000 })
    const source = rig.log.source()
    const dying = mortal(rig, { at, when })
    const doomed = rig.start({ limits, erasures, source, pool: dying.pool, store: dying.store })
    const gone = until('gone or dead', async () => (await grep('user-1')).length === 0)
    await Promise.race([dying.dead, gone.catch(() => undefined)])
    source.vanish()
    await doomed.stop().catch(() => undefined)
    rig.start({ limits, erasures })
    await until('the user is gone', async () => {
      rig.advance(3_600_000)
      const isClean = JSON.stringify(await rig.files()) === JSON.stringify(await rig.named())
      return isClean && (await grep('user-1')).length === 0
    })
    for (const partition of [0, 1])
      expect([at, when, plain(await history(partition))]).toEqual([at, when, others[partition]])
    await rig.stop()
  }
})
