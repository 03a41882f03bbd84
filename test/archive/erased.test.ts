// The erasures as the eraser records them, asked by the archive.
import { expect, test } from 'vitest'
import { erasures } from '../../src/archive/erased.ts'
import { isErased } from '../../src/archive/erasures.ts'
import { hashOf, loadSuppressionKey } from '../../src/erase/key.ts'
import { saveSuppressions } from '../../src/erase/suppression-store.ts'
import { cloneDatabase } from '../support/database.ts'

const { pool } = await cloneDatabase()
const key = await loadSuppressionKey(pool)
const requested = Date.UTC(2026, 0, 10)

const record = (kind: 'user' | 'anonymous', value: string, deletedBefore: Date | null) =>
  pool.transaction((tx) =>
    saveSuppressions(tx, [
      {
        hash: hashOf(key, { workspaceId: 1, kind, value }),
        workspaceId: 1,
        suppressed: deletedBefore === null,
        deletedBefore,
      },
    ]),
  )

const head = (over: object) => ({
  offset: 0n,
  key: '',
  receivedAt: requested - 1_000,
  timestamp: requested - 1_000,
  workspaceId: 1,
  userId: null,
  ...over,
})

test('an erasure takes what was sent before it under any id of the call, and nothing else', async () => {
  expect(await erasures.newest(pool)).toBe(0n)
  await record('user', 'kept', null)
  expect(await erasures.newest(pool)).toBe(0n)
  await record('user', 'ada', new Date(requested))
  await record('anonymous', 'a1', new Date(requested))
  const newest = await erasures.newest(pool)
  expect(newest).toBeGreaterThan(0n)
  const all = await erasures.load(pool, 0n)
  expect(all.upTo).toBe(newest)
  for (const ids of [
    { userId: 'ada' },
    { userId: 'bob', anonymousId: 'a1' },
    { userId: 'bob', previousId: 'ada' },
    { userId: 'ada', type: 'delete' },
    // An order is of the instant of its request.
    { userId: 'ada', type: 'delete', receivedAt: requested, timestamp: requested },
  ])
    expect([ids, isErased(all, head(ids))]).toEqual([ids, true])
  const later = { receivedAt: requested + 1, timestamp: requested + 1 }
  for (const ids of [
    { userId: 'kept' },
    { userId: 'bob', anonymousId: 'a2' },
    { userId: 'ada', workspaceId: 2 },
    { userId: 'a1' },
    { userId: 'ada', ...later },
    { userId: 'ada', ...later, type: 'delete' },
    { userId: 'ada', receivedAt: requested, timestamp: requested },
  ])
    expect([ids, isErased(all, head(ids))]).toEqual([ids, false])
  const since = await erasures.load(pool, newest)
  expect(since.upTo).toBe(newest)
  expect(isErased(since, head({ userId: 'ada' }))).toBe(false)
})
