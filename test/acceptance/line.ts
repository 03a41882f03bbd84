// Millrace under test: a process that is killed with -9 at random and started again, and a sender that
// repeats every batch which was not answered.
import { type MillraceProcess, type ProcessOptions, startProcess } from '../support/process.ts'
import { audiences, messageIdOf } from './expectation.ts'
import type { Purchase } from './purchases.ts'

export type Line = {
  /** Sets the clock, sends what has come due, and syncs when asked; repeats it all after a kill. */
  step(step: Step): Promise<void>
  kills(): number
  stop(): Promise<void>
}

export type Step = {
  readonly at: number
  readonly purchases: readonly Purchase[]
  readonly sync: boolean
  /** Kill the process this long after the step began; `null`: leave it alone. */
  readonly killAfterMs: number | null
}

const writeKey = 'wk_till'
export const sharedSecret = 'acceptance-secret'

export const startLine = async (options: ProcessOptions, receiverUrl: string): Promise<Line> => {
  let process = await startProcess(options)
  let kills = 0
  await admin(process, 'apply', configurationOf(receiverUrl))
  const once = async ({ at, purchases, sync }: Step) => {
    await process.setTime(new Date(at))
    for (let from = 0; from < purchases.length; from += batchMax)
      await send(process, purchases.slice(from, from + batchMax))
    if (sync) await admin(process, 'sync', {})
  }
  const step = async (wanted: Step): Promise<void> => {
    const killer = wanted.killAfterMs === null ? null : killLater(process, wanted.killAfterMs)
    try {
      await once(wanted)
      await killer?.cancel()
    } catch (error) {
      if (!killer?.fired())
        throw new Error(`at ${new Date(wanted.at).toISOString()}: ${error}\n${process.logTail()}`)
      await process.done
      kills += 1
      process = await startProcess({ ...options, time: new Date(wanted.at) })
      await step({ ...wanted, killAfterMs: null })
    }
  }
  return { step, kills: () => kills, stop: () => process.stop() }
}

const batchMax = 500

const configurationOf = (receiverUrl: string) => ({
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
      audiences: audiences.map(({ name, condition }) => ({
        name,
        destinations: ['Webhooks'],
        // Longer than the data: the acceptance says when to sync, so that each instant is one sync.
        syncEvery: '2000d',
        where: condition,
      })),
    },
  ],
})

const killLater = (process: MillraceProcess, afterMs: number) => {
  let killed: Promise<void> | null = null
  const timer = setTimeout(() => {
    killed = process.kill9()
  }, afterMs)
  return {
    fired: () => killed !== null,
    /** The step was done before the kill: kill now, so that every planned kill happens. */
    cancel: async () => {
      clearTimeout(timer)
      if (killed === null) killed = process.kill9()
      await killed
      throw new Error('killed after the step')
    },
  }
}

const admin = (process: MillraceProcess, path: string, body: unknown) =>
  post(`${process.adminUrl}/admin/v1/${path}`, `Bearer ${process.token}`, body)

const send = (process: MillraceProcess, purchases: readonly Purchase[]) =>
  post(
    `${process.collectUrl}/v1/batch`,
    `Basic ${Buffer.from(`${writeKey}:`).toString('base64')}`,
    {
      batch: purchases.map((purchase) => ({
        type: 'track',
        userId: purchase.customer,
        event: 'Order Completed',
        properties: { price: purchase.price, quantity: purchase.quantity },
        timestamp: new Date(purchase.at).toISOString(),
        messageId: messageIdOf(purchase),
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
