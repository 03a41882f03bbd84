// What holds of every archive, whatever happened to it.
import { expect } from 'vitest'
import { plain, type Rig, readAll } from './rig.ts'

type Row = { partition: number; first: bigint; next: bigint; entries: number; generation: number }

export const segmentsOf = async ({ pool }: Rig) => {
  const { rows } = await pool.query<Row>(
    `select partition, first_offset as first, next_offset as next, entries, generation
       from archive_segment where topic = 'calls' order by 1, 2`,
  )
  return rows
}

/** The index holds every offset of the log once. */
export const expectWhole = async (rig: Rig) => {
  const bounds = await rig.source.bounds('calls')
  for (const [partition, { end }] of bounds.entries()) {
    let next = 0n
    for (const row of (await segmentsOf(rig)).filter((each) => each.partition === partition)) {
      expect(row.first).toBe(next)
      next = row.next
    }
    expect(next).toBe(end)
  }
}

/** What the log held before it let go of all of it, and what the history says after. */
export const expectSame = async (rig: Rig) => {
  for (const partition of [0, 1]) {
    const { end } = (await rig.source.bounds('calls'))[partition] as { end: bigint }
    const range = { topic: 'calls', partition, from: 0n, until: end } as const
    const held = plain(await readAll(rig.source, range))
    rig.log.truncate('calls', partition, end)
    expect(plain(await readAll(rig.history(), range))).toEqual(held)
    expect(held.length).toBeGreaterThan(0)
  }
}

export const isArchived = async (rig: Rig) => {
  const { rows } = await rig.pool.query<{ partition: number; next: bigint }>(
    `select partition, next from position where reader = 'archive' and topic = 'calls'`,
  )
  const bounds = await rig.source.bounds('calls')
  return bounds.every(
    ({ end }, partition) => (rows.find((row) => row.partition === partition)?.next ?? 0n) >= end,
  )
}
