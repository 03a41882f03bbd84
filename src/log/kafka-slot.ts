// One partition that a Kafka membership holds: its lease, its reader, and the flow of batches to it.
import { Fault } from '../fault.ts'
import { type PartitionQueue, partitionQueue } from './kafka-queue.ts'
import { type Batch, type Lease, type Place, placeOf, type Reader } from './log.ts'

export type SlotDeps = {
  readonly place: Place
  /** Bytes this partition may hold, queued and in hand. */
  readonly share: number
  readonly committed: bigint | null
  /** Aborts when the membership's whole assignment is in doubt. */
  readonly lost: AbortSignal
  /** Settles when an earlier lease's handle on this partition, in this membership, is over. */
  readonly earlier: Promise<void>
  commit(next: bigint): Promise<'committed' | 'lost'>
  pause(place: Place): void
  /** Reads on from exactly this offset. */
  resume(place: Place, offset: bigint): void
  die(error: unknown): void
}

export type Fetched = {
  /** The offset that was asked for. */
  readonly asked: bigint
  readonly batch: Batch
}

export type Slot = {
  readonly lease: Lease
  begin(reader: Reader): void
  offer(fetched: Fetched): void
  /** The broker's answer held nothing to read in [from, next). */
  skip(from: bigint, next: bigint): void
  /** Hands over no more; resolves when the handle in hand is over. */
  drain(): Promise<void>
}

export const openSlot = (deps: SlotDeps): Slot => {
  const { place, share, lost } = deps
  let draining = false
  let reader: Reader | null = null
  let queue: PartitionQueue | null = null
  let wanted = 0n
  let paused = true
  let astray = false
  let running = false
  let handling = deps.earlier

  const isOpen = () => !draining && !lost.aborted
  const resume = () => {
    paused = false
    deps.resume(place, wanted)
  }
  const run = async () => {
    for (;;) {
      const chunk = isOpen() ? queue?.take(share / 8) : null
      if (!chunk || !queue) break
      try {
        await reader?.handle(chunk.batch)
      } catch (error) {
        if (!lost.aborted) deps.die(error)
        break
      }
      queue.handled(chunk)
      if (isOpen() && paused && queue.bytes() <= share / 4) resume()
    }
    running = false
  }
  const take = (batch: Batch) => {
    if (queue === null) return
    wanted = queue.offer(batch)
    if (!paused && (wanted < batch.next || queue.bytes() > share / 2)) {
      paused = true
      deps.pause(place)
    }
    if (running) return
    running = true
    handling = handling.then(run)
  }
  return {
    lease: {
      ...place,
      committed: deps.committed,
      lost,
      commit: (next) => (lost.aborted ? Promise.resolve('lost') : deps.commit(next)),
    },
    begin: (next) => {
      if (!isOpen()) return
      reader = next
      queue = partitionQueue(next.from, share)
      wanted = next.from
      resume()
    },
    offer: ({ asked, batch }) => {
      if (!isOpen() || paused) return
      if (asked === wanted) {
        astray = false
        return take(batch)
      }
      // kafkajs answers "out of range" by going to the oldest entry. Ask once more, then be loud.
      if (astray) return deps.die(gap(place, wanted, asked))
      astray = true
      resume()
    },
    skip: (from, next) => {
      if (isOpen() && !paused && from === wanted) take({ from, next, entries: [] })
    },
    drain: () => {
      draining = true
      return handling
    },
  }
}

export const gap = (place: Place, wanted: bigint, found: bigint): Fault =>
  new Fault(
    'log_gap',
    `${placeOf(place)} was to be read from ${wanted}, but the log offers ${found}`,
  )
