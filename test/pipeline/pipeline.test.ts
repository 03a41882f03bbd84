import pino from 'pino'
import { afterEach, beforeEach, expect, test } from 'vitest'
import type { Counted } from '../../src/domain/pipeline.ts'
import { type OpenPipeline, openPipeline } from '../../src/pipeline/pipeline.ts'
import type { Sql } from '../../src/postgres/sql.ts'
import { cloneDatabase } from '../support/database.ts'
import { until } from '../support/until.ts'

const { pool } = await cloneDatabase()
const hour = 3_600_000
const noon = Date.UTC(2026, 0, 10, 12)
let now = noon
const opened: OpenPipeline[] = []

beforeEach(async () => {
  now = noon
  await pool.query('truncate pipeline_count')
})

afterEach(async () => {
  await Promise.all(opened.splice(0).map((each) => each.stop()))
})

const aPipeline = (over: Partial<Parameters<typeof openPipeline>[0]> = {}): OpenPipeline => {
  const pipeline = openPipeline({
    sql: pool,
    clock: () => new Date(now),
    logger: pino({ level: 'silent' }),
    ...over,
    limits: { saveEveryMs: 10, ...over.limits },
  })
  opened.push(pipeline)
  return pipeline
}

const counted = (over: Partial<Counted> = {}): Counted => ({
  sourceId: 1,
  destinationId: null,
  step: 'received',
  type: 'track',
  reason: null,
  ...over,
})

const stored = async () => {
  const { rows } = await pool.query<{ text: string }>(
    `select concat_ws(' ', to_char(hour at time zone 'UTC', 'DD HH24'), source_id, destination_id,
              step, type, nullif(reason, ''), amount) as text
       from pipeline_count order by hour, source_id, destination_id, step, type, reason`,
  )
  return rows.map(({ text }) => text)
}

test('counts are added up and saved while the process runs, each once', async () => {
  const pipeline = aPipeline()
  pipeline.count(counted(), 2)
  pipeline.count(counted(), 3)
  pipeline.count(counted({ step: 'rejected', reason: 'too_deep' }), 1)
  pipeline.count(counted({ step: 'filtered', destinationId: 7, reason: 'sampled' }), 4)
  pipeline.count(counted({ step: 'appended' }), 0)
  const all = [
    '10 12 1 0 received track 5',
    '10 12 1 0 rejected track too_deep 1',
    '10 12 1 7 filtered track sampled 4',
  ]
  await until(async () => (await stored()).length === 3)
  expect(await stored()).toEqual(all)
  pipeline.count(counted(), 1)
  await pipeline.stop()
  expect(await stored()).toEqual(['10 12 1 0 received track 6', ...all.slice(1)])
})

test('a count belongs to the hour it was counted in', async () => {
  const pipeline = aPipeline({ limits: { saveEveryMs: 60_000 } })
  pipeline.count(counted(), 1)
  now += hour
  pipeline.count(counted(), 2)
  await pipeline.stop()
  expect(await stored()).toEqual(['10 12 1 0 received track 1', '10 13 1 0 received track 2'])
})

test('with Postgres away it goes on adding up, and saves when it is back', async () => {
  let isAway = true
  let failures = 0
  const sql: Sql = {
    query: (text, values) => {
      if (!isAway) return pool.query(text, values)
      failures += 1
      return Promise.reject(new Error('connection terminated'))
    },
  }
  const pipeline = aPipeline({ sql })
  pipeline.count(counted(), 1)
  await until(() => failures > 2)
  pipeline.count(counted(), 1)
  isAway = false
  await until(async () => (await stored()).length > 0)
  await pipeline.stop()
  expect(await stored()).toEqual(['10 12 1 0 received track 2'])
})

test('what finds no room is counted without its details, and nothing grows', async () => {
  const pipeline = aPipeline({ limits: { saveEveryMs: 60_000, countersMax: 2 } })
  for (let sourceId = 1; sourceId <= 50; sourceId++) pipeline.count(counted({ sourceId }), 1)
  await pipeline.stop()
  expect(await stored()).toEqual([
    '10 12 0 0 received unknown not_listed 48',
    '10 12 1 0 received track 1',
    '10 12 2 0 received track 1',
  ])
})

test('processes that count the same at once neither lose a count nor deadlock', async () => {
  const pipelines = Array.from({ length: 6 }, () => aPipeline({ limits: { saveEveryMs: 1 } }))
  for (let round = 0; round < 40; round++) {
    for (const [at, pipeline] of pipelines.entries())
      for (let place = 0; place < 10; place++)
        pipeline.count(counted({ sourceId: 1 + ((place * 7 + at * 3 + round) % 10) }), 1)
    await new Promise((resolve) => setTimeout(resolve, 2))
  }
  await Promise.all(pipelines.map((pipeline) => pipeline.stop()))
  expect(await stored()).toEqual(
    Array.from({ length: 10 }, (_, at) => `10 12 ${at + 1} 0 received track 240`),
  )
})

test('hours older than 30 days are deleted', async () => {
  const old = noon - 31 * 24 * hour
  await pool.query(
    `insert into pipeline_count select to_timestamp($1), 1, 0, 'received', 'track', '', 9`,
    [old / 1_000],
  )
  const pipeline = aPipeline()
  pipeline.count(counted(), 1)
  await until(async () => (await stored()).join() === '10 12 1 0 received track 1')
})

test('what listens is told everything once, whether or not it could be saved', async () => {
  const told: number[] = []
  const sql: Sql = { query: () => Promise.reject(new Error('connection terminated')) }
  const pipeline = aPipeline({ sql, tell: (_, amount) => void told.push(amount) })
  pipeline.count(counted(), 2)
  pipeline.tellAll()
  pipeline.tellAll()
  pipeline.count(counted(), 3)
  await pipeline.stop()
  expect(told).toEqual([2, 3])
})
