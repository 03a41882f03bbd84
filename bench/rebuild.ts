// rebuild against reading the same log bare and upserting a row for each call, as wide as a user's state.
import type { Child } from './deliver-processes.ts'
import { type Run, runPairs, type Span } from './pairs.ts'
import { audiencesOf, one } from './project-audiences.ts'
import { loadPlace, withPlace } from './project-place.ts'
import type { Order, Spent } from './rebuild-contender.ts'

const budget = 0.4
/** Calls for each second a run should last. */
const eventsPerSecond = 20_000
const eventsMin = 20_000
/** A user has so many calls, none before every other has as many. */
const callsOfUser = 4
/** Whose width is taken. */
const sampleUsers = 2_000

export const run = (span: Span): Promise<void> =>
  withPlace(async (place) => {
    // As wide as the rows that the project bench upserts: what users have who did all there is to do.
    const now = Date.now()
    const state = await loadPlace(place.pool, { wanted: one, users: sampleUsers, now })
    const width = Math.round(state.mean)
    // A process each: memory that was taken is rarely given back.
    const start = () => place.start('rebuild-contender.ts')
    const [maker, bare, product] = [await start(), await start(), await start()]
    const events = Math.max(eventsMin, Math.ceil(eventsPerSecond * span.seconds))
    const users = Math.ceil(events / callsOfUser)
    await maker.ask<Spent>({ type: 'fill', events, users, now })
    console.log(
      `${events.toLocaleString('en-US')} calls of ${users.toLocaleString('en-US')} users, ${audiencesOf(one).length} audiences and traits, rows of ${width} bytes`,
    )
    const runOf = (child: Child, order: Order): Run => {
      return async () => {
        await place.pool.query('checkpoint')
        const postgres = place.postgresCpuUs()
        const spent = await child.ask<Spent>(order)
        const notes = {
          'CPU µs/call': spent.cpuUs / spent.events,
          'Postgres CPU µs/call': (place.postgresCpuUs() - postgres) / spent.events,
          'RSS MB': spent.rssBytes / 1e6,
        }
        return { rate: spent.events / spent.seconds, notes }
      }
    }
    await runPairs({
      ...{ name: 'rebuild', budget, unit: 'calls/s', ...span },
      bare: runOf(bare, { type: 'bare', users, width }),
      product: runOf(product, { type: 'product' }),
    })
  })
