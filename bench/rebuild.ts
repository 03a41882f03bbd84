// rebuild against reading the same log bare and upserting a row for each call, as wide as a user's state.
import { type Run, runPairs, type Span } from './pairs.ts'
import { audiencesOf, one } from './project-audiences.ts'
import { buildAudiences, withPlace } from './project-place.ts'
import type { Order, Spent } from './rebuild-contender.ts'

const budget = 0.4
/** Calls for each second a run should last. */
const eventsPerSecond = 10_000
const eventsMin = 40_000
/** A user has so many calls, none before every other has as many. */
const callsOfUser = 4

export const run = (span: Span): Promise<void> =>
  withPlace(async (place) => {
    await buildAudiences(place.pool, audiencesOf(one))
    const child = await place.start('rebuild-contender.ts')
    const ask = (order: Order) => child.ask<Spent>(order)
    const events = Math.max(eventsMin, Math.ceil(eventsPerSecond * span.seconds))
    const users = Math.ceil(events / callsOfUser)
    await ask({ type: 'fill', events, users, now: Date.now() })
    const width = Math.round((await ask({ type: 'product' })).width)
    console.log(
      `${events.toLocaleString('en-US')} calls of ${users.toLocaleString('en-US')} users, ${audiencesOf(one).length} audiences and traits, packed state ${width} bytes a user`,
    )
    const runOf = (order: Order): Run => {
      return async () => {
        await place.pool.query('checkpoint')
        const postgres = place.postgresCpuUs()
        const spent = await ask(order)
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
      bare: runOf({ type: 'bare', users, width }),
      product: runOf({ type: 'product' }),
      warmUp: false,
    })
  })
