// One acceptance run: calls in, syncs at instants, and topic `outbound` compared after each.
import { expect } from 'vitest'
import type { Call, Json } from '../support/language.ts'
import { seeded } from '../support/seeded.ts'
import { expectedMessages, line, type Scenario, stepMs } from './expectation.ts'
import type { Line, Step } from './line.ts'
import type { OutboundReader } from './outbound.ts'
import { firstDay } from './purchases.ts'

type Options = {
  readonly line: Line
  readonly outbound: OutboundReader
  readonly scenario: Scenario
  /** When to sync, ascending. The clock also stops at every midnight that has calls. */
  readonly instants: readonly number[]
  readonly kills: number
  readonly seed: number
}

export type Followed = { readonly messages: number; readonly kills: number }

export const follow = async (options: Options): Promise<Followed> => {
  const expected = expectedMessages(options.scenario, options.instants)
  const due = byInstant(options.scenario.calls)
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
      calls: due.get(at) ?? [],
      sync: sync !== undefined,
      kill: killAt.get(index) ?? null,
    })
    if (sync === undefined) continue
    const told = (await options.outbound.fresh()).map(toldBy)
    expect(told.sort(), `the sync at ${new Date(at).toISOString()}`).toEqual(expected[sync])
    messages += told.length
  }
  return { messages, kills: options.line.kills() }
}

const byInstant = (calls: readonly Call[]): ReadonlyMap<number, readonly Call[]> =>
  Map.groupBy(
    calls,
    ({ receivedAt }) => firstDay + Math.ceil((receivedAt - firstDay) / stepMs) * stepMs,
  )

const killDelayMsMax = 120

const planKills = ({ kills, seed }: Options, stops: number) => {
  const random = seeded(seed)
  const plan = new Map<number, NonNullable<Step['kill']>>()
  while (plan.size < Math.min(kills, stops)) {
    const kill = { afterMs: Math.floor(random() * killDelayMsMax), which: random() }
    plan.set(Math.floor(random() * stops), kill)
  }
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
