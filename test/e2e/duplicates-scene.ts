// Two whole processes that share one log and database: what is sent again across kills and rebalances counts once.
import { expect } from 'vitest'
import type { Pool } from '../../src/postgres/sql.ts'
import { applyFile, countMetered } from '../support/far-end.ts'
import { type MillraceProcess, type ProcessOptions, startProcess } from '../support/process.ts'
import { openReceiver, type Receiver } from '../support/receiver.ts'
import { until } from '../support/until.ts'

export const minute = 60_000
export const hour = 60 * minute
export const start = Date.UTC(2026, 2, 1, 0, 10)

const keys = { web: 'wk_dup_web', app: 'wk_dup_app', other: 'wk_dup_other' } as const
export type SourceName = keyof typeof keys

const destination = (sources: readonly string[], url: string) => ({
  name: 'Hooks',
  type: 'webhook',
  sources,
  sharedSecret: 's3cret',
  webhooks: [{ url, headers: {} }],
})

const aSource = (name: SourceName) => ({ name, class: 'server', writeKey: keys[name] })

const fileFor = (url: string) => ({
  workspaces: [
    {
      name: 'shop',
      sources: [aSource('web'), aSource('app')],
      destinations: [destination(['web', 'app'], url)],
    },
    { name: 'garden', sources: [aSource('other')], destinations: [destination(['other'], url)] },
  ],
})

export type Scene = {
  readonly receiver: Receiver
  /** Starts a process whose clock stands at this instant. */
  start(at: number): Promise<MillraceProcess>
  /** Sends a call for each id, each of a user of its own; all are answered 200. */
  send(to: MillraceProcess, source: SourceName, ids: readonly string[]): Promise<void>
  /** Both readers have saved that they are done with everything sent so far. */
  settled(): Promise<void>
  /** Partitions of each reader that changed owners since the last time this was asked. */
  moved(): Promise<Readonly<Record<string, number>>>
  /** How often each id was posted, by source. */
  posts(): ReadonlyMap<string, number>
  metered(by: MillraceProcess, at: number): Promise<Readonly<Record<string, number>>>
  close(): Promise<void>
}

type Options = Pick<ProcessOptions, 'databaseUrl' | 'kafkaBrokers' | 'env'> & {
  readonly pool: Pool
  /** The next offset of each partition of `calls`. */
  readonly ends: () => Promise<readonly bigint[]>
}

export const openScene = async ({ pool, ends, ...options }: Options): Promise<Scene> => {
  const receiver = await openReceiver({ secret: 's3cret' })
  const processes: MillraceProcess[] = []
  let isApplied = false
  const epochs = new Map<string, bigint>()
  const positions = async () => {
    const { rows } = await pool.query<{
      readonly reader: string
      readonly partition: number
      readonly next: bigint
      readonly epoch: bigint
    }>("select reader, partition, next, epoch from position where topic = 'calls'")
    return rows
  }
  return {
    receiver,
    start: async (at) => {
      const millrace = await startProcess({ ...options, time: new Date(at) })
      processes.push(millrace)
      if (!isApplied) await applyFile(millrace, fileFor(receiver.url))
      isApplied = true
      await until(() => isKnown(millrace), 'the collector knows the sources')
      return millrace
    },
    send: async (to, source, ids) => {
      const response = await fetch(new URL('/v1/batch', to.collectUrl), {
        method: 'POST',
        headers: { authorization: `Basic ${btoa(`${keys[source]}:`)}` },
        body: JSON.stringify({
          batch: ids.map((id) => ({
            type: 'track',
            messageId: id,
            userId: `user of ${id}`,
            event: 'Order Completed',
            properties: { id, source },
          })),
        }),
      })
      expect(await response.text()).toBe('{"success":true}')
    },
    settled: async () => {
      const wanted = await ends()
      await until(
        async () => {
          const rows = await positions()
          return ['project', 'deliver'].every((reader) =>
            wanted.every((end, partition) =>
              rows.some(
                (row) =>
                  row.reader === reader && row.partition === partition && BigInt(row.next) >= end,
              ),
            ),
          )
        },
        'both readers are done',
        120_000,
      )
    },
    moved: async () => {
      const counts: Record<string, number> = { project: 0, deliver: 0 }
      for (const { reader, partition, epoch } of await positions()) {
        const name = `${reader} ${partition}`
        if (epochs.get(name) !== epoch) counts[reader] = (counts[reader] ?? 0) + 1
        epochs.set(name, epoch)
      }
      return counts
    },
    posts: () => {
      const counts = new Map<string, number>()
      for (const { json } of receiver.requests) {
        const { id, source } = json['properties'] as {
          readonly id: string
          readonly source: string
        }
        counts.set(`${source} ${id}`, (counts.get(`${source} ${id}`) ?? 0) + 1)
      }
      return counts
    },
    metered: (by, at) => countMetered(by, new Date(at)),
    close: async () => {
      for (const millrace of processes) await millrace.kill9()
      await receiver.close()
    },
  }
}

const isKnown = async ({ collectUrl }: MillraceProcess) => {
  const { status } = await fetch(new URL('/v1/batch', collectUrl), {
    method: 'POST',
    headers: { authorization: `Basic ${btoa(`${keys.other}:`)}` },
    body: '{"batch":[]}',
  })
  return status === 200
}

/** Each of these once, and nothing else. */
export const once = (
  ...ids: readonly (readonly [source: SourceName, ids: readonly string[]])[]
): Map<string, number> =>
  new Map(ids.flatMap(([source, of]) => of.map((id) => [`${source} ${id}`, 1] as const)))

export const named = (prefix: string, count: number): readonly string[] =>
  Array.from({ length: count }, (_, at) => `${prefix}${at}`)

const sorted = (counts: ReadonlyMap<string, number>) =>
  [...counts].sort(([a], [b]) => (a < b ? -1 : 1))

/** Waits for what must come; what came besides it is then seen, because it would have come before. */
export const expectPosts = async (scene: Scene, wanted: ReadonlyMap<string, number>) => {
  await scene.settled()
  await until(() => [...wanted.keys()].every((key) => scene.posts().has(key)), 'all are posted')
  expect(sorted(scene.posts())).toEqual(sorted(wanted))
}

/** Enough that every partition has some. */
const users = 80

const bothMoved = async (scene: Scene, what: string) => {
  const moved = new Set<string>()
  await until(
    async () => {
      for (const [reader, count] of Object.entries(await scene.moved()))
        if (count > 0) moved.add(reader)
      return moved.size === 2
    },
    what,
    120_000,
  )
}

/** The same on the log in Postgres and on Kafka. */
export const retryAcrossRebalances = async (scene: Scene): Promise<void> => {
  const early = named('early', users)
  const first = await scene.start(start)
  await scene.send(first, 'web', early)
  await expectPosts(scene, once(['web', early]))
  await scene.moved()

  const almostADay = start + 24 * hour - minute
  const second = await scene.start(almostADay)
  await first.setTime(new Date(almostADay))
  await bothMoved(scene, 'the second takes partitions of both readers')
  await scene.send(second, 'web', early)
  const late = named('late', users)
  await scene.send(first, 'web', late)
  await expectPosts(scene, once(['web', early], ['web', late]))

  await first.kill9()
  await bothMoved(scene, 'the second takes the rest')
  await scene.send(second, 'web', [...early, ...late])
  const last = named('last', users)
  await scene.send(second, 'web', last)
  await expectPosts(scene, once(['web', early], ['web', late], ['web', last]))
  expect(await scene.metered(second, almostADay)).toMatchObject({ 'shop/web': 3 * users })
}
