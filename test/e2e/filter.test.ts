// Filters from the file to the receiver: what they take out never arrives, is counted, and changes without a restart.
import { afterAll, expect, test } from 'vitest'
import { acceptsWriteKey, apply } from '../support/applied.ts'
import { cloneDatabase } from '../support/database.ts'
import { startProcess } from '../support/process.ts'
import { openReceiver } from '../support/receiver.ts'
import { until } from '../support/until.ts'

const [all, some] = [await openReceiver(), await openReceiver()]
const { url: databaseUrl } = await cloneDatabase()
const millrace = await startProcess({ databaseUrl, time: 'running' })

afterAll(async () => {
  await millrace.stop()
  await Promise.all([all.close(), some.close()])
})

const configuration = (filters: readonly object[]) => ({
  workspaces: [
    {
      name: 'shop',
      sources: [{ name: 'web', class: 'web', writeKey: 'wk_filter', ipPolicy: 'drop' }],
      destinations: [
        { name: 'Whole', webhooks: [{ url: all.url }] },
        { name: 'Some', webhooks: [{ url: some.url }], filters },
      ].map((destination) => ({ sources: ['web'], sharedSecret: 'secret', ...destination })),
    },
  ],
})

const send = async (path: string, body: object) => {
  const response = await fetch(`${millrace.collectUrl}${path}`, {
    method: 'POST',
    headers: { authorization: `Basic ${Buffer.from('wk_filter:').toString('base64')}` },
    body: JSON.stringify({ userId: 'u1', ...body }),
  })
  expect(response.status).toBe(200)
}

type Count = { readonly destination: string | null; readonly reason: string | null; calls: number }

const dropped = async (): Promise<number> => {
  const response = await fetch(`${millrace.adminUrl}/admin/v1/pipeline`, {
    headers: { authorization: `Bearer ${millrace.token}` },
  })
  const { counts } = (await response.json()) as { counts: readonly Count[] }
  return counts
    .filter(({ destination, reason }) => destination === 'Some' && reason === 'dropped')
    .reduce((sum, { calls }) => sum + calls, 0)
}

test('what a filter takes out never arrives, and is counted; a change holds without a restart', async () => {
  await apply(
    millrace,
    configuration([
      { kind: 'drop', if: { types: ['page'] } },
      { kind: 'block', paths: ['properties.mail', 'context.userAgent'] },
    ]),
  )
  await acceptsWriteKey(millrace.collectUrl, 'wk_filter')
  await send('/v1/page', { name: 'Home' })
  await send('/v1/track', { event: 'Paid', properties: { price: 5, mail: 'a@b.c' } })
  await send('/v1/screen', { name: 'Main' })
  const mine = ({ requests }: typeof all) =>
    requests.filter(({ json }) => json['userId'] === 'u1').map(({ json }) => json)
  await until(() => mine(all).length === 3 && mine(some).length === 2, 'both have theirs')
  expect(mine(all)).toMatchObject([
    { type: 'page', properties: { name: 'Home' } },
    { type: 'track', properties: { price: 5, mail: 'a@b.c' } },
    { type: 'screen', context: { userAgent: expect.any(String) } },
  ])
  const [track, screen] = mine(some)
  expect(track).toMatchObject({ type: 'track', properties: { price: 5 } })
  expect(JSON.stringify(mine(some))).not.toMatch(/a@b\.c|userAgent/)
  expect(screen).toMatchObject({ type: 'screen', name: 'Main' })
  expect([...all.badSignatures, ...some.badSignatures]).toEqual([])
  await until(async () => (await dropped()) === 1, 'the page is counted')

  await apply(millrace, configuration([]))
  let pages = 0
  await until(async () => {
    pages += 1
    await send('/v1/page', { name: `Page ${pages}` })
    return mine(some).some(({ type }) => type === 'page')
  }, 'pages arrive')
})
