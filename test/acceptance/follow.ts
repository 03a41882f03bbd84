// One acceptance run: purchases in, syncs at instants, and topic `outbound` compared after each.
import { expect } from 'vitest'
import type { Json } from '../oracle/values.ts'
import { seeded } from '../support/seeded.ts'
import { expectedMessages, line, stepMs } from './expectation.ts'
import type { Line } from './line.ts'
import type { OutboundReader } from './outbound.ts'
import { firstDay, type Purchase } from './purchases.ts'

type Options = {
  readonly line: Line
  readonly outbound: OutboundReader
  readonly purchases: readonly Purchase[]
  /** When to sync, ascending. The clock also stops at every midnight that has purchases. */
  readonly instants: readonly number[]
  readonly kills: number
  readonly seed: number
}

export type Followed = { readonly messages: number; readonly kills: number }

export const follow = async (options: Options): Promise<Followed> => {
  const expected = expectedMessages(options.purchases, options.instants)
  const due = byInstant(options.purchases)
  const syncs = new Map(options.instants.map((at, index) => [at, index]))
  const stops = [...new Set([...due.keys(), ...syncs.keys()])]
    .filter((at) => at <= (options.instants.at(-1) ?? 0))
    .sort((a, b) => a - b)
  const killAt = planKills(options, stops.length)
  let messages = 0
  for (const [index, at] of stops.entries()) {
    const sync = syncs.get(at)
    await options.line.step({
      at,
      purchases: due.get(at) ?? [],
      sync: sync !== undefined,
      killAfterMs: killAt.get(index) ?? null,
    })
    if (sync === undefined) continue
    const told = (await options.outbound.fresh()).map(toldBy)
    expect(told.sort(), `the sync at ${new Date(at).toISOString()}`).toEqual(expected[sync])
    messages += told.length
  }
  return { messages, kills: options.line.kills() }
}

const byInstant = (purchases: readonly Purchase[]): ReadonlyMap<number, Purchase[]> => {
  const due = new Map<number, Purchase[]>()
  for (const purchase of purchases) {
    const at = firstDay + Math.ceil((purchase.at - firstDay) / stepMs) * stepMs
    const list = due.get(at)
    if (list) list.push(purchase)
    else due.set(at, [purchase])
  }
  return due
}

const killDelayMsMax = 120

const planKills = ({ kills, seed }: Options, stops: number): ReadonlyMap<number, number> => {
  const random = seeded(seed)
  const plan = new Map<number, number>()
  while (plan.size < Math.min(kills, stops))
    plan.set(Math.floor(random() * stops), Math.floor(random() * killDelayMsMax))
  return plan
}

type Body = {
  readonly userId: string
  readonly timestamp: string
  readonly traits: Readonly<Record<string, Json>>
}

const toldBy = ({ body }: { readonly body: Uint8Array }): string => {
  const { userId, traits } = JSON.parse(Buffer.from(body).toString()) as Body
  const [[audience, value] = ['', false]] = Object.entries(traits)
  return line({ userId, audience, value })
}
