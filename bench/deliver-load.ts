// The load generator of the benches of delivery under trouble: appends timed calls to the log at a constant rate.

import { setTimeout as sleep } from 'node:timers/promises'
import { logKey } from '../src/domain/message.ts'
import { answerParent } from './deliver-processes.ts'
import { openLogAt } from './deliver-stand.ts'
import { timedCall } from './deliver-timed-calls.ts'

export type Order =
  | { readonly type: 'open'; readonly url: string; readonly prefix: string }
  /** So many calls as fast as they go, spread over these sources; many in an append unless told how many. */
  | {
      readonly type: 'fill'
      readonly calls: number
      readonly sourceIds: readonly number[]
      readonly each?: number
    }
  | { readonly type: 'run'; readonly perSecond: number; readonly sourceIds: readonly number[] }
  | { readonly type: 'halt' }
  | { readonly type: 'close' }

/** What was appended since the last order, and the most that waited for the log at a time. */
export type Appended = { readonly calls: number; readonly waitingMost: number }

const users = 500_000
const fillBatch = 500
const fillsAtOnce = 4
const tickMs = 5
/** Beyond it the log cannot keep up, and a rate that is not kept must not look as if it were. */
const waitingMax = 20_000

type Opened = Awaited<ReturnType<typeof openLogAt>>

let opened: Opened | null = null
let number = 0
let calls = 0
let waiting = 0
let waitingMost = 0
let running: { halted: boolean; readonly done: Promise<void> } | null = null

/** Users take their turns, so that a user comes again only after all the others. */
const append = async (count: number, sourceIds: readonly number[]): Promise<void> => {
  if (!opened) throw new Error('no log is open')
  const { appender, codecs } = opened
  const entries = Array.from({ length: count }, () => {
    number += 1
    const at = { sourceId: sourceIds[number % sourceIds.length] as number, userId: number % users }
    const call = timedCall(number, at)
    return { key: logKey(call), value: codecs.call.encode(call) }
  })
  waiting += count
  waitingMost = Math.max(waitingMost, waiting)
  await appender.append('calls', entries)
  waiting -= count
  calls += count
}

const fill = async (order: Extract<Order, { type: 'fill' }>): Promise<void> => {
  const { sourceIds, each = fillBatch } = order
  let left = order.calls
  const one = async () => {
    while (left > 0) {
      const next = Math.min(left, each)
      left -= next
      await append(next, sourceIds)
    }
  }
  await Promise.all(Array.from({ length: fillsAtOnce }, one))
}

const run = (perSecond: number, sourceIds: readonly number[]) => {
  const state = { halted: false, done: Promise.resolve() }
  const appends = new Set<Promise<void>>()
  const loop = async () => {
    const began = performance.now()
    let begun = 0
    while (!state.halted) {
      const due = Math.floor(((performance.now() - began) * perSecond) / 1_000) - begun
      if (waiting + due > waitingMax) throw new Error(`the log cannot take ${perSecond} a second`)
      if (due > 0) {
        begun += due
        const one = append(due, sourceIds).finally(() => appends.delete(one))
        one.catch(() => undefined)
        appends.add(one)
      }
      await sleep(tickMs)
    }
    await Promise.all(appends)
  }
  state.done = loop()
  // Told with the next order.
  state.done.catch(() => undefined)
  return state
}

const halt = async (): Promise<void> => {
  if (!running) return
  running.halted = true
  await running.done
  running = null
}

answerParent<Order>(async (order) => {
  if (order.type === 'open') opened = await openLogAt(order)
  else if (order.type === 'fill') await fill(order)
  else if (order.type === 'run') running = run(order.perSecond, order.sourceIds)
  else await halt()
  if (order.type === 'close') await opened?.close()
  const appended: Appended = { calls, waitingMost }
  calls = 0
  waitingMost = waiting
  return appended
})
process.send?.({ ready: true })
