// Millrace under test: processes of which one is killed with -9 at random and started again, and a sender that
// repeats every batch which was not answered.
import { setTimeout as sleep } from 'node:timers/promises'
import type { Call } from '../support/language.ts'
import { type MillraceProcess, type ProcessOptions, startProcess } from '../support/process.ts'
import type { Scenario } from './expectation.ts'

export type Line = {
  /** Sets the clocks, sends what has come due, and syncs when asked; repeats it all after a kill. */
  step(step: Step): Promise<void>
  kills(): number
  stop(): Promise<void>
}

export type Step = {
  readonly at: number
  readonly calls: readonly Call[]
  readonly sync: boolean
  /** Kill one process so long after the step began; which, from 0 to below 1 of all. `null`: leave them alone. */
  readonly kill: { readonly afterMs: number; readonly which: number } | null
}

type Wanted = {
  readonly definitions: Scenario['definitions']
  readonly receiverUrl: string
  /** They share the database and the log. */
  readonly processes?: number
}

const writeKey = 'wk_till'
export const sharedSecret = 'acceptance-secret'

export const startLine = async (options: ProcessOptions, wanted: Wanted): Promise<Line> => {
  const living: MillraceProcess[] = []
  for (let n = 0; n < (wanted.processes ?? 1); n++) living.push(await startProcess(options))
  let [kills, turn] = [0, 0]
  /** They are spoken to in turn. */
  const next = () => living[turn++ % living.length] as MillraceProcess
  await admin(next(), 'apply', configurationOf(wanted))
  const once = async ({ at, calls, sync }: Step) => {
    await Promise.all(living.map((process) => process.setTime(new Date(at))))
    for (let from = 0; from < calls.length; from += batchMax)
      await send(next(), calls.slice(from, from + batchMax))
    if (sync) await admin(next(), 'sync', {})
  }
  const unkilled = (step: Step) =>
    once(step).catch((error: unknown) => {
      const logs = living.map((process) => process.logTail()).join('\n\n')
      throw new Error(`at ${new Date(step.at).toISOString()}: ${error}\n${logs}`)
    })
  const step = async (wanted: Step): Promise<void> => {
    if (wanted.kill === null) return unkilled(wanted)
    const { which, afterMs } = wanted.kill
    const victim = living[Math.floor(which * living.length)] as MillraceProcess
    let isKilled = false
    const killed = sleep(afterMs).then(() => {
      isKilled = true
      return victim.kill9()
    })
    await once(wanted).catch((error: unknown) => {
      if (!isKilled) throw error
    })
    await killed
    kills += 1
    living.splice(living.indexOf(victim), 1)
    // The others take over, whatever it was doing.
    if (living.length > 0) await unkilled(wanted)
    living.push(await startProcess({ ...options, time: new Date(wanted.at) }))
    await unkilled(wanted)
  }
  const stop = () => Promise.all(living.map((process) => process.stop()))
  return { step, kills: () => kills, stop: () => stop().then(() => undefined) }
}

const batchMax = 500

const configurationOf = ({ definitions, receiverUrl }: Wanted) => {
  const whole = definitions.map(({ kind = 'audience', ...it }) => ({ kind, ...it }))
  const common = {
    destinations: ['Webhooks'],
    // Longer than the data: the acceptance says when to sync, so that each instant is one sync.
    syncEvery: '2000d',
  }
  return {
    workspaces: [
      {
        name: 'shop',
        sources: [{ name: 'till', class: 'server', writeKey }],
        destinations: [
          {
            name: 'Webhooks',
            type: 'webhook',
            sources: [],
            sharedSecret,
            webhooks: [{ url: receiverUrl }],
          },
        ],
        traits: whole.flatMap(({ kind, key: _, condition: measure, ...it }) =>
          kind === 'trait' ? [{ ...common, ...it, measure }] : [],
        ),
        audiences: whole.flatMap(({ kind, key: _, condition: where, ...it }) =>
          kind === 'audience' ? [{ ...common, ...it, where }] : [],
        ),
      },
    ],
  }
}

const admin = (process: MillraceProcess, path: string, body: unknown) =>
  post(`${process.adminUrl}/admin/v1/${path}`, `Bearer ${process.token}`, body)

const send = (process: MillraceProcess, calls: readonly Call[]) =>
  post(
    `${process.collectUrl}/v1/batch`,
    `Basic ${Buffer.from(`${writeKey}:`).toString('base64')}`,
    {
      batch: calls.map(({ type, userId, messageId, event, properties, traits, timestamp }) => ({
        ...(type === 'track' ? { type, event, properties } : { type, traits }),
        userId,
        messageId,
        timestamp: new Date(timestamp).toISOString(),
      })),
    },
  )

const post = async (url: string, authorization: string, body: unknown) => {
  const response = await fetch(url, {
    method: 'POST',
    headers: { authorization, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })
  const text = await response.text()
  if (response.status !== 200) throw new Error(`${url} answered ${response.status}: ${text}`)
  return JSON.parse(text) as unknown
}
