// Rows a chunk has committed and the relay has not appended: kept, so that they are not read back.
import type { Outbound } from '../domain/message.ts'

export type Handed = {
  /** All of them, or none where they would be too many: the outbox has them anyway. */
  add(rows: readonly Outbound[]): void
  /** The first so many, which are forgotten here. */
  take(rowsMax: number): readonly Outbound[]
  count(): number
  /** Whether any were turned away since this was asked last. */
  turnedAway(): boolean
}

export const openHanded = (rowsMax: number): Handed => {
  let waiting: Outbound[] = []
  let away = false
  return {
    add: (rows) => {
      if (waiting.length + rows.length > rowsMax) away = true
      else waiting = waiting.concat(rows)
    },
    take: (count) => {
      const taken = waiting.slice(0, count)
      waiting = waiting.slice(count)
      return taken
    },
    count: () => waiting.length,
    turnedAway: () => {
      const before = away
      away = false
      return before
    },
  }
}
