// What an event costs, process and Postgres together, as users and audiences become more.
import { demand } from './deliver-stand.ts'
import type { Span } from './pairs.ts'
import { one, type Wanted } from './project-audiences.ts'
import { loadPlace, projecting, reloadUsers, withPlace } from './project-place.ts'

const usersBudget = 1.5
const audiencesBudget = 3
const fewUsers = 10_000
/** So small that no user is found in it again, among few as among many: a batch has 5,000 of them. */
const cacheBytesMax = 1_000_000
const runsLong = 8
const runsShort = 3
/** One of each of the few: whoever has had one already changes fewer memberships with the next. */
const events = fewUsers

export const run = async (span: Span): Promise<void> => {
  const isShort = span.total !== undefined
  const runs = isShort ? runsShort : runsLong
  const manyUsers = isShort ? 200_000 : 1_000_000
  const measured = { runs }
  const few = await costOf({ users: fewUsers, wanted: one, ...measured })
  const many = await costOf({ users: manyUsers, wanted: one, ...measured })
  const users = many / few
  // An audience of something else must cost what goes on nothing; ten that look at the same event, their folds.
  const spread = { copies: 10, apart: true }
  const onOne = await costOf({ users: fewUsers, wanted: { ...spread, apart: false }, ...measured })
  const onOwn = await costOf({ users: fewUsers, wanted: spread, ...measured })
  const audiences = onOwn / few
  console.log(
    `200 audiences that look at the same five events, ten times as many to each: ratio ${(onOne / few).toFixed(2)}, a tenth of it an audience`,
  )
  console.log(
    `200 audiences of distinct leaves over 20: ratio ${audiences.toFixed(3)} budget at most ${audiencesBudget}`,
  )
  demand(audiences <= audiencesBudget, 'an event costs too much when there are more audiences')
  demand(users <= usersBudget, 'an event costs too much when there are more users')
  console.log(`growth ratio ${users.toFixed(3)} budget at most ${usersBudget}`)
}

type Scene = {
  readonly users: number
  readonly wanted: Wanted
  readonly runs: number
}

/** Microseconds of CPU an event: of as many runs the cheapest, since a busy machine only ever adds. */
const costOf = ({ users, wanted, runs }: Scene): Promise<number> =>
  withPlace(async (place) => {
    const now = Date.now()
    const state = await loadPlace(place.pool, { wanted, users, now })
    const child = await place.contender({ kind: 'product', wanted, cacheBytesMax })
    const project = projecting(place, child)
    const work = { users, events, now, lead: 0 }
    await project(work)
    const costs: { node: number; postgres: number }[] = []
    for (let left = runs; left > 0; left -= 1) {
      // Many have users left who had none.
      if (users === events) await reloadUsers(place.pool, { wanted, users, now })
      const spent = await project(work)
      costs.push({ node: spent.nodeUs / spent.events, postgres: spent.postgresUs / spent.events })
    }
    const [cheapest] = costs.sort((a, b) => a.node + a.postgres - b.node - b.postgres)
    const { node = 0, postgres = 0 } = cheapest ?? {}
    const count = wanted.copies * 20
    const where = wanted.apart ? ' with events of their own' : ''
    console.log(
      `${users.toLocaleString('en-US')} users, ${count} audiences${where}, ${Math.round(state.mean)} bytes a user: CPU ${(node + postgres).toFixed(1)} µs/event, process ${node.toFixed(1)}, Postgres ${postgres.toFixed(1)}`,
    )
    return node + postgres
  })
