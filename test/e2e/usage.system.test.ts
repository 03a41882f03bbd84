// Usage of a whole Millrace that is killed with -9 under load, over the end of a month.
import { afterAll, expect, test } from 'vitest'
import { ownFolder } from '../support/folder.ts'
import { trackedOf } from '../support/naive-usage.ts'
import { type MillraceProcess, removeDataDir, startProcess } from '../support/process.ts'
import { seeded } from '../support/seeded.ts'
import { until } from '../support/until.ts'

const dataDir = await ownFolder('usage')
const processes: MillraceProcess[] = []

afterAll(async () => {
  for (const millrace of processes) await millrace.kill9()
  await removeDataDir(dataDir)
})

const trackingPlan = { mode: 'block', unplanned: 'forbid', events: { Planned: {} } }
const file = {
  workspaces: [
    {
      name: 'shop',
      grandfathered: true,
      sources: [
        { name: 'backend', class: 'server', writeKey: 'wk_backend', trackingPlan },
        { name: 'web', class: 'web', writeKey: 'wk_usage_web', trackingPlan },
      ],
    },
  ],
}

const startAt = async (time: string) => {
  const millrace = await startProcess({ dataDir, time: new Date(time) })
  processes.push(millrace)
  return millrace
}

const admin = async (millrace: MillraceProcess, path: string, body?: unknown) => {
  const response = await fetch(new URL(path, millrace.adminUrl), {
    method: body === undefined ? 'GET' : 'POST',
    headers: {
      authorization: `Bearer ${millrace.token}`,
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  })
  expect(response.status).toBe(200)
  // biome-ignore lint/suspicious/noExplicitAny: tests look into answers of any form
  return response.json() as Promise<any>
}

/** Whether it was answered 200. */
const send = async (
  millrace: MillraceProcess,
  batch: readonly object[],
  writeKey = 'wk_backend',
) => {
  const response = await fetch(`${millrace.collectUrl}/v1/batch`, {
    method: 'POST',
    headers: { authorization: `Basic ${Buffer.from(`${writeKey}:`).toString('base64')}` },
    body: JSON.stringify({ batch }),
  }).catch(() => null)
  return response?.status === 200
}

const random = seeded(20_260_131)
const one = (of: readonly (string | undefined)[]) => of[Math.floor(random() * of.length)]
let made = 0

const aCall = () => {
  const type = one(['track', 'track', 'page', 'identify', 'alias'])
  const n = Math.floor(random() * 120)
  const userId = type === 'alias' ? `u${n}` : one([`u${n}`, undefined, undefined])
  const anonymousId = userId === undefined ? `a${n}` : one([`a${n}`, undefined])
  return {
    type,
    messageId: `m${++made}`,
    ...(type === 'track' ? { event: one(['Planned', 'Planned', 'Unheard Of']) } : {}),
    ...(userId === undefined ? {} : { userId }),
    ...(anonymousId === undefined ? {} : { anonymousId }),
    ...(type === 'alias' ? { previousId: `a${Math.floor(random() * 120)}` } : {}),
  }
}

type Sent = ReturnType<typeof aCall>

const expected = (calls: readonly Sent[], month: string) => ({
  calls: calls.length,
  ...trackedOf(
    [
      calls.map((call) => ({
        type: call.type ?? '',
        messageId: call.messageId,
        workspaceId: 1,
        sourceId: 1,
        userId: call.userId ?? null,
        anonymousId: call.anonymousId ?? null,
        previousId: call.previousId ?? null,
        receivedAt: Date.parse(`${month}-01`),
      })),
    ],
    1,
  )[month],
})

const usage = (millrace: MillraceProcess) =>
  admin(millrace, '/admin/v1/usage?workspaceId=2&from=2026-01-01&until=2026-03-01')

test('killed under load again and again, every call and every id is metered once', async () => {
  let millrace = await startAt('2026-01-31T23:59:00Z')
  await admin(millrace, '/admin/v1/apply', file)
  const january: Sent[] = []
  let waiting: (readonly Sent[])[] = []
  for (const killAfter of [3, 11, 7]) {
    waiting.push(...Array.from({ length: 12 }, () => Array.from({ length: 25 }, aCall)))
    january.push(...waiting.slice(-12).flat())
    let settled = 0
    const results = waiting.map(async (batch) => {
      const isAnswered = await send(millrace, batch)
      settled += 1
      return isAnswered ? [] : [batch]
    })
    await until(() => settled >= killAfter)
    await millrace.kill9()
    waiting = (await Promise.all(results)).flat()
    millrace = await startAt('2026-01-31T23:59:30Z')
  }
  for (const batch of waiting) await until(() => send(millrace, batch))
  await millrace.setTime(new Date('2026-02-01T00:00:01Z'))
  const february = Array.from({ length: 200 }, aCall)
  await until(() => send(millrace, february))
  const webOnly = [{ type: 'track', userId: 'u-web', event: 'Unheard Of' }]
  await until(() => send(millrace, webOnly, 'wk_usage_web'))
  await until(async () => (await usage(millrace)).months[1].calls >= february.length)
  await until(async () => (await usage(millrace)).months[0].calls >= january.length)
  expect((await usage(millrace)).months).toMatchObject([
    { month: '2026-01', ...expected(january, '2026-01') },
    { month: '2026-02', ...expected(february, '2026-02') },
  ])
  const filtered = february.filter(({ event }) => event === 'Unheard Of').length
  const metrics = await (await fetch(new URL('/metrics', millrace.adminUrl))).text()
  const shown = /^millrace_pipeline_calls_total\{source_id="2".*event_not_planned"\} (\d+)$/m.exec(
    metrics,
  )
  // Also those sent again after the last kill.
  expect(Number(shown?.[1])).toBeGreaterThanOrEqual(filtered)
  await millrace.stop()
  millrace = await startAt('2026-02-01T00:00:02Z')
  const { counts } = await admin(millrace, '/admin/v1/pipeline?hours=1')
  expect(counts).toContainEqual(
    expect.objectContaining({
      source: 'backend',
      step: 'filtered',
      reason: 'event_not_planned',
      type: 'track',
      calls: expect.any(Number),
    }),
  )
  expect(counts).toContainEqual(
    expect.objectContaining({ source: 'web', step: 'filtered', calls: 1 }),
  )
})
