// A whole process that is killed with -9 while it replays, again and again; then what the receiver got is counted.
import { expect } from 'vitest'
import { applyFile } from '../support/far-end.ts'
import type { MillraceProcess } from '../support/process.ts'
import type { Receiver } from '../support/receiver.ts'
import { seeded } from '../support/seeded.ts'
import { until } from '../support/until.ts'
import { numbersOf } from './rig.ts'

const writeKey = 'wk_replay_kill'
const calls = 2_000
const users = 97
const ratePerSecond = 400

type Scene = {
  readonly receiver: Receiver
  /** Also after a kill. */
  readonly start: () => Promise<MillraceProcess>
  readonly seed: number
  readonly kills: number
}

type Replay = {
  readonly id: number
  readonly state: string
  readonly sent: number
  readonly delivered: number
  readonly givenUp: number
  readonly duplicate: number
}

export const killWhileReplaying = async ({ receiver, start, seed, kills }: Scene) => {
  const random = seeded(seed)
  let millrace = await start()
  await applyFile(millrace, fileFor(receiver.url))
  await send(millrace)
  await until(() => receiver.requests.length >= calls, 'all calls are delivered', 120_000)
  receiver.requests.splice(0)
  const { destinations } = await ask<{ destinations: readonly { readonly id: number }[] }>(
    millrace,
    '/admin/v1/destinations',
  )
  const day = 86_400_000
  const { id } = await ask<Replay>(millrace, '/admin/v1/replays', {
    destinationId: destinations[0]?.id,
    since: new Date(Date.now() - day).toISOString(),
    ratePerSecond,
  })
  const shown = () => ask<Replay>(millrace, `/admin/v1/replays/${id}`)
  let targets = 0
  for (let kill = 0; kill < kills; kill += 1) {
    const target = Math.floor(((kill + random()) * calls) / (kills + 1)) + calls / 4
    targets += target
    await until(async () => (await shown()).sent >= target, `${target} are sent`, 120_000)
    await millrace.kill9()
    millrace = await start()
  }
  await until(async () => (await shown()).state === 'finished', 'the replay is finished', 180_000)
  expect(await shown()).toMatchObject({ sent: calls, delivered: calls, givenUp: 0, duplicate: 0 })
  const numbers = numbersOf(receiver.requests)
  const first = [...new Set(numbers)]
  expect(first.toSorted((a, b) => a - b)).toEqual(Array.from({ length: calls }, (_, n) => n))
  // What was posted in the last moment before a kill is posted again; a replay from its start would be far more.
  expect(numbers.length - calls).toBeLessThan(targets / 2)
  for (let user = 0; user < users; user += 1) {
    const own = first.filter((n) => n % users === user)
    expect(own, `u${user}`).toEqual(own.toSorted((a, b) => a - b))
  }
  expect(receiver.badSignatures).toEqual([])
}

const fileFor = (url: string) => ({
  workspaces: [
    {
      name: 'shop',
      sources: [{ name: 'web', class: 'server', writeKey }],
      destinations: [
        {
          name: 'Hooks',
          type: 'webhook',
          sources: ['web'],
          sharedSecret: 's3cret',
          webhooks: [{ url, headers: {} }],
        },
      ],
    },
  ],
})

const send = async ({ collectUrl }: MillraceProcess): Promise<void> => {
  const size = 100
  for (let from = 0; from < calls; from += size) {
    const batch = Array.from({ length: size }, (_, at) => ({
      type: 'track',
      userId: `u${(from + at) % users}`,
      event: 'Order Completed',
      properties: { n: from + at },
    }))
    const post = () =>
      fetch(`${collectUrl}/v1/batch`, {
        method: 'POST',
        headers: {
          'content-type': 'application/json',
          authorization: `Basic ${Buffer.from(`${writeKey}:`).toString('base64')}`,
        },
        body: JSON.stringify({ batch }),
      })
    // A collector learns of a new source within a moment.
    await until(async () => (await post()).status === 200, `calls from ${from} are taken`)
  }
}

const ask = async <T>(
  { adminUrl, token }: MillraceProcess,
  path: string,
  body?: object,
): Promise<T> => {
  const response = await fetch(adminUrl + path, {
    method: body ? 'POST' : 'GET',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    ...(body ? { body: JSON.stringify(body) } : {}),
  })
  const text = await response.text()
  expect(response.ok, text).toBe(true)
  return JSON.parse(text) as T
}
