// Looks whether anything below a committed offset, or below a position, has not been settled.
import { openCodecs } from '../../src/log/avro.ts'
import type { Pool } from '../../src/postgres/sql.ts'
import type { LineLog } from './line-log.ts'
import type { Seen } from './seen.ts'

const codecs = await openCodecs({})

type Checking = {
  readonly log: LineLog
  readonly pool: Pool
  readonly seen: Seen
  /** Numbered from 1, and each gets every call. */
  readonly destinations: number
}

/** Entries are only appended, and what is settled stays so: each offset is looked at once. */
export const openCommittedCheck = ({ log, pool, seen, destinations }: Checking) => {
  const checked = new Map<number, bigint>()
  const found = { offsets: 0, unsettled: [] as string[] }
  const check = async (partition: number, until: bigint) => {
    const from = checked.get(partition) ?? 0n
    if (until <= from) return
    // First who is parked, then who succeeded: a row that goes meanwhile has succeeded.
    const parked = await parkedOf(pool, { partition, from, until })
    for await (const { entries } of log.source.read({ topic: 'calls', partition, from, until })) {
      const calls = await codecs.call.decode(entries.map(({ value }) => value))
      entries.forEach(({ offset }, at) => {
        found.offsets += 1
        const { n } = JSON.parse(calls[at]?.body.toString() ?? '').properties
        for (let destination = 1; destination <= destinations; destination += 1)
          if (!parked.has(`${offset} ${destination}`) && !seen.isTaken(destination, n))
            found.unsettled.push(`calls/${partition} ${offset} to ${destination}, below ${until}`)
      })
    }
    checked.set(partition, until)
  }
  return {
    found,
    /** Rejects while the log or Postgres is away. */
    look: async () => {
      const committed = await log.committed()
      for (const [partition, next] of committed.entries()) if (next) await check(partition, next)
      const { rows } = await pool.query<{ partition: number; next: bigint }>(
        "select partition, next from position where reader = 'deliver' and topic = 'calls'",
      )
      for (const { partition, next } of rows) await check(partition, next)
    },
  }
}

type Span = { readonly partition: number; readonly from: bigint; readonly until: bigint }

const parkedOf = async (pool: Pool, { partition, from, until }: Span) => {
  const { rows } = await pool.query<{ offset: bigint; destination: number }>(
    `select log_offset as offset, destination_id as destination from parked
      where topic = 'calls' and partition = $1 and log_offset >= $2 and log_offset < $3`,
    [partition, from, until],
  )
  return new Set(rows.map(({ offset, destination }) => `${offset} ${destination}`))
}
