// Routes that show how deliveries to a destination go.
import Type from 'typebox'
import { readState } from '../control/state.ts'
import { notFound, ok } from './answer.ts'
import type { AdminDeps } from './deps.ts'
import { type Route, route } from './route.ts'
import { countDeliveries, loadAttempts } from './store.ts'
import { dateTime, idParams, named, nullable } from './views.ts'

const AttemptView = named('Attempt', {
  startedAt: dateTime,
  messageId: Type.String(),
  attempt: Type.Integer(),
  url: Type.String(),
  durationMs: Type.Integer(),
  outcome: Type.String(),
  reason: nullable(Type.String()),
  status: nullable(Type.Integer()),
  responseHead: nullable(Type.String({ description: 'The first bytes of the answer.' })),
})

const count = Type.Integer({ minimum: 0 })
const DeliveriesView = named('Deliveries', { parked: count, dead: count })

const hourMs = 3_600_000

export const deliveryRoutes = (deps: AdminDeps): readonly Route[] => [
  route({
    method: 'GET',
    path: '/admin/v1/destinations/:id/deliveries',
    operation: 'countDeliveries',
    summary: 'How many messages wait for another try, and how many were given up',
    access: 'viewer',
    params: idParams,
    answers: { 200: { description: 'The counts.', schema: DeliveriesView } },
    handle: async ({ params }) => {
      const { destinations } = await readState(deps.pool)
      if (!destinations.has(params.id)) return notFound(`destination ${params.id}`)
      return ok(await countDeliveries(deps.pool, params.id))
    },
  }),
  route({
    method: 'GET',
    path: '/admin/v1/destinations/:id/attempts',
    operation: 'listAttempts',
    summary: 'The newest requests made to the destination',
    access: 'viewer',
    params: idParams,
    query: Type.Object(
      {
        hours: Type.Optional(
          Type.Integer({ minimum: 1, maximum: 720, description: 'How far back; 24 when absent.' }),
        ),
        limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 1_000 })),
      },
      { additionalProperties: false },
    ),
    answers: {
      200: {
        description: 'The attempts, newest first.',
        schema: Type.Object({ attempts: Type.Array(AttemptView) }),
      },
    },
    handle: async ({ params, query: { hours = 24, limit = 100 } }) => {
      const { destinations } = await readState(deps.pool)
      if (!destinations.has(params.id)) return notFound(`destination ${params.id}`)
      const since = new Date(deps.clock().getTime() - hours * hourMs)
      const page = { destinationId: params.id, since, limit }
      return ok({ attempts: await loadAttempts(deps.pool, page) })
    },
  }),
]
