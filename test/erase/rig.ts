// Erasing as a whole on a real database and the log in memory: projector, eraser and relay, under one clock.

import pino from 'pino'
import type { Audience } from '../../src/domain/configuration.ts'
import type { Outbound } from '../../src/domain/message.ts'
import { type Asked, requestDeletion } from '../../src/erase/ask.ts'
import { startErase } from '../../src/erase/erase.ts'
import { openSuppressions } from '../../src/erase/suppressions.ts'
import { openCodecs } from '../../src/log/avro.ts'
import type { Appender } from '../../src/log/log.ts'
import type { Partitions } from '../../src/log/memory.ts'
import type { Pool } from '../../src/postgres/sql.ts'
import type { ProjectLimits } from '../../src/project/limits.ts'
import type { Running } from '../../src/running.ts'
import { startSync } from '../../src/sync/sync.ts'
import { aRig, codec, until } from '../project/rig.ts'
import { aDestination, aSource, to } from '../support/configuration.ts'

const codecs = await openCodecs({})

export const sources = [1, 2, 3].map((id) =>
  aSource({ id, name: `source ${id}`, writeKey: `wk${id}`, secretKeyHash: `hash${id}` }),
)

/** Source 1 has two destinations, one of them shared with source 2; source 3 has one of its own. */
export const destinations = [
  aDestination({ id: 1, name: 'one', sourceIds: new Set([1]) }),
  aDestination({ id: 2, name: 'both', sourceIds: new Set([1, 2]) }),
  aDestination({ id: 3, name: 'other', sourceIds: new Set([3]) }),
  aDestination({ id: 4, name: 'off', sourceIds: new Set([1]), enabled: false }),
  aDestination({ id: 5, name: 'nowhere', sourceIds: new Set([1]), webhooks: to() }),
]

const tables = `deletion_request, suppression, process, parked, parked_body, parked_erasure, dead,
  attempt, outbox, debugger_entry, delivery_ledger, sync_run, sync_schedule, sync_destination`

type Over = { readonly pool?: Pool; readonly appender?: Appender }

export const openErasing = async (
  pool: Pool,
  audiences: readonly Audience[] = [],
  partitions?: Partitions,
) => {
  await pool.query(`truncate ${tables} cascade`)
  await pool.query('update outbox_shard set seq = 0')
  await pool.query('update relay set epoch = 0, bounds = null')
  const rig = await aRig(pool, audiences, partitions)
  rig.live.replace({ sources, destinations, audiences })
  const running: Running[] = []
  const suppressions = await openSuppressions({
    sql: pool,
    limits: { pollEveryMs: 20 },
    onError: () => undefined,
  })
  const appender = rig.log.appender()
  const outbound = async (): Promise<readonly Outbound[]> => {
    const source = rig.log.source()
    const found: Outbound[] = []
    for (const [partition, { start: from, end }] of (await source.bounds('outbound')).entries())
      for await (const { entries } of source.read({
        topic: 'outbound',
        partition,
        from,
        until: end,
      }))
        found.push(...(await codecs.outbound.decode(entries.map(({ value }) => value))))
    return found
  }
  const project = (limits: Partial<ProjectLimits> = {}) => {
    const stage = rig.start({ suppressions, limits })
    running.push(stage)
    return stage
  }
  return {
    ...rig,
    suppressions,
    outbound,
    project,
    erase: (over: Over = {}, pollMs = 5) => {
      const stage = startErase({
        ...rig.deps,
        appender,
        logger: pino({ level: process.env['TEST_LOG'] ?? 'silent' }),
        ...over,
        limits: { pollMs, pauseMaxMs: pollMs },
      })
      // One that is to be killed never ends.
      if (over.pool === undefined) running.push(stage)
      return stage
    },
    relay: () => {
      const { pool: own, live, clock, logger } = rig.deps
      const stage = startSync({
        ...{ pool: own, live, clock, logger, appender, codecs },
        source: rig.log.source(),
        limits: { standbyMs: 20, pollMs: 10 },
      })
      running.push(stage)
      return stage
    },
    /** By an operator; the request's id. */
    ask: async (over: Partial<Asked> & Pick<Asked, 'ids'>): Promise<number> => {
      const asked = await pool.transaction((tx) =>
        requestDeletion(tx, {
          ...{ workspaceId: 1, kind: 'delete_only', idempotencyKey: null },
          createdAt: rig.clock(),
          ...over,
        }),
      )
      if (!('id' in asked)) throw new Error(asked.outcome)
      return asked.id
    },
    step: async (id: number): Promise<string> => {
      const { rows } = await pool.query<{ step: string }>(
        'select step from deletion_request where id = $1',
        [id],
      )
      return rows[0]?.step ?? 'none'
    },
    /** And goes by its suppressions here, as in every process that has told so. */
    reaches: (id: number, step: string) =>
      until(`request ${id} is ${step}`, async () => {
        const { rows } = await pool.query<{ step: string; version: bigint | null }>(
          'select step, suppression_version as version from deletion_request where id = $1',
          [id],
        )
        return rows[0]?.step === step && suppressions.version() >= (rows[0].version ?? 0n)
      }),
    stop: async () => {
      await Promise.allSettled(running.splice(0).map((each) => each.stop()))
      await suppressions.close()
    },
  }
}

export type Erasing = Awaited<ReturnType<typeof openErasing>>

export { codec, until }
