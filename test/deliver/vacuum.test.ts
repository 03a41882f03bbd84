// How Postgres is told to keep delivery's tables: what a busy day leaves behind is cleaned up while it lasts.
import { expect, test } from 'vitest'
import { attemptSpan, bodySpan, listSpans, type Span, spanOf } from '../../src/deliver/spans.ts'
import { aDestination, aLive, to } from '../support/configuration.ts'
import { until } from '../support/until.ts'
import { useRig } from './rig.ts'

const { receiver, open, database } = await useRig()
const { pool } = database

type Options = Readonly<Record<string, string>>

const optionsOf = (options: readonly string[] | null): Options =>
  Object.fromEntries((options ?? []).map((option) => option.split('=')))

const tableOptions = async (name: string): Promise<Options> => {
  const { rows } = await pool.query<{ options: readonly string[] | null }>(
    'select reloptions as options from pg_class where oid = $1::regclass',
    [name],
  )
  return optionsOf(rows[0]?.options ?? null)
}

/** Of a column, three hundred times as many rows are looked at; `null` is the server's default. */
const statisticsOf = async (name: string): Promise<readonly (number | null)[]> => {
  const { rows } = await pool.query<{ target: number | null }>(
    `select distinct attstattarget::int as target from pg_attribute
      where attrelid = $1::regclass and attnum > 0 and not attisdropped`,
    [name],
  )
  return rows.map(({ target }) => target)
}

type Part = { readonly name: string; readonly options: Options; readonly indexes: number }

const partsOf = async (table: Span['table']): Promise<readonly Part[]> => {
  const { rows } = await pool.query<{
    name: string
    options: readonly string[] | null
    indexes: number
  }>(
    `select c.relname as name, c.reloptions as options,
       (select count(*)::int from pg_index x where x.indrelid = c.oid) as indexes
       from pg_inherits i join pg_class c on c.oid = i.inhrelid
      where i.inhparent = $1::regclass order by 1`,
    [table],
  )
  return rows.map(({ name, options, indexes }) => ({ name, options: optionsOf(options), indexes }))
}

// Rows that change with every try and go at the end leave dead ones behind: few may wait, whatever the table's size.
test.each<[string, Options]>([
  [
    'parked',
    {
      fillfactor: '70',
      autovacuum_vacuum_scale_factor: '0.01',
      autovacuum_vacuum_threshold: '1000',
      autovacuum_vacuum_cost_delay: '0',
      autovacuum_analyze_scale_factor: '0.05',
    },
  ],
  [
    'delivery_ledger',
    {
      fillfactor: '50',
      autovacuum_vacuum_scale_factor: '0',
      autovacuum_vacuum_threshold: '2000',
    },
  ],
  [
    'position',
    {
      fillfactor: '50',
      autovacuum_vacuum_scale_factor: '0',
      autovacuum_vacuum_threshold: '1000',
    },
  ],
  ['dead', { autovacuum_vacuum_scale_factor: '0.05' }],
])('%s is vacuumed early', async (table, options) => {
  expect(await tableOptions(table)).toEqual(options)
})

const dayMs = 86_400_000

test('hours of bodies and days of attempts are never vacuumed, those made later neither', async () => {
  const hook = await receiver()
  const live = aLive({
    destinations: [aDestination({ id: 1, name: 'D1', webhooks: to(hook.url) })],
  })
  const rig = open(live, { partitions: 1 })
  rig.start({ houseEveryMs: 20 })
  const madeAt = async (now: number) => {
    const wanted = [bodySpan, attemptSpan].map((span) => ({ span, number: spanOf(span, now) }))
    const isMade = async ({ span, number }: (typeof wanted)[number]) =>
      (await listSpans(pool, span)).includes(number + 2)
    await until(
      async () => (await Promise.all(wanted.map(isMade))).every(Boolean),
      `there are tables for ${new Date(now).toISOString()} and after`,
    )
  }
  await madeAt(rig.now())
  rig.setNow(rig.now() + 3 * dayMs)
  await madeAt(rig.now())
  for (const table of ['parked_body', 'attempt'] as const) {
    const parts = await partsOf(table)
    // Those of before may be dropped already.
    expect(parts.length).toBeGreaterThanOrEqual(3)
    const [first] = parts
    // They are dropped whole: what no row leaves needs no vacuum, and one would read all of them for nothing.
    for (const { options, indexes } of parts) {
      expect(options).toEqual({ autovacuum_vacuum_insert_threshold: '-1' })
      expect(indexes).toBe(first?.indexes)
    }
    expect(await statisticsOf(parts.at(-1)?.name ?? '')).toEqual([10])
    expect(first?.indexes).toBeGreaterThan(0)
  }
  // Without a vacuum a BRIN index knows nothing of what was added since the table was made.
  const { rows } = await pool.query<{ options: readonly string[] | null }>(
    `select c.reloptions as options from pg_inherits h
       join pg_index x on x.indrelid = h.inhrelid join pg_class c on c.oid = x.indexrelid
       join pg_am a on a.oid = c.relam
      where h.inhparent = 'attempt'::regclass and a.amname = 'brin'`,
  )
  expect(rows.length).toBeGreaterThanOrEqual(3)
  for (const { options } of rows) expect(options).toEqual(['autosummarize=on'])
})
