// Imports on a memory log and a database of their own, with a log that fails when it is told to.
import { randomUUID } from 'node:crypto'
import pino from 'pino'
import { collectLimits } from '../../src/collect/limits.ts'
import type { Configuration } from '../../src/domain/configuration.ts'
import type { JsonObject, Message } from '../../src/domain/message.ts'
import { uncounted } from '../../src/domain/pipeline.ts'
import { nobodySuppressed } from '../../src/domain/suppression.ts'
import { Fault } from '../../src/fault.ts'
import type { ImportDeps } from '../../src/import/deps.ts'
import { type Imports, openImports } from '../../src/import/imports.ts'
import { unpaced } from '../../src/import/pace.ts'
import { findImport, type Import, insertImport, type NewImport } from '../../src/import/store.ts'
import { openCodecs } from '../../src/log/avro.ts'
import type { Appender } from '../../src/log/log.ts'
import { memoryLog } from '../../src/log/memory.ts'
import type { Pool } from '../../src/postgres/sql.ts'
import { aLive } from '../support/configuration.ts'

const { call: codec } = await openCodecs({})

export type ImportRig = {
  readonly imports: Imports
  /** Another process's, on the same log and database. */
  another(): Imports
  readonly live: { now(): Configuration }
  make(over?: Partial<NewImport>): Promise<Import>
  now(id: number): Promise<Import>
  /** Of `calls.import`, partition by partition. */
  appended(): Promise<readonly Message[]>
  bodies(): Promise<readonly JsonObject[]>
  /** The next appends: taken, refused, taken without an answer, or only the first few of their entries. */
  behave(how: 'take' | 'refuse' | 'unheard' | { readonly only: number }): void
  setTime(at: Date): void
}

export const importRig = (pool: Pool, over: Partial<ImportDeps> = {}): ImportRig => {
  let time = new Date('2026-11-01T12:00:00Z')
  const clock = () => time
  const log = memoryLog({ clock, partitions: 3 })
  const history = log.source()
  const inner = log.appender()
  let how: Parameters<ImportRig['behave']>[0] = 'take'
  const appender: Appender = {
    append: async (topic, entries) => {
      if (how === 'refuse') throw unavailable()
      if (how === 'take') return inner.append(topic, entries)
      await inner.append(topic, typeof how === 'object' ? entries.slice(0, how.only) : entries)
      throw unavailable()
    },
    close: inner.close,
  }
  const live = aLive()
  const open = () =>
    openImports({
      pool,
      live,
      clock,
      logger: pino({ level: 'silent' }),
      appender,
      history,
      codec,
      pipeline: uncounted,
      suppressions: nobodySuppressed,
      limitsOf: () => collectLimits,
      planOf: () => undefined,
      pace: unpaced,
      ...over,
    })
  const appended = async () => {
    const messages: Message[] = []
    for (const [partition, { start: from, end: until }] of (
      await history.bounds('calls.import')
    ).entries())
      for await (const batch of history.read({ topic: 'calls.import', partition, from, until }))
        messages.push(...(await codec.decode(batch.entries.map(({ value }) => value))))
    return messages
  }
  return {
    imports: open(),
    another: open,
    live,
    make: (wish = {}) =>
      insertImport(pool, {
        sourceId: 1,
        identity: randomUUID(),
        key: randomUUID(),
        name: 'calls.ndjson',
        actor: 'test',
        format: 'ndjson',
        mapping: null,
        columns: null,
        dryRun: false,
        bytes: null,
        at: time,
        ...wish,
      }),
    now: async (id) => (await findImport(pool, id)) as Import,
    appended,
    bodies: async () =>
      (await appended()).map(({ body }) => JSON.parse(Buffer.from(body).toString()) as JsonObject),
    behave: (next) => {
      how = next
    },
    setTime: (at) => {
      time = at
    },
  }
}

const unavailable = () => new Fault('log_unavailable', 'broken by the test', { retriable: true })

/** Lines as a file holds them. */
export const ndjson = (...calls: readonly (JsonObject | string)[]): Buffer =>
  Buffer.from(
    calls.map((call) => `${typeof call === 'string' ? call : JSON.stringify(call)}\n`).join(''),
  )

export const aTrack = (n: number, over: JsonObject = {}): JsonObject => ({
  type: 'track',
  userId: `u${n}`,
  event: 'Order Completed',
  timestamp: '2020-02-03T04:05:06.000Z',
  properties: { n },
  ...over,
})
