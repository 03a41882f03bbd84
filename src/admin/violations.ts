// The route that shows how calls of a source broke its tracking plan.
import Type from 'typebox'
import { readState } from '../control/state.ts'
import type { Sql } from '../postgres/sql.ts'
import { notFound, ok } from './answer.ts'
import type { AdminDeps } from './deps.ts'
import { type Route, route } from './route.ts'
import { dateTime, idParams, named } from './views.ts'

const day = Type.String({ format: 'date', description: 'A UTC day.' })

const ViolationsView = named('Violations', {
  since: day,
  violations: Type.Array(
    Type.Object({
      day,
      event: Type.String(),
      path: Type.String({ description: 'As in properties.products[].price; never a value.' }),
      kind: Type.String({
        description:
          'The JSON Schema keyword that was broken; or unplanned, too_complex, or other: what had no room of its own.',
      }),
      calls: Type.Integer({ minimum: 1 }),
      firstAt: dateTime,
      lastAt: dateTime,
    }),
  ),
  more: Type.Boolean({ description: 'Whether there are more than were asked for.' }),
})

const dayMs = 86_400_000

export const violationRoutes = (deps: AdminDeps): readonly Route[] => [
  route({
    method: 'GET',
    path: '/admin/v1/sources/:id/violations',
    operation: 'listViolations',
    summary: 'How calls of a source broke its tracking plan, by day',
    access: 'viewer',
    params: idParams,
    query: Type.Object(
      {
        days: Type.Optional(
          Type.Integer({ minimum: 1, maximum: 90, description: 'With today; 7 when absent.' }),
        ),
        limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 1_000 })),
      },
      { additionalProperties: false },
    ),
    answers: {
      200: {
        description: 'The newest day first, and in it what most calls broke.',
        schema: ViolationsView,
      },
    },
    handle: async ({ params: { id }, query: { days = 7, limit = 100 } }) => {
      if (!(await readState(deps.pool)).sources.has(id)) return notFound(`source ${id}`)
      const today = Math.floor(deps.clock().getTime() / dayMs)
      const since = new Date((today - days + 1) * dayMs).toISOString().slice(0, 10)
      const found = await loadViolations(deps.pool, { sourceId: id, since, limit: limit + 1 })
      return ok({ since, violations: found.slice(0, limit), more: found.length > limit })
    },
  }),
]

type Wanted = { readonly sourceId: number; readonly since: string; readonly limit: number }

type Row = {
  readonly day: string
  readonly event: string
  readonly path: string
  readonly kind: string
  readonly calls: number
  readonly firstAt: Date
  readonly lastAt: Date
}

const loadViolations = async (
  sql: Sql,
  { sourceId, since, limit }: Wanted,
): Promise<readonly Row[]> => {
  const { rows } = await sql.query<Row>(
    `select day::text as day, event, path, kind, calls::float8 as calls,
            first_at as "firstAt", last_at as "lastAt"
       from plan_violation where source_id = $1 and day >= $2::date
      order by plan_violation.day desc, plan_violation.calls desc, event, path, kind
      limit $3`,
    [sourceId, since, limit],
  )
  return rows
}
