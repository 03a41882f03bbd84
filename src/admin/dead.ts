// Routes of dead messages, and of what is still parked: search, one by one, and how long each has left.
import Type from 'typebox'
import { readState } from '../control/state.ts'
import { callTypes } from '../domain/message.ts'
import { windowMs } from '../domain/retry.ts'
import { notFound, ok, refusal } from './answer.ts'
import { deadReason } from './dead-reason.ts'
import { findDead, loadParked, type Parked, searchDead } from './dead-store.ts'
import type { AdminDeps } from './deps.ts'
import { readCursor, readSpan, writeCursor } from './instant.ts'
import { rowId } from './job.ts'
import { type Route, route } from './route.ts'
import { dateTime, id, idParams, named, nullable } from './views.ts'

const path = '/admin/v1/dead'

const properties = {
  id,
  destinationId: id,
  messageId: Type.String(),
  type: Type.String(),
  reason: Type.String(),
  status: nullable(Type.Integer()),
  attempts: Type.Integer({ minimum: 0 }),
  firstTryAt: nullable(dateTime),
  deadAt: dateTime,
  replayedAt: nullable(dateTime),
  recoveryId: nullable(id),
  topic: Type.String(),
  partition: Type.Integer({ minimum: 0 }),
  offset: Type.Integer({ minimum: 0 }),
}

const DeadView = named('DeadMessage', properties)
const WholeView = named('DeadMessageWithBody', {
  ...properties,
  body: nullable(
    Type.String({
      description: 'As it is sent; for admins, and while it is kept apart from the log.',
    }),
  ),
})

/** What dead messages are chosen by, here and in a recovery. */
export const deadFilter = {
  reason: Type.Optional(deadReason),
  type: Type.Optional(Type.Union(callTypes.map((type) => Type.Literal(type)))),
  status: Type.Optional(Type.Integer({ minimum: 100, maximum: 999 })),
  messageId: Type.Optional(Type.String({ minLength: 1, maxLength: 100 })),
  since: Type.Optional(Type.String({ description: 'Dead from then on, in ISO 8601.' })),
  until: Type.Optional(Type.String({ description: 'Dead before then, in ISO 8601.' })),
}

const query = Type.Object(
  {
    destinationId: Type.Optional(rowId),
    ...deadFilter,
    replayed: Type.Optional(Type.Boolean({ description: 'Whether they went out again.' })),
    after: Type.Optional(Type.String({ description: 'The `next` of the page before.' })),
    limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 1_000 })),
  },
  { additionalProperties: false },
)

export const deadRoutes = (deps: AdminDeps): readonly Route[] => [
  route({
    method: 'GET',
    path,
    operation: 'searchDead',
    summary: 'Messages that were given up, newest first',
    access: 'viewer',
    query,
    answers: {
      200: {
        description: 'A page of them.',
        schema: Type.Object({ dead: Type.Array(DeadView), next: nullable(Type.String()) }),
      },
    },
    handle: async ({ query }) => {
      const span = readSpan(query)
      const after = readCursor(query.after)
      if ('problems' in span) return refusal(span.problems)
      if (after !== null && 'code' in after) return refusal([after])
      const { destinationId = null, reason = null, type = null, status = null } = query
      const { messageId = null, replayed = null, limit = 100 } = query
      const filter = { destinationId, reason, type, status, messageId, ...span }
      const dead = await searchDead(deps.pool, { filter, isReplayed: replayed, after, limit })
      const last = dead.length < limit ? undefined : dead.at(-1)
      const next = last ? writeCursor({ at: last.deadAt, id: BigInt(last.id) }) : null
      return ok({ dead, next })
    },
  }),
  route({
    method: 'GET',
    path: `${path}/:id`,
    operation: 'getDead',
    summary: 'One message that was given up; its body for admins',
    access: 'viewer',
    params: Type.Object({ id: Type.Integer({ minimum: 1 }) }),
    answers: { 200: { description: 'The message.', schema: WholeView } },
    handle: async ({ params, actor }) => {
      const found = await findDead(deps.pool, params.id)
      if (!found) return notFound(`dead message ${params.id}`)
      const body = actor.role === 'admin' ? (found.body?.toString('utf8') ?? null) : null
      return ok({ ...found, body })
    },
  }),
  parkedRoute(deps),
]

const ParkedView = named('ParkedMessage', {
  messageId: Type.String(),
  type: Type.String(),
  reason: Type.String(),
  attempts: Type.Integer({ minimum: 0 }),
  parkedAt: dateTime,
  firstTryAt: nullable(dateTime),
  nextTryAt: nullable(dateTime),
  lastReason: nullable(Type.String()),
  lastStatus: nullable(Type.Integer()),
  recoveryId: nullable(id),
  windowEndsAt: nullable(dateTime),
  windowLeftMs: nullable(Type.Integer({ minimum: 0 })),
})

const parkedRoute = (deps: AdminDeps): Route =>
  route({
    method: 'GET',
    path: '/admin/v1/destinations/:id/parked',
    operation: 'listParked',
    summary:
      'Messages that wait for another try, those tried soonest first, and what is left of their time',
    access: 'viewer',
    params: idParams,
    query: Type.Object(
      { limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 1_000 })) },
      { additionalProperties: false },
    ),
    answers: {
      200: {
        description: 'The messages.',
        schema: Type.Object({ parked: Type.Array(ParkedView) }),
      },
    },
    handle: async ({ params, query: { limit = 100 } }) => {
      const { destinations } = await readState(deps.pool)
      if (!destinations.has(params.id)) return notFound(`destination ${params.id}`)
      const parked = await loadParked(deps.pool, { destinationId: params.id, limit })
      const now = deps.clock().getTime()
      return ok({ parked: parked.map((row) => ({ ...row, ...windowOf(row, now) })) })
    },
  })

/** It begins with the first try; of what no URL could be asked about, when it was parked. */
const windowOf = ({ firstTryAt, parkedAt, reason }: Parked, now: number) => {
  const from = firstTryAt ?? (reason === 'breaker_open' ? parkedAt : null)
  if (from === null) return { windowEndsAt: null, windowLeftMs: null }
  const endsAt = from.getTime() + windowMs
  return { windowEndsAt: new Date(endsAt), windowLeftMs: Math.max(0, endsAt - now) }
}
