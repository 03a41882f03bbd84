// A tracking plan from the file to the receiver: what it keeps out never arrives, is shown, and is metered where it must be.
import { afterAll, expect, test } from 'vitest'
import { acceptsWriteKey, apply } from '../support/applied.ts'
import { cloneDatabase } from '../support/database.ts'
import { startProcess } from '../support/process.ts'
import { openReceiver } from '../support/receiver.ts'
import { until } from '../support/until.ts'

const receiver = await openReceiver()
const { url: databaseUrl } = await cloneDatabase()
const millrace = await startProcess({ databaseUrl, time: 'running' })

afterAll(async () => {
  await millrace.stop()
  await receiver.close()
})

const Ordered = {
  type: 'object',
  properties: { price: { type: 'number' }, sku: { type: 'string' } },
  required: ['price'],
  additionalProperties: false,
}

const configuration = {
  workspaces: [
    {
      name: 'shop',
      grandfathered: true,
      sources: [
        {
          name: 'back',
          class: 'server',
          writeKey: 'wk_plan_back',
          trackingPlan: { mode: 'omit', unplanned: 'forbid', events: { Ordered } },
        },
        {
          name: 'site',
          class: 'web',
          writeKey: 'wk_plan_site',
          trackingPlan: { mode: 'block', unplanned: 'forbid', events: { Ordered } },
        },
      ],
      destinations: [
        {
          name: 'Hook',
          sources: ['back', 'site'],
          sharedSecret: 'secret',
          webhooks: [{ url: receiver.url }],
        },
      ],
      audiences: [
        {
          name: 'Shippers',
          destinations: ['Hook'],
          where: { event: { name: 'Shipped' }, count: { op: 'gte', value: 1 } },
        },
      ],
    },
  ],
}

const track = async (key: string, event: string, properties: object) => {
  const response = await fetch(`${millrace.collectUrl}/v1/track`, {
    method: 'POST',
    headers: { authorization: `Basic ${Buffer.from(`${key}:`).toString('base64')}` },
    body: JSON.stringify({ userId: 'u1', event, properties }),
  })
  expect([response.status, await response.json()]).toEqual([200, { success: true }])
}

const ask = async <T>(path: string): Promise<T> => {
  const response = await fetch(`${millrace.adminUrl}/admin/v1/${path}`, {
    headers: { authorization: `Bearer ${millrace.token}` },
  })
  expect(response.status, path).toBe(200)
  return (await response.json()) as T
}

type Named = { readonly id: number; readonly name: string }
type Workspaces = { readonly workspaces: readonly Named[] }
type Violations = { readonly violations: readonly Record<string, unknown>[] }
type Usage = { readonly months: readonly { readonly calls: number }[] }
type Counts = {
  readonly counts: readonly {
    readonly source: string | null
    readonly destinationId: number | null
    readonly step: string
    readonly reason: string | null
    readonly calls: number
  }[]
}

const meteredCalls = async (): Promise<number> => {
  const { workspaces } = await ask<Workspaces>('workspaces')
  const shop = workspaces.find(({ name }) => name === 'shop')
  const { months } = await ask<Usage>(`usage?workspaceId=${shop?.id}`)
  return months.reduce((sum, { calls }) => sum + calls, 0)
}

const violationsOf = async (name: string): Promise<readonly string[]> => {
  const { sources } = await ask<{ readonly sources: readonly Named[] }>('sources')
  const id = sources.find((source) => source.name === name)?.id
  const { violations } = await ask<Violations>(`sources/${id}/violations`)
  return violations.map(({ event, path, kind, calls }) => `${event} ${path} ${kind} ${calls}`)
}

const filteredCalls = async (): Promise<readonly string[]> => {
  const { counts } = await ask<Counts>('pipeline')
  return counts
    .filter(({ step, destinationId }) => step === 'filtered' && destinationId === null)
    .map(({ source, reason, calls }) => `${source} ${reason} ${calls}`)
    .sort()
}

test('a plan keeps calls from destinations and audiences, counts them, and meters those of servers', async () => {
  await apply(millrace, configuration)
  await acceptsWriteKey(millrace.collectUrl, 'wk_plan_site')
  for (const key of ['wk_plan_back', 'wk_plan_site']) {
    await track(key, 'Shipped', {})
    await track(key, 'Ordered', { price: 'dear' })
    await track(key, 'Ordered', { price: 1, mail: 'a@b.c' })
  }
  await track('wk_plan_site', 'Ordered', { price: 2 })
  const arrived = () => receiver.requests.map(({ json }) => json['properties'])
  await until(() => arrived().length === 2, 'what the plans let through')
  expect(arrived()).toEqual(expect.arrayContaining([{ price: 1 }, { price: 2 }]))

  // Of the server source all three, of the other the one that was kept.
  await until(async () => (await meteredCalls()) === 4, 'what is metered')
  await until(async () => (await filteredCalls()).length === 4, 'what is filtered is counted')
  expect(await filteredCalls()).toEqual([
    'back event_not_planned 1',
    'back plan_violated 1',
    'site event_not_planned 1',
    'site plan_violated 2',
  ])
  const broken = [
    'Ordered properties.mail additionalProperties 1',
    'Ordered properties.price type 1',
    'Shipped event unplanned 1',
  ]
  for (const name of ['back', 'site'])
    await until(async () => {
      const told = await violationsOf(name)
      return JSON.stringify([...told].sort()) === JSON.stringify(broken)
    }, `the violations of ${name}`)
  const { audiences } = await ask<{ readonly audiences: readonly { readonly members: number }[] }>(
    'audiences',
  )
  expect(audiences.map(({ members }) => members)).toEqual([0])
  expect(receiver.requests).toHaveLength(2)
})
