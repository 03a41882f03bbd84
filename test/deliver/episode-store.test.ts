// What several sayings of a URL become: what operators were told, and never what they were not.
import { beforeEach, expect, test } from 'vitest'
import { leaveSayings, saySo, takeOver } from '../../src/deliver/episode-store.ts'
import { cloneDatabase } from '../support/database.ts'

const { pool } = await cloneDatabase()
beforeEach(async () => {
  await pool.query('truncate failing_url')
})

const at = (minute: number) => new Date(Date.UTC(2024, 0, 1, 0, minute))
const url = { destinationId: 1, url: 'http://crm.test/hook' }

type Told = { readonly level: number; readonly told: number | null }

const say = (owner: string, { level, told }: Told, since = 0) =>
  saySo(pool, owner, [{ ...url, level, since: at(since), toldAt: told === null ? null : at(told) }])

const sayings = async () =>
  (
    await pool.query(
      'select owner, level, since, told_at as "toldAt" from failing_url order by owner',
    )
  ).rows

/** One saying, another one, and what they are together. */
const cases: readonly (readonly [string, Told, Told, Told])[] = [
  ['two that were told', { level: 50, told: 1 }, { level: 70, told: 2 }, { level: 70, told: 2 }],
  [
    'told, and higher untold',
    { level: 50, told: 1 },
    { level: 90, told: null },
    { level: 50, told: 1 },
  ],
  [
    'untold, and lower told',
    { level: 90, told: null },
    { level: 50, told: 1 },
    { level: 50, told: 1 },
  ],
  [
    'told, and lower untold',
    { level: 70, told: 1 },
    { level: 50, told: null },
    { level: 70, told: 1 },
  ],
]

const isMerged = ({ level, told }: Told) => ({
  ...{ level, since: at(0), toldAt: told === null ? null : at(told) },
})

for (const [name, one, other, both] of cases) {
  test(`said twice by one process: ${name}`, async () => {
    await say('me', one)
    await say('me', other, 5)
    expect(await sayings()).toEqual([{ owner: 'me', ...isMerged(both) }])
  })

  test(`left to another process: ${name}`, async () => {
    await say('me', one)
    await say('other', other, 5)
    await leaveSayings(pool, 'me', [url])
    expect(await sayings()).toEqual([{ owner: 'other', ...isMerged(both) }])
  })

  test(`taken over of two that are gone: ${name}`, async () => {
    await say('gone', one)
    await say('gone too', other, 5)
    const { level, toldAt } = isMerged(both)
    expect(await takeOver(pool, 'me', at(8))).toEqual([{ ...url, level, toldAt }])
    expect(await sayings()).toEqual([{ owner: 'me', ...isMerged(both) }])
  })

  test(`taken over beside an own one: ${name}`, async () => {
    await say('gone', one)
    await say('me', other, 5)
    const { level, toldAt } = isMerged(both)
    expect(await takeOver(pool, 'me', at(8))).toEqual([{ ...url, level, toldAt }])
    expect(await sayings()).toEqual([{ owner: 'me', ...isMerged(both) }])
  })
}

test('of several that nobody told the highest is taken over', async () => {
  await say('gone', { level: 90, told: null })
  await say('gone too', { level: 50, told: null })
  expect(await takeOver(pool, 'me', at(8))).toEqual([{ ...url, level: 90, toldAt: null }])
})
