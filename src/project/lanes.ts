// What the projector holds of each partition it owns, and the queue from their handles to its transactions.

import type { IdentityKind } from '../domain/identity.ts'
import type { Message } from '../domain/message.ts'
import type { Duplicates } from '../duplicate/duplicates.ts'
import type { Lease } from '../log/log.ts'

export type Lane = {
  readonly lease: Lease
  readonly epoch: bigint
  readonly duplicates: Duplicates
  /** The stored position. */
  next: bigint
  /** The highest receivedAt folded, epoch ms. */
  folded: number
  /** Somebody else has the partition: what is queued of it is dropped. */
  readonly lost: boolean
  lose(): void
  /** Tells the log how far the stored position is, without waiting for the answer. */
  commit(): void
}

/** Calls of one lane in offset order, up to `next`. */
export type Piece = {
  readonly lane: Lane
  readonly next: bigint
  readonly calls: readonly {
    readonly offset: bigint
    readonly message: Message
    /** Of an alias that was folded before: what its previous id was taken for then. */
    readonly previous?: IdentityKind | undefined
  }[]
  /** Orders to erase and nothing else; in any other piece there are none. */
  readonly orders?: boolean
}

export type LaneQueue = {
  /** Resolves when the piece was taken in; pending is the back-pressure on its partition. */
  put(piece: Piece): Promise<void>
  /** Whatever is queued, at most `callsMax` calls; empty only when closed. Waits for the first. */
  take(): Promise<readonly Piece[]>
  /** Calls waiting. */
  size(): number
  /** Resolves when something was put in or the queue was closed. */
  changed(): Promise<void>
  /** Nothing more goes in or out. */
  close(): void
}

type Limits = { readonly callsMax: number; readonly queueCallsMax: number }

export const laneQueue = ({ callsMax, queueCallsMax }: Limits): LaneQueue => {
  let pieces: Piece[] = []
  let size = 0
  let closed = false
  let change = Promise.withResolvers<void>()
  const tell = () => {
    change.resolve()
    change = Promise.withResolvers()
  }
  const takeNow = (): readonly Piece[] => {
    const taken: Piece[] = []
    let calls = 0
    pieces = pieces.filter((piece) => {
      if (!piece.lane.lost) return true
      size -= piece.calls.length
      return false
    })
    for (const piece of pieces) {
      if (taken.length > 0 && calls + piece.calls.length > callsMax) break
      // What an order erases is what came before: calls after it are of another batch.
      if (taken.at(-1)?.orders && !piece.orders) break
      taken.push(piece)
      calls += piece.calls.length
    }
    pieces.splice(0, taken.length)
    size -= calls
    if (taken.length > 0) tell()
    return taken
  }
  return {
    put: async (piece) => {
      while (!closed && !piece.lane.lost && size > 0 && size + piece.calls.length > queueCallsMax)
        await change.promise
      if (closed || piece.lane.lost) return
      pieces.push(piece)
      size += piece.calls.length
      tell()
    },
    take: async () => {
      for (;;) {
        if (closed) return []
        const taken = takeNow()
        if (taken.length > 0) return taken
        await change.promise
      }
    },
    size: () => size,
    changed: () => change.promise,
    close: () => {
      closed = true
      tell()
    },
  }
}
