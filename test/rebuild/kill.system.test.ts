// Rebuilds of a whole Millrace that is killed with -9 again and again.
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, expect, test } from 'vitest'
import { ownFolder } from '../support/folder.ts'
import { type MillraceProcess, removeDataDir, startProcess } from '../support/process.ts'
import { seed } from '../support/seed.ts'
import { seeded } from '../support/seeded.ts'
import { until } from '../support/until.ts'
import { fileAudiences } from './scene.ts'

const dataDir = await ownFolder('rebuild')
const processes: MillraceProcess[] = []

afterAll(async () => {
  for (const millrace of processes) await millrace.kill9()
  await removeDataDir(dataDir)
})

const start = async (): Promise<MillraceProcess> => {
  const millrace = await startProcess({ dataDir, time: 'running' })
  processes.push(millrace)
  return millrace
}

const file = {
  workspaces: [
    {
      name: 'shop',
      sources: [
        { name: 'web', class: 'server', writeKey: 'wk_rebuild_web' },
        { name: 'app', class: 'server', writeKey: 'wk_rebuild_app' },
      ],
      audiences: fileAudiences,
    },
  ],
}

const ask = async (millrace: MillraceProcess, what: string, body?: unknown) => {
  const [method = '', path = ''] = what.split(' ')
  const response = await fetch(new URL(path, millrace.adminUrl), {
    method,
    headers: {
      authorization: `Bearer ${millrace.token}`,
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  })
  // biome-ignore lint/suspicious/noExplicitAny: tests look into answers of any form
  return (await response.json()) as any
}

const send = async (millrace: MillraceProcess, writeKey: string, batch: readonly object[]) => {
  const post = () =>
    fetch(`${millrace.collectUrl}/v1/batch`, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        authorization: `Basic ${Buffer.from(`${writeKey}:`).toString('base64')}`,
      },
      body: JSON.stringify({ batch }),
    })
  // A machine that hangs makes it shed load, as it should.
  await until(async () => (await post()).status === 200, 'a batch is taken')
}

const ended = async (millrace: MillraceProcess, id: number) => {
  const deadline = performance.now() + 120_000
  for (;;) {
    const found = await ask(millrace, `GET /admin/v1/rebuilds/${id}`)
    if (!['requested', 'folding', 'comparing', 'swapping'].includes(found.state)) return found
    if (performance.now() > deadline)
      throw new Error(`rebuild ${id} goes on: ${JSON.stringify(found)}`)
    await sleep(50)
  }
}

test(`killed at random, a rebuild is taken up again, and live goes on with what it swapped in (SEED=${seed})`, async () => {
  const random = seeded(seed)
  const pick = (of: number) => Math.floor(random() * of)
  let millrace = await start()
  await ask(millrace, 'POST /admin/v1/apply', file)
  const live = async (calls: number) => {
    for (let sent = 0; sent < calls; sent += 100) {
      const batch = Array.from({ length: 100 }, () => {
        const [userId, anonymousId] = [`u${pick(150)}`, `a${pick(200)}`]
        const kind = random()
        if (kind < 0.3) return { type: 'track', event: 'Ordered', anonymousId }
        if (kind < 0.7) return { type: 'track', event: 'Ordered', userId }
        return { type: 'identify', userId, anonymousId, traits: { at: pick(9) } }
      })
      await send(millrace, pick(2) === 0 ? 'wk_rebuild_web' : 'wk_rebuild_app', batch)
    }
  }
  await live(3_000)
  for (let kills = 0; kills < 4; kills++) {
    await ask(millrace, 'POST /admin/v1/rebuilds')
    await sleep(pick(1_500))
    await millrace.kill9()
    millrace = await start()
    await live(200)
  }
  const { rebuilds } = await ask(millrace, 'GET /admin/v1/rebuilds')
  for (const { id } of rebuilds)
    expect(await ended(millrace, id)).toMatchObject({
      state: 'swapped',
      differing: 0,
      reason: null,
    })
  await live(500)
  const { id } = await ask(millrace, 'POST /admin/v1/rebuilds', { verifyOnly: true })
  expect(await ended(millrace, id)).toMatchObject({
    state: 'verified',
    differences: [],
    users: expect.any(Number),
  })
}, 900_000)
