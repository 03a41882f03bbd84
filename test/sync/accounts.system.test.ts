// Long histories of users of accounts, with restarts and lost connections: `npm run test:system`.
import { expect, test } from 'vitest'
import { cloneDatabase } from '../support/database.ts'
import { liveThrough } from './account-line.ts'

const { pool } = await cloneDatabase()

const timeout = 900_000

test.each([11, 12, 13, 14, 15, 16])(
  'in the order of the log, seed %i',
  { timeout },
  async (seed) => {
    await expect(liveThrough({ pool, seed, steps: 30, partitions: 1 })).resolves.toBeUndefined()
  },
)

test.each([21, 22, 23])('in any order, by two projectors, seed %i', { timeout }, async (seed) => {
  await expect(liveThrough({ pool, seed, steps: 30, partitions: 3 })).resolves.toBeUndefined()
})
