// project against a bare bulk upsert of rows as wide as the mean row the projector writes.
import assert from 'node:assert/strict'
import { projectLimits } from '../src/project/project.ts'
import type { Child } from './deliver-processes.ts'
import { demand } from './deliver-stand.ts'
import { type Run, runPairs, type Span } from './pairs.ts'
import { audiencesOf, one } from './project-audiences.ts'
import { loadBare } from './project-bare.ts'
import { ask, loadPlace, type Place, projecting, settle, withPlace } from './project-place.ts'

const budget = 0.4
const stateBytesMax = 2_048
const hotUsers = 1_000

export const run = (span: Span): Promise<void> =>
  withPlace(async (place) => {
    // The long form loads a million users; a form that has to fit into a minute, as many as load in time.
    const users = span.seconds >= 5 ? 1_000_000 : 100_000
    const now = Date.now()
    const state = await loadPlace(place.pool, { wanted: one, users, now })
    const width = Math.round(state.mean)
    await loadBare(place.pool, { users, width })
    await settle(place.pool, ['ustate', 'membership', 'bare'])
    console.log(
      `${users.toLocaleString('en-US')} users, ${audiencesOf(one).length} audiences and traits, packed state ${width} bytes a user, ${state.most} at most`,
    )
    demand(state.mean < stateBytesMax, `a user takes ${width} bytes`)
    const product = await place.contender({ kind: 'product', wanted: one })
    const project = projecting(place, product)
    let rate = firstRate
    const productRun = (among: number): Run => {
      return async (seconds) => {
        const wanted = Math.max(eventsMin, Math.ceil(rate * seconds))
        const { events, ...spent } = await project({ users: among, events: wanted, now, lead })
        rate = events / spent.seconds
        if (among === users)
          assert.ok(spent.writes >= 0.999, `${spent.writes} rows are written for each event`)
        const notes = {
          'CPU µs/event': spent.nodeUs / events,
          'Postgres CPU µs/event': spent.postgresUs / events,
          'rows/event': spent.writes,
          'RSS MB': spent.rssBytes / 1e6,
        }
        return { rate, notes }
      }
    }
    const bare = bareRun(place, await place.contender({ kind: 'bare', wanted: one }), {
      users,
      width,
    })
    // Before the pairs, whose line is the last one.
    const hot = productRun(hotUsers)
    await hot(Math.min(2, span.seconds))
    const { rate: hotRate, notes } = await hot(span.seconds)
    const told = Object.entries(notes ?? {}).map(
      ([name, value]) => `${name} ${Number(value).toPrecision(4)}`,
    )
    console.log(
      `hot users, ${hotUsers} take all: ${Math.round(hotRate).toLocaleString('en-US')} events/s, ${told.join(', ')}`,
    )
    rate = firstRate
    await runPairs({
      ...{ name: 'project', budget, unit: 'events/s', bare },
      product: productRun(users),
      ...span,
    })
  })

/** Events made for the first run, for each second it should last. */
const firstRate = 10_000
/** Two transactions: fewer would measure what a transaction costs. */
const eventsMin = 2 * projectLimits.batchCallsMax
/**
 * As many as may be on their way at once: written, decided, prepared, queued and fetched. What was done of the
 * counted ones before the clock starts is done of those behind them when it stops.
 */
const lead = 5 * projectLimits.batchCallsMax

type Bare = { readonly users: number; readonly width: number }

const bareRun = (place: Place, child: Child, { users, width }: Bare): Run => {
  return async (seconds) => {
    const postgres = place.postgresCpuUs()
    const before = await ask(child, { type: 'stop' })
    const after = await ask(child, { type: 'bare', seconds, users, width })
    const { rows = 0, seconds: took = 0 } = after
    const notes = {
      'CPU µs/row': (after.cpuUs - before.cpuUs) / rows,
      'Postgres CPU µs/row': (place.postgresCpuUs() - postgres) / rows,
    }
    return { rate: rows / took, notes }
  }
}
