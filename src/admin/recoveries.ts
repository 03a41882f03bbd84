// Routes of recoveries: dead messages sent again by filter, watched, paused, resumed and cancelled.
import Type from 'typebox'
import { insertAudit } from '../control/audit.ts'
import { readState } from '../control/state.ts'
import { type Answer, created, failure, notFound, ok, refusal } from './answer.ts'
import { deadFilter } from './dead.ts'
import { type AdminDeps, adminLimits } from './deps.ts'
import { readSpan } from './instant.ts'
import {
  countMatching,
  countRunning,
  findRecovery,
  insertRecovery,
  loadRecoveries,
  recoveryStates,
  steerRecovery,
} from './recovery-store.ts'
import { type Actor, type Route, route } from './route.ts'
import { dateTime, id, idParams, named, nullable } from './views.ts'

const path = '/admin/v1/recoveries'

const amount = (description: string) => Type.Integer({ minimum: 0, description })
const RecoveryView = named('Recovery', {
  id,
  destinationId: id,
  origin: Type.Union([Type.Literal('operator'), Type.Literal('heal')]),
  actor: Type.String(),
  state: Type.Union(recoveryStates.map((state) => Type.Literal(state))),
  reason: nullable(Type.String()),
  type: nullable(Type.String()),
  status: nullable(Type.Integer()),
  messageId: nullable(Type.String()),
  since: nullable(dateTime),
  until: nullable(dateTime),
  ratePerSecond: Type.Number(),
  matched: amount('Dead messages that matched when it was made.'),
  recovered: amount('Of them, those that went out again so far.'),
  waiting: amount('Of those, the ones still on their way.'),
  diedAgain: amount('Of those, the ones given up again.'),
  delivered: amount('Of those, the ones delivered.'),
  createdAt: dateTime,
  endedAt: nullable(dateTime),
})
const one = { description: 'The recovery.', schema: RecoveryView }

const rowId = Type.Integer({ minimum: 1, maximum: 2_147_483_647 })
const rateDefault = 100

export const recoveryRoutes = (deps: AdminDeps): readonly Route[] => [
  route({
    method: 'GET',
    path,
    operation: 'listRecoveries',
    summary: 'Recoveries, newest first',
    access: 'viewer',
    query: Type.Object(
      {
        destinationId: Type.Optional(rowId),
        before: Type.Optional(rowId),
        limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 100 })),
      },
      { additionalProperties: false },
    ),
    answers: {
      200: {
        description: 'The recoveries.',
        schema: Type.Object({ recoveries: Type.Array(RecoveryView) }),
      },
    },
    handle: async ({ query: { destinationId = null, before = null, limit = 20 } }) =>
      ok({ recoveries: await loadRecoveries(deps.pool, { destinationId, before, limit }) }),
  }),
  route({
    method: 'GET',
    path: `${path}/:id`,
    operation: 'getRecovery',
    summary: 'How a recovery goes',
    access: 'viewer',
    params: idParams,
    answers: { 200: one },
    handle: async ({ params }) => {
      const found = await findRecovery(deps.pool, params.id)
      return found ? ok(found) : notFound(`recovery ${params.id}`)
    },
  }),
  createRoute(deps),
  steerRoute(deps, { verb: 'pause', from: ['running'], to: 'paused' }),
  steerRoute(deps, { verb: 'resume', from: ['paused'], to: 'running' }),
  steerRoute(deps, { verb: 'cancel', from: ['running', 'paused'], to: 'cancelled' }),
]

const createRoute = (deps: AdminDeps): Route =>
  route({
    method: 'POST',
    path,
    operation: 'createRecovery',
    summary: 'Send dead messages of a destination again, each as a new delivery; or count them',
    access: 'admin',
    body: Type.Object(
      {
        destinationId: rowId,
        ...deadFilter,
        ratePerSecond: Type.Optional(
          Type.Number({
            minimum: 0.01,
            maximum: 100_000,
            description: `${rateDefault} when absent.`,
          }),
        ),
        dryRun: Type.Optional(Type.Boolean({ description: 'Only count what matches.' })),
      },
      { additionalProperties: false },
    ),
    answers: {
      200: {
        description: 'What would go out again.',
        schema: Type.Object({ dryRun: Type.Literal(true), matched: Type.Integer({ minimum: 0 }) }),
      },
      201: one,
    },
    handle: async ({ body, actor }) => {
      const { destinations } = await readState(deps.pool)
      const destination = destinations.get(body.destinationId)
      if (!destination) return unknownDestination(body.destinationId)
      const span = readSpan(body)
      if ('problems' in span) return refusal(span.problems)
      const { destinationId, reason = null, type = null, status = null, messageId = null } = body
      const filter = { destinationId, reason, type, status, messageId, ...span }
      const at = deps.clock()
      const matched = await countMatching(deps.pool, filter, at)
      if (body.dryRun === true) return ok({ dryRun: true, matched })
      const { recoveriesMax } = { ...adminLimits, ...deps.limits }
      if ((await countRunning(deps.pool)) >= recoveriesMax)
        return failure('recoveries_too_many', `${recoveriesMax} recoveries are running or paused`)
      const { ratePerSecond = rateDefault } = body
      const wish = { filter, actor: actor.name, ratePerSecond, matched, at }
      const recoveryId = await deps.pool.transaction(async (tx) => {
        const made = await insertRecovery(tx, wish)
        await audit(tx, { actor, id: made, name: destination.name, action: 'requested' })
        return made
      })
      return created(await findRecovery(deps.pool, recoveryId))
    },
  })

const unknownDestination = (destinationId: number): Answer =>
  refusal([
    {
      code: 'destination_unknown',
      path: '/destinationId',
      message: `there is no destination ${destinationId}`,
    },
  ])

type Steer = {
  readonly verb: 'pause' | 'resume' | 'cancel'
  readonly from: readonly (typeof recoveryStates)[number][]
  readonly to: (typeof recoveryStates)[number]
}

const summaries = {
  pause: 'Send no more of it for now; what is on its way goes on',
  resume: 'Go on with a paused recovery',
  cancel: 'End a recovery; what of it waits for a try is dead again',
} as const

const steerRoute = (deps: AdminDeps, { verb, from, to }: Steer): Route =>
  route({
    method: 'POST',
    path: `${path}/:id/${verb}`,
    operation: `${verb}Recovery`,
    summary: summaries[verb],
    access: 'admin',
    params: idParams,
    answers: { 200: one },
    handle: async ({ params, actor }) => {
      const current = await findRecovery(deps.pool, params.id)
      if (!current) return notFound(`recovery ${params.id}`)
      const isSteered = await deps.pool.transaction(async (tx) => {
        const at = deps.clock()
        if (!(await steerRecovery(tx, { id: params.id, from, to, at }))) return false
        const name = `recovery ${params.id}`
        const changes = { state: { from: current.state, to } }
        await audit(tx, { actor, id: params.id, name, action: 'changed', changes })
        return true
      })
      const after = await findRecovery(deps.pool, params.id)
      // Twice is once: who cancels what is cancelled has what they want.
      return isSteered || after?.state === to
        ? ok(after)
        : failure('recovery_over', `recovery ${params.id} is ${after?.state}: it cannot ${verb}`)
    },
  })

type Entry = Omit<
  Parameters<typeof insertAudit>[1][number],
  'actor' | 'kind' | 'entityId' | 'changes'
> & {
  readonly actor: Actor
  readonly id: number
  readonly changes?: Parameters<typeof insertAudit>[1][number]['changes']
}

const audit = (
  tx: Parameters<typeof insertAudit>[0],
  { actor, id: entityId, name, action, changes = {} }: Entry,
): Promise<void> =>
  insertAudit(tx, [{ actor: actor.name, action, kind: 'recovery', entityId, name, changes }])
