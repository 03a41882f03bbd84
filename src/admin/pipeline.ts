// The route that shows what happened to calls: what was received, and what was rejected, filtered and appended.
import Type from 'typebox'
import { readState } from '../control/state.ts'
import { callTypes } from '../domain/message.ts'
import { type Counted, pipelineSteps } from '../domain/pipeline.ts'
import type { Sql } from '../postgres/sql.ts'
import { notFound, ok } from './answer.ts'
import type { AdminDeps } from './deps.ts'
import { type Route, route } from './route.ts'
import { dateTime, named, nullable } from './views.ts'

const PipelineView = named('Pipeline', {
  since: dateTime,
  counts: Type.Array(
    Type.Object({
      sourceId: Type.Integer({
        minimum: 0,
        description: '0 for what was counted while there were too many counters.',
      }),
      source: nullable(Type.String()),
      destinationId: nullable(
        Type.Integer({ minimum: 1, description: 'null: at the source itself.' }),
      ),
      destination: nullable(Type.String()),
      step: Type.Union(pipelineSteps.map((step) => Type.Literal(step))),
      type: Type.Union([...callTypes, 'unknown' as const].map((type) => Type.Literal(type))),
      reason: nullable(Type.String({ description: 'A rejection code, or why it was filtered.' })),
      calls: Type.Integer({ minimum: 0 }),
    }),
  ),
})

const hourMs = 3_600_000

export const pipelineRoutes = (deps: AdminDeps): readonly Route[] => [
  route({
    method: 'GET',
    path: '/admin/v1/pipeline',
    operation: 'countPipeline',
    summary: 'What happened to calls, by source, step, type and reason',
    access: 'viewer',
    query: Type.Object(
      {
        sourceId: Type.Optional(Type.Integer({ minimum: 1, maximum: 2_147_483_647 })),
        hours: Type.Optional(
          Type.Integer({
            minimum: 1,
            maximum: 720,
            description: 'How far back, in whole hours of the clock; 24 when absent.',
          }),
        ),
      },
      { additionalProperties: false },
    ),
    answers: { 200: { description: 'The counts, in the order of steps.', schema: PipelineView } },
    handle: async ({ query: { sourceId = null, hours = 24 } }) => {
      const { sources, destinations } = await readState(deps.pool)
      if (sourceId !== null && !sources.has(sourceId)) return notFound(`source ${sourceId}`)
      // The hour that runs is one of them.
      const hour = Math.floor(deps.clock().getTime() / hourMs)
      const since = new Date((hour - hours + 1) * hourMs)
      const counts = await loadCounts(deps.pool, { sourceId, since })
      return ok({
        since,
        counts: counts.map((count) => ({
          ...count,
          source: sources.get(count.sourceId)?.name ?? null,
          destination: destinations.get(count.destinationId ?? 0)?.name ?? null,
        })),
      })
    },
  }),
]

type Span = { readonly sourceId: number | null; readonly since: Date }

type Row = Counted & { readonly calls: number }

/** By pipeline_count_pkey, which begins with the hour. */
const loadCounts = async (sql: Sql, { sourceId, since }: Span): Promise<readonly Row[]> => {
  const { rows } = await sql.query<Row>(
    `select source_id as "sourceId", nullif(destination_id, 0) as "destinationId", step, type,
            nullif(reason, '') as reason, sum(amount)::float8 as calls
       from pipeline_count where hour >= $1 and ($2::int is null or source_id = $2)
      group by 1, 2, 3, 4, 5
      order by 1, 2 nulls first, array_position($3::text[], step), 4, 5 nulls first`,
    [since, sourceId, pipelineSteps],
  )
  return rows
}
