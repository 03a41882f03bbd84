// Eighteen months of purchases imported by file, as a table, make the same users as the same sent over HTTP.
import { rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { loadPurchases, type Purchase } from '../acceptance/purchases.ts'
import { runCommand } from '../support/command.ts'
import { applyFile, countMetered, totalOf } from '../support/far-end.ts'
import { ownFolder } from '../support/folder.ts'
import { type MillraceProcess, removeDataDir, startProcess } from '../support/process.ts'
import { seed } from '../support/seed.ts'
import { until } from '../support/until.ts'

/** All 69,659 of them with a number this large. */
const rows = Number(process.env['IMPORT_ROWS'] ?? 12_000)

const folder = await ownFolder('import-purchases')
const dataDir = join(folder, 'data')
let millrace: MillraceProcess

afterAll(async () => {
  await millrace?.kill9()
  await removeDataDir(dataDir)
  await rm(folder, { recursive: true, force: true })
})

const event = { name: 'Order Completed' }

const workspace = (name: string) => ({
  name,
  sources: [{ name: 'past', class: 'server', writeKey: `wk_${name}` }],
  audiences: [
    { name: 'Often', where: { event, count: { op: 'gte', value: 3 } } },
    { name: 'Big', where: { event, sum: { prop: 'price', op: 'gte', value: 100 } } },
    {
      name: 'In January',
      where: {
        event: {
          ...event,
          window: { after: '1997-01-20T00:00:00Z', before: '1997-02-01T00:00:00Z' },
        },
        count: { op: 'gte', value: 1 },
      },
    },
  ],
  traits: [{ name: 'Spent', measure: { event, sum: { prop: 'price' } } }],
})

const mapping = {
  type: 'track',
  constants: { event: 'Order Completed' },
  columns: {
    customer: 'userId',
    date: 'timestamp',
    quantity: { to: 'properties.quantity', type: 'integer' },
    price: { to: 'properties.price', type: 'number' },
  },
}

const dayOf = ({ at }: Purchase) => new Date(at).toISOString().slice(0, 10)

const postAll = async (purchases: readonly Purchase[]): Promise<void> => {
  for (let from = 0; from < purchases.length; from += 500) {
    const batch = purchases.slice(from, from + 500).map((purchase) => ({
      type: 'track',
      event: 'Order Completed',
      userId: purchase.customer,
      timestamp: dayOf(purchase),
      properties: { quantity: purchase.quantity, price: purchase.price },
    }))
    const response = await fetch(`${millrace.collectUrl}/v1/import`, {
      method: 'POST',
      headers: { authorization: `Basic ${btoa('wk_http:')}`, 'content-type': 'application/json' },
      body: JSON.stringify({ batch }),
    })
    expect(response.status).toBe(200)
  }
}

const ask = async <T>(path: string): Promise<T> => {
  const response = await fetch(`${millrace.adminUrl}/admin/v1${path}`, {
    headers: { authorization: `Bearer ${millrace.token}` },
  })
  return (await response.json()) as T
}

type User = { readonly memberships: readonly Named[]; readonly computedTraits: unknown }
type Counted = Named & { readonly members: number }

type Named = { readonly id: number; readonly name: string }

/** What became of a workspace's users: who is in what, since which data, and what was computed. */
const usersOf = async (workspaceId: number, customers: readonly string[]) => {
  const seen: Record<string, unknown> = {}
  for (const customer of customers) {
    const user = await ask<User>(`/users/${customer}?workspaceId=${workspaceId}`)
    const { memberships } = user
    seen[customer] = [memberships.map(({ name }) => name).toSorted(), user.computedTraits]
  }
  return seen
}

test(`purchases by file equal purchases by HTTP (SEED=${seed})`, async () => {
  const { name, purchases: all } = loadPurchases(seed)
  const purchases = all.slice(0, rows)
  millrace = await startProcess({ dataDir, time: 'running' })
  await applyFile(millrace, { workspaces: [workspace('file'), workspace('http')] })
  const path = join(folder, 'purchases.csv')
  const table = purchases.map(
    (one) => `${one.customer},${dayOf(one)},${one.quantity},${one.price}\n`,
  )
  await writeFile(path, `customer,date,quantity,price\n${table.join('')}`)
  const command = runCommand(
    [
      ...['import', path, '--write-key', 'wk_file', '--map', JSON.stringify(mapping)],
      ...['--admin-url', millrace.adminUrl, '--admin-token', millrace.token],
    ],
    {},
  )
  await postAll(purchases)
  expect(await command.ended, command.err()).toBe(0)
  expect(command.out()).toBe(`purchases.csv: ${purchases.length} imported, 0 rejected\n`)
  await until(
    async () => totalOf(await countMetered(millrace)) >= 2 * purchases.length,
    `all of ${name} is projected`,
    300_000,
  )
  expect(await countMetered(millrace)).toEqual({
    'file/past': purchases.length,
    'http/past': purchases.length,
  })
  const { workspaces } = await ask<{ readonly workspaces: readonly Named[] }>('/workspaces')
  const idOf = (wanted: string) => workspaces.find((one) => one.name === wanted)?.id ?? 0
  const customers = [...new Set(purchases.map(({ customer }) => customer))].slice(0, 300)
  const byFile = await usersOf(idOf('file'), customers)
  expect(byFile).toEqual(await usersOf(idOf('http'), customers))
  // Something was decided, or nothing was compared.
  const told = JSON.stringify(byFile)
  for (const one of ['Often', 'Big', 'In January', '"spent":']) expect(told).toContain(one)
  const membersOf = async (workspaceId: number) => {
    const path = `/audiences?workspaceId=${workspaceId}`
    const { audiences } = await ask<{ readonly audiences: readonly Counted[] }>(path)
    return audiences.map((audience) => [audience.name, audience.members])
  }
  const members = await membersOf(idOf('file'))
  expect(members).toEqual(await membersOf(idOf('http')))
  expect(members.every(([, amount]) => Number(amount) > 0)).toBe(true)
}, 600_000)
