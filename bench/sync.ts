// sync against bare INSERT and produce of the same rows; and what it costs when ten times as many do not change.
import { bytesList, numberList, textList } from '../src/audience/lists.ts'
import type { Outbound } from '../src/domain/message.ts'
import { outboundKey } from '../src/domain/message.ts'
import type { Sql } from '../src/postgres/sql.ts'
import { syncLimits } from '../src/sync/limits.ts'
import { demand } from './deliver-stand.ts'
import { type Figure, type Run, runPairs, type Span } from './pairs.ts'
import { type Place, withPlace } from './project-place.ts'
import { audiences, changeMembers, loadMembers, openSync, restoreMembers } from './sync-scene.ts'

const budget = 0.5
const sizeBudget = 1.3
const changedLong = 100_000
const runsOfSize = 3

export const run = (span: Span): Promise<void> =>
  withPlace(async (place) => {
    const changed = span.total === undefined ? changedLong : changedLong / 10
    const stage = await openSync(place.pool)
    try {
      // What a destination is told first is all there is: nothing yet.
      await stage.sync()
      const product = productOf(place, stage.sync)
      const few = changed * 3
      await loadMembers(place.pool, few)
      const small = await cheapest(product, { members: few, changed })
      await loadMembers(place.pool, few * 10)
      const large = await cheapest(product, { members: few * 10, changed })
      const ratio = large / small
      console.log(
        `${told(changed)} changed of ${told(few)}: CPU ${small.toFixed(1)} µs a change; of ${told(few * 10)}: ${large.toFixed(1)}; ratio ${ratio.toFixed(3)} budget at most ${sizeBudget}`,
      )
      demand(ratio <= sizeBudget, 'a sync costs too much among many members')
      await place.pool.query('create table bare_outbox (like outbox including all)')
      await loadMembers(place.pool, few)
      await runPairs({
        ...{ name: 'sync', budget, unit: 'changes/s' },
        bare: bareOf(place, stage, changed),
        product: () => product({ members: few, changed }),
        ...span,
      })
    } finally {
      await stage.stop()
    }
  })

const told = (count: number) => count.toLocaleString('en-US')

type Size = { readonly members: number; readonly changed: number }

const cpu = 'CPU µs/change'

const measured = async (
  place: Place,
  changed: number,
  work: () => Promise<void>,
): Promise<Figure> => {
  const postgres = place.postgresCpuUs()
  const before = process.cpuUsage()
  const began = performance.now()
  await work()
  const seconds = (performance.now() - began) / 1_000
  const { user, system } = process.cpuUsage(before)
  const micros = user + system + place.postgresCpuUs() - postgres
  return { rate: changed / seconds, notes: { [cpu]: micros / changed } }
}

const productOf = (place: Place, sync: () => Promise<number>) => {
  return async (size: Size): Promise<Figure> => {
    await changeMembers(place.pool, size)
    const figure = await measured(place, size.changed, async () => {
      const emitted = await sync()
      if (emitted !== size.changed) throw new Error(`${emitted} emitted of ${size.changed}`)
    })
    await restoreMembers(place.pool, size.members)
    return figure
  }
}

/** Microseconds of CPU a change; a busy machine only ever adds, so the cheapest of some. */
const cheapest = async (product: (size: Size) => Promise<Figure>, size: Size): Promise<number> => {
  await product(size)
  const costs: number[] = []
  for (let left = runsOfSize; left > 0; left -= 1)
    costs.push(Number((await product(size)).notes?.[cpu]))
  return Math.min(...costs)
}

type Stage = Pick<Awaited<ReturnType<typeof openSync>>, 'appender' | 'codecs'>

/** As many at once, and as many in a transaction, as the product has. */
const bareOf = (place: Place, { appender, codecs }: Stage, changed: number): Run => {
  let seq = 0
  const rows = (count: number, at: Date): readonly Outbound[] =>
    Array.from({ length: count }, () => rowOf(seq++, at))
  return async () => {
    let left = changed
    const work = async () => {
      while (left > 0) {
        const at = new Date()
        const messages = rows(Math.min(left, syncLimits.chunkUsersMax), at)
        left -= messages.length
        await place.pool.transaction((tx) => saveBare(tx, messages, at))
        const entries = messages.map((message) => ({
          key: outboundKey(message),
          value: codecs.outbound.encode(message),
        }))
        await appender.append('outbound', entries)
      }
    }
    return measured(place, changed, async () => {
      await Promise.all(Array.from({ length: syncLimits.stepsAtOnce }, work))
    })
  }
}

const saveBare = (tx: Sql, messages: readonly Outbound[], at: Date): Promise<unknown> =>
  tx.query(
    `insert into bare_outbox (shard, seq, run_id, message_id, origin, type, workspace_id,
                              destination_id, user_id, at, body)
     select o.shard, o.seq, 1, o.message_id, 'audience', 'identify', 1, 1, o.user_id, $1, o.body
       from unnest($2::smallint[], $3::bigint[], $4::text[], $5::text[], $6::bytea[])
         as o(shard, seq, message_id, user_id, body)`,
    [
      at,
      numberList(messages.map(({ shard }) => shard)),
      numberList(messages.map((message) => message.seq)),
      textList(messages.map(({ messageId }) => messageId)),
      textList(messages.map(({ userId }) => userId)),
      bytesList(messages.map(({ body }) => body)),
    ],
  )

const rowOf = (number: number, at: Date): Outbound => {
  const userId = `user-${number}`
  const body = {
    version: 1,
    type: 'identify',
    userId,
    traits: { [audiences[number % audiences.length]?.key ?? '']: false },
    timestamp: at.toISOString(),
  }
  return {
    messageId: `00000000-0000-5000-8000-${String(number).padStart(12, '0')}`,
    ...{ origin: 'audience', type: 'identify', workspaceId: 1, destinationId: 1, userId },
    timestamp: at.getTime(),
    receivedAt: at.getTime(),
    shard: number % 64,
    seq: number,
    body: Buffer.from(JSON.stringify(body)),
  }
}
