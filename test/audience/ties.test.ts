// A user belongs to so many accounts and no more: the first ones stay, the others are left out and counted.
import { beforeEach, expect, test } from 'vitest'
import { countLeftOut, type Tie, tieUsers } from '../../src/audience/ties.ts'
import { accountLimits, accountMarks } from '../../src/domain/account.ts'
import { openMetrics } from '../../src/metrics.ts'
import { until } from '../project/rig.ts'
import { cloneDatabase } from '../support/database.ts'

const { pool } = await cloneDatabase()

beforeEach(async () => {
  await pool.query('truncate account_user, account_delta, account_visit, account_count')
})

const tied = (userKey: number, ...groups: readonly string[]): readonly Tie[] =>
  groups.map((groupId) => ({ userKey, workspaceId: 1, groupId }))

const marks = [1, 2].map((userKey) => ({ userKey, mark: accountMarks.tied }))

const tie = (ties: readonly Tie[], tiesMax?: number) =>
  pool.transaction((tx) => tieUsers(tx, { ties, marks, ...(tiesMax && { tiesMax }) }))

const accountsOf = async (userKey: number) =>
  (
    await pool.query<{ id: string }>(
      'select group_id as id from account_user where user_key = $1 order by 1',
      [userKey],
    )
  ).rows.map(({ id }) => id)

const deltas = async () =>
  (
    await pool.query<{ said: string }>(
      `select group_id || ' ' || mark || ' ' || sum(change) as said
         from account_delta group by group_id, mark order by 1`,
    )
  ).rows.map(({ said }) => said)

test('a user with as many accounts as there may be keeps them, and what is left out is counted', async () => {
  expect(await tie([...tied(1, 'b', 'c'), ...tied(2, 'c')], 3)).toEqual(new Set([1, 2]))
  expect(await tie([...tied(1, 'e', 'a', 'c', 'd', 'd'), ...tied(2, 'd')], 3)).toEqual(
    new Set([1, 2]),
  )
  expect(await accountsOf(1)).toEqual(['a', 'b', 'c'])
  expect(await accountsOf(2)).toEqual(['c', 'd'])
  expect(await tie(tied(1, 'a', 'z'), 3)).toEqual(new Set())
  expect(await accountsOf(1)).toEqual(['a', 'b', 'c'])
  const leftOut = accountMarks.leftOut
  expect(await countLeftOut(pool)).toBe(3)
  expect(await deltas()).toEqual(
    [
      'a 0 1',
      'b 0 1',
      'c 0 2',
      'd 0 1',
      `d ${leftOut} 1`,
      `e ${leftOut} 1`,
      `z ${leftOut} 1`,
    ].sort(),
  )
})

test('a user in ten thousand groups is tied to the first thousand', async () => {
  const groups = Array.from({ length: 10_000 }, (_, at) => `g${at}`)
  for (let from = 0; from < groups.length; from += 2_500)
    await tie(tied(1, ...groups.slice(from, from + 2_500)))
  const accounts = await accountsOf(1)
  expect(accounts).toHaveLength(accountLimits.tiesMax)
  const left = (await deltas()).filter((said) => said.includes(` ${accountMarks.leftOut} `))
  expect(left).toHaveLength(groups.length - accountLimits.tiesMax)
})

test('what is left out is a metric, whether it was added up already or not', async () => {
  const metrics = openMetrics()
  metrics.addFigure({ name: 'left_out', help: 'Of ties', read: () => countLeftOut(pool) })
  const shown = async () => /^left_out (\d+)$/m.exec(await metrics.text())?.[1]
  await tie(tied(1, 'a', 'b', 'c'), 1)
  await until('it is read', async () => (await shown()) === '2')
  await pool.query(
    'insert into account_count (workspace_id, group_id, mark, users) values (1, $1, $2, 5)',
    ['a', accountMarks.leftOut],
  )
  await until('the next is read', async () => (await shown()) === '7')
})

test('a figure that cannot be read is told as it was last, with all others', async () => {
  const metrics = openMetrics()
  let asked = 0
  const read = async () => {
    asked += 1
    if (asked > 1) throw new Error('the database is away')
    return 4
  }
  metrics.addFigure({ name: 'known', help: 'Once', read })
  await until('it was asked again', async () => (await metrics.text()) !== '' && asked > 1)
  expect(await metrics.text()).toMatch(/^known 4$/m)
})
