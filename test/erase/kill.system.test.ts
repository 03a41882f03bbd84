// Two whole processes on one database: one of them is killed with -9 while users are deleted, again and again.
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, expect, test } from 'vitest'
import { findTraces } from '../../src/erase/traces.ts'
import { acceptsWriteKey, apply } from '../support/applied.ts'
import { cloneDatabase } from '../support/database.ts'
import { dumpedTraces } from '../support/dump.ts'
import { type MillraceProcess, startProcess } from '../support/process.ts'
import { openReceiver } from '../support/receiver.ts'
import { seed } from '../support/seed.ts'
import { seeded } from '../support/seeded.ts'
import { until } from '../support/until.ts'

const { pool, url: databaseUrl } = await cloneDatabase()
const well = await openReceiver({ secret: 'secret' })
const ill = await openReceiver({ secret: 'secret' })
const processes: MillraceProcess[] = []

afterAll(async () => {
  for (const millrace of processes) await millrace.kill9()
  await well.close()
  await ill.close()
})

const longMs = 180_000
const users = 40
const groups = 4
const hour = 3_600_000
const nameOf = (user: number) => `goner-${user}-x`

const file = {
  workspaces: [
    {
      name: 'shop',
      sources: ['web', 'app'].map((name) => ({
        name,
        class: 'server',
        writeKey: `wk_erase_${name}`,
      })),
      destinations: [
        { name: 'Both', sources: ['web', 'app'], webhooks: [{ url: well.url }] },
        { name: 'Web', sources: ['web'], webhooks: [{ url: well.url.replace('/hook', '/web') }] },
        { name: 'Ill', sources: ['app'], webhooks: [{ url: ill.url }] },
      ].map((destination) => ({ ...destination, sharedSecret: 'secret' })),
    },
  ],
}

let now = Date.UTC(2026, 0, 10)

const start = async (roles: string) => {
  const millrace = await startProcess({
    databaseUrl,
    time: new Date(now),
    env: { MILLRACE_ROLES: roles, MILLRACE_PARTITIONS: '3' },
  })
  processes.push(millrace)
  return millrace
}

const ask = async ({ adminUrl, token }: MillraceProcess, path: string, body?: object) => {
  const response = await fetch(new URL(path, adminUrl), {
    method: body === undefined ? 'GET' : 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  })
  expect(response.ok, await response.clone().text()).toBe(true)
  // biome-ignore lint/suspicious/noExplicitAny: tests look into answers of any form
  return (await response.json()) as any
}

const shopOf = async (millrace: MillraceProcess): Promise<number> =>
  (await ask(millrace, '/admin/v1/workspaces')).workspaces.find(
    ({ name }: { name: string }) => name === 'shop',
  ).id

const send = async (collectUrl: string, source: string, batch: readonly object[]) => {
  const response = await fetch(`${collectUrl}/v1/batch`, {
    method: 'POST',
    headers: { authorization: `Basic ${Buffer.from(`wk_erase_${source}:`).toString('base64')}` },
    body: JSON.stringify({ batch }),
  })
  expect(response.status).toBe(200)
}

test('killed at random, every user is deleted, and each affected source is told exactly once', async () => {
  const random = seeded(seed)
  // Posts are made by the one that stays: what a killed one had posted would come twice, as HTTP has it.
  const stays = await start('project,sync,deliver,admin')
  let mortal = await start('collect,project,sync,admin')
  let isOver = false
  // Minutes of real waiting in seconds; heartbeats are many times denser than what they are missed after.
  const time = (async () => {
    while (!isOver) {
      now += 1_000
      // One that is just being killed takes no time.
      for (const each of [stays, mortal]) await each.setTime(new Date(now)).catch(() => undefined)
      await sleep(150)
    }
  })()
  let isIll = true
  ill.reply(() => (isIll ? 503 : 200))
  await apply(stays, file)
  const workspaceId = await shopOf(stays)
  for (const source of ['web', 'app'])
    await acceptsWriteKey(mortal.collectUrl, `wk_erase_${source}`)
  const all = Array.from({ length: users }, (_, user) => user)
  const callsOf = (user: number) => [
    { type: 'identify', userId: nameOf(user), anonymousId: `visit-${nameOf(user)}` },
    { type: 'track', userId: nameOf(user), event: 'Ordered' },
  ]
  await send(mortal.collectUrl, 'web', all.flatMap(callsOf))
  // Every second user was seen by another source as well.
  const seenTwice = all.filter((user) => user % 2 === 0)
  await send(mortal.collectUrl, 'app', seenTwice.flatMap(callsOf))
  await until(() => well.requests.length >= 2 * 2 * users, 'all that can be is delivered', longMs)
  await until(
    async () => (await pool.query('select from parked')).rows.length > 0,
    'the rest is parked',
    longMs,
  )
  expect(await dumpedTraces(pool, ['goner-'])).toContain('public.identity')
  for (let group = 0; group < groups; group++) {
    const leaving = all.filter((user) => user % groups === group)
    const half = Math.ceil(leaving.length / 2)
    await ask(stays, '/admin/v1/deletions', {
      workspaceId,
      userIds: leaving.slice(0, half).map(nameOf),
    })
    const anonymousIds = leaving.slice(half).map((user) => `visit-${nameOf(user)}`)
    await ask(stays, '/admin/v1/deletions', { workspaceId, anonymousIds })
    await sleep(random() * 3_000)
    await mortal.kill9()
    mortal = await start('collect,project,sync,admin')
  }
  const states = async (): Promise<readonly string[]> =>
    (await ask(stays, '/admin/v1/deletions')).deletions.map(({ state }: { state: string }) => state)
  await until(
    async () => (await states()).every((state) => state === 'finished'),
    `all requests are finished (SEED=${seed})`,
    longMs,
  )
  expect(await states()).toHaveLength(2 * groups)
  isIll = false
  const toldTo = (receiver: typeof well, path: string) =>
    receiver.requests.filter(({ json, path: at }) => json['type'] === 'delete' && at === path)
  const firstWell = ill.requests.length
  const told = () => ({
    both: toldTo(well, '/hook').length,
    web: toldTo(well, '/web').length,
    ill: new Set(
      ill.requests
        .slice(firstWell)
        .flatMap(({ json }) => (json['type'] === 'delete' ? [json['userId']] : [])),
    ).size,
  })
  // One for each source: the destination of both hears twice of who was seen by both.
  const owed = { both: users + seenTwice.length, web: users, ill: seenTwice.length }
  await until(
    () => Object.entries(owed).every(([name, count]) => told()[name as keyof typeof owed] >= count),
    `all are told (SEED=${seed}): ${JSON.stringify(told())}`,
    longMs,
  )
  await until(
    async () =>
      (await pool.query('select from outbox union all select from parked')).rows.length === 0,
    'nothing is on its way',
    longMs,
  )
  expect([told(), seed]).toEqual([owed, seed])
  const of = (path: string) =>
    toldTo(well, path)
      .map(({ json }) => json['userId'])
      .toSorted()
  expect(of('/web')).toEqual(all.map(nameOf).toSorted())
  expect(of('/hook')).toEqual([...all, ...seenTwice].map(nameOf).toSorted())
  // Nothing of who was deleted was sent once the receiver was well again, but that they were.
  expect(ill.requests.slice(firstWell).filter(({ json }) => json['type'] !== 'delete')).toEqual([])
  expect(well.badSignatures).toEqual([])
  // The bodies of notices that had to wait go with their hour, six hours later at the most.
  const left = async () => JSON.stringify(await findTraces(pool, 'goner'))
  const finishedAt = now
  while (now < finishedAt + 7 * hour && (await left()) !== '[]') {
    now += hour
    await stays.setTime(new Date(now))
    await sleep(500)
  }
  await until(async () => (await left()) === '[]', `no trace is left (SEED=${seed})`, longMs)
  // Not by what looks for traces itself: everything that the database holds, copied out.
  expect([await dumpedTraces(pool, ['goner-']), seed]).toEqual([[], seed])
  isOver = true
  await time
  await stays.stop()
}, 600_000)

test('a suppression is in force within five seconds in every process', async () => {
  const roles = { MILLRACE_ROLES: 'collect,project,admin', MILLRACE_PARTITIONS: '3' }
  const both = await Promise.all(
    [1, 2].map(() => startProcess({ databaseUrl, time: 'running', env: roles })),
  )
  processes.push(...both)
  const [first] = both as [MillraceProcess, MillraceProcess]
  await apply(first, file)
  const workspaceId = await shopOf(first)
  for (const { collectUrl } of both) await acceptsWriteKey(collectUrl, 'wk_erase_web')
  const dropped = async ({ adminUrl }: MillraceProcess) => {
    const text = await (await fetch(new URL('/metrics', adminUrl))).text()
    return text
      .split('\n')
      .filter((line) => /^millrace_pipeline_calls_total.*reason="suppressed"/.test(line))
      .reduce((sum, line) => sum + Number(line.split(' ').at(-1)), 0)
  }
  const asked = performance.now()
  await ask(first, '/admin/v1/deletions', {
    workspaceId,
    kind: 'suppress_only',
    userIds: ['unheard'],
  })
  const seconds = await Promise.all(
    both.map(async (each) => {
      await until(async () => {
        await send(each.collectUrl, 'web', [{ type: 'track', userId: 'unheard', event: 'Seen' }])
        await sleep(50)
        return (await dropped(each)) > 0
      }, 'its calls are dropped')
      return (performance.now() - asked) / 1_000
    }),
  )
  process.stdout.write(`in force after ${seconds.map((each) => each.toFixed(2)).join(' and ')} s\n`)
  // What a busy machine adds is on top.
  expect(Math.max(...seconds)).toBeLessThan(5 + 10)
  await Promise.all(both.map((each) => each.stop()))
}, 120_000)
