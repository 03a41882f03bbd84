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

type Bounds = { readonly rowsMax: number; readonly bytesMax: number }

export const openHanded = ({ rowsMax, bytesMax }: Bounds): Handed => {
  let waiting: Outbound[] = []
  /** Of their bodies: all else of a row is small. */
  let bytes = 0
  let away = false
  return {
    add: (rows) => {
      const more = bytesOf(rows)
      if (waiting.length + rows.length > rowsMax || bytes + more > bytesMax) {
        away = true
        return
      }
      waiting = waiting.concat(rows)
      bytes += more
    },
    take: (count) => {
      const taken = waiting.slice(0, count)
      waiting = waiting.slice(count)
      bytes -= bytesOf(taken)
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

const bytesOf = (rows: readonly Outbound[]): number =>
  rows.reduce((sum, { body }) => sum + body.length, 0)
