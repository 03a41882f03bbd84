// What was told and not written yet: the newest entries of each source, bounded in number and in bytes.
import { isObject, type Json } from '../domain/message.ts'
import type { Told } from './debugger.ts'

export type Taken = {
  readonly sourceId: number
  /** Oldest first. */
  readonly told: readonly Told[]
  /** Older ones that were dropped. */
  readonly skipped: number
}

export type Pending = {
  put(sourceId: number, told: readonly Told[]): void
  take(): readonly Taken[]
  /** They could not be written: that they were there is told with the next. */
  skip(taken: readonly Taken[]): void
  /** What is held now. */
  bytes(): number
}

type Limits = {
  readonly entriesMax: number
  readonly pendingBytesMax: number
  readonly watchesMax: number
}
type Held = { readonly told: Told; readonly bytes: number }
type Queue = { held: Held[]; skipped: number }

export const openPending = (limits: Limits): Pending => {
  let queues = new Map<number, Queue>()
  let bytes = 0
  const queueOf = (sourceId: number): Queue => {
    const found = queues.get(sourceId)
    if (found) return found
    const queue = { held: [], skipped: 0 }
    queues.set(sourceId, queue)
    return queue
  }
  const dropOldest = (queue: Queue) => {
    bytes -= queue.held.shift()?.bytes ?? 0
    queue.skipped += 1
  }
  const put = (sourceId: number, told: readonly Told[]) => {
    const queue = queueOf(sourceId)
    const kept = told.slice(-limits.entriesMax)
    queue.skipped += told.length - kept.length
    for (const one of kept) {
      const held = { told: one, bytes: bytesOf(one) }
      queue.held.push(held)
      bytes += held.bytes
      while (
        queue.held.length > limits.entriesMax ||
        (bytes > limits.pendingBytesMax && queue.held.length > 0)
      )
        dropOldest(queue)
    }
  }
  return {
    put,
    take: () => {
      const taken = [...queues].map(([sourceId, { held, skipped }]) => ({
        sourceId,
        told: held.map(({ told }) => told),
        skipped,
      }))
      queues = new Map()
      bytes = 0
      return taken
    },
    skip: (taken) => {
      for (const { sourceId, told, skipped } of taken)
        if (queues.has(sourceId) || queues.size < limits.watchesMax)
          queueOf(sourceId).skipped += told.length + skipped
    },
    bytes: () => bytes,
  }
}

const entryBytes = 256
const nodeBytes = 32

/** About what it keeps on the heap. */
const bytesOf = ({ event, messageId, call }: Told): number =>
  entryBytes +
  2 * ((event?.length ?? 0) + (messageId?.length ?? 0)) +
  (call instanceof Uint8Array ? call.length : sizeOf(call))

/** Without recursion: a call may be rejected for its depth. */
const sizeOf = (json: Json): number => {
  let bytes = 0
  const open: Json[] = [json]
  for (let value = open.pop(); value !== undefined; value = open.pop()) {
    bytes += nodeBytes
    if (typeof value === 'string') bytes += 2 * value.length
    else if (isObject(value))
      for (const key in value) {
        bytes += 2 * key.length
        open.push(value[key] as Json)
      }
    else if (Array.isArray(value)) for (const item of value) open.push(item)
  }
  return bytes
}
