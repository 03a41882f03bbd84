// The replay stage beside delivery: one memory log, a real database, real receivers, a clock the test turns.
import { pino } from 'pino'
import { afterEach } from 'vitest'
import {
  findReplay,
  insertReplay,
  type Replay,
  steerReplay,
  type Wish,
} from '../../src/admin/replay-store.ts'
import type { Message } from '../../src/domain/message.ts'
import { nobodySuppressed } from '../../src/domain/suppression.ts'
import { openCodecs } from '../../src/log/avro.ts'
import type { Appender } from '../../src/log/log.ts'
import type { ReplayDeps } from '../../src/replay/deps.ts'
import { startReplay } from '../../src/replay/replay.ts'
import type { Running } from '../../src/running.ts'
import { useRig } from '../deliver/rig.ts'
import type { TestLive } from '../support/configuration.ts'
import { until } from '../support/until.ts'

export type Line = ReturnType<Awaited<ReturnType<typeof useRig>>['open']>

export const useReplays = async () => {
  const rig = await useRig()
  const { pool } = rig.database
  const codecs = await openCodecs({})
  const running: Running[] = []
  afterEach(async () => {
    for (const one of running.splice(0)) await one.stop()
  })
  const startReplays = (line: Line, live: TestLive, over: Partial<ReplayDeps> = {}): Running => {
    const source = line.log.source()
    const started = startReplay({
      history: source,
      source,
      appender: line.log.appender() satisfies Appender,
      codecs,
      pool,
      live,
      clock: () => new Date(line.now()),
      logger: pino({ level: 'silent' }),
      suppressions: nobodySuppressed,
      ...over,
      limits: { ...quick, ...over.limits },
    } as Parameters<typeof startReplay>[0])
    running.push(started)
    return started
  }
  const ask = (line: Line, over: Partial<Wish> = {}): Promise<number> =>
    insertReplay(pool, {
      workspaceId: 1,
      destinationId: 1,
      actor: 'test',
      by: 'receivedAt',
      since: new Date(line.now() - 30 * 86_400_000),
      until: new Date(line.now() + 60_000),
      sourceIds: [1],
      types: null,
      events: null,
      userIds: null,
      anonymousIds: null,
      reasons: null,
      ratePerSecond: 1_000_000,
      at: new Date(line.now()),
      ...over,
    }) as Promise<number>
  const found = async (id: number) => (await findReplay(pool, id)) as Replay
  /** Time goes on while it is waited for: a rate is a matter of the clock. */
  const reached = (line: Line, id: number, state: Replay['state']) =>
    until(async () => {
      line.setNow(line.now() + 1_000)
      const replay = await found(id)
      return (
        replay.state === state && (replay.isSettled || state === 'running' || state === 'paused')
      )
    }, `replay ${id} is ${state}`)
  const steer = (line: Line, id: number, to: 'paused' | 'running' | 'cancelled') =>
    steerReplay(pool, {
      id,
      from: to === 'running' ? ['paused'] : ['running', 'paused', 'draining'],
      to,
      at: new Date(line.now()),
    })
  return { ...rig, pool, codecs, startReplays, ask, found, reached, steer, insertReplay }
}

const quick = { pollMs: 20, paceMs: 2, standbyMs: 20 }

/** What was received, by the property every call of the rig has. */
export const numbersOf = (requests: readonly { readonly json: Record<string, unknown> }[]) =>
  requests.map(({ json }) => (json['properties'] as { n: number }).n)

export const numberOf = ({ body }: Message): number =>
  (JSON.parse(Buffer.from(body).toString()) as { properties: { n: number } }).properties.n
