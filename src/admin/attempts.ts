// The route that searches the attempt log over all destinations.
import Type from 'typebox'
import { ok, refusal } from './answer.ts'
import type { AdminDeps } from './deps.ts'
import { readCursor, readSpan, writeCursor } from './instant.ts'
import { type Route, route } from './route.ts'
import { dateTime, id, named, nullable } from './views.ts'

const outcome = Type.Union([
  Type.Literal('delivered'),
  Type.Literal('temporary'),
  Type.Literal('final'),
])
const phase = nullable(Type.Number({ minimum: 0 }))

const FoundAttemptView = named('FoundAttempt', {
  startedAt: dateTime,
  destinationId: id,
  messageId: Type.String(),
  attempt: Type.Integer(),
  url: Type.String(),
  durationMs: Type.Integer(),
  outcome: Type.String(),
  reason: nullable(Type.String()),
  status: nullable(Type.Integer()),
  dnsMs: phase,
  connectMs: phase,
  tlsMs: phase,
  firstByteMs: phase,
  reused: nullable(
    Type.Boolean({ description: 'Whether the connection had served a request before.' }),
  ),
  orderSuspended: Type.Boolean(),
  recoveryId: nullable(id),
  topic: Type.String(),
  partition: Type.Integer({ minimum: 0 }),
  offset: Type.Integer({ minimum: 0 }),
  responseHead: nullable(Type.String({ description: 'The first bytes of the answer.' })),
})

const dayMs = 86_400_000

export const attemptRoutes = (deps: AdminDeps): readonly Route[] => [
  route({
    method: 'GET',
    path: '/admin/v1/attempts',
    operation: 'searchAttempts',
    summary:
      'Requests made to receivers, newest first; of the last day unless since and until say otherwise',
    access: 'viewer',
    query: Type.Object(
      {
        destinationId: Type.Optional(Type.Integer({ minimum: 1, maximum: 2_147_483_647 })),
        url: Type.Optional(Type.String({ description: 'Without its query, as the log holds it.' })),
        outcome: Type.Optional(outcome),
        reason: Type.Optional(Type.String()),
        status: Type.Optional(Type.Integer({ minimum: 100, maximum: 999 })),
        messageId: Type.Optional(Type.String({ minLength: 1, maxLength: 100 })),
        recoveryId: Type.Optional(Type.Integer({ minimum: 1, maximum: 2_147_483_647 })),
        orderSuspended: Type.Optional(Type.Boolean()),
        since: Type.Optional(Type.String({ description: 'From then on, in ISO 8601.' })),
        until: Type.Optional(Type.String({ description: 'Before then, in ISO 8601.' })),
        after: Type.Optional(Type.String({ description: 'The `next` of the page before.' })),
        limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 1_000 })),
      },
      { additionalProperties: false },
    ),
    answers: {
      200: {
        description: 'A page of them.',
        schema: Type.Object({
          attempts: Type.Array(FoundAttemptView),
          next: nullable(Type.String()),
        }),
      },
    },
    handle: async ({ query }) => {
      const span = readSpan(query)
      const after = readCursor(query.after)
      if ('problems' in span) return refusal(span.problems)
      if (after !== null && 'code' in after) return refusal([after])
      const { destinationId = null, url = null, outcome = null, reason = null } = query
      const { status = null, messageId = null, recoveryId = null, limit = 100 } = query
      // What has just begun is found too.
      const until = span.until ?? new Date(deps.clock().getTime() + dayMs)
      const since =
        span.since ?? new Date(Math.min(until.getTime(), deps.clock().getTime()) - dayMs)
      const found = await deps.searchAttempts(
        deps.pool,
        {
          ...{ destinationId, url, outcome, reason, status, messageId, recoveryId, since, until },
          ...{ chains: null, isOrderSuspended: query.orderSuspended ?? null },
        },
        { after: after && { startedAt: after.at, id: after.id }, limit },
      )
      const last = found.length < limit ? undefined : found.at(-1)
      return ok({
        attempts: found.map(({ id: _id, offset, isOrderSuspended, ...row }) => ({
          ...row,
          offset: Number(offset),
          orderSuspended: isOrderSuspended,
        })),
        next: last ? writeCursor({ at: last.startedAt, id: last.id }) : null,
      })
    },
  }),
]
