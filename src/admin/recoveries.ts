// Routes of recoveries: dead messages sent again by filter, watched, paused, resumed and cancelled.
import Type from 'typebox'
import { readState } from '../control/state.ts'
import { type Answer, created, failure, ok, refusal } from './answer.ts'
import { deadFilter } from './dead.ts'
import { type AdminDeps, adminLimits } from './deps.ts'
import { readSpan } from './instant.ts'
import { auditJob, type JobKind, jobRoutes, oneOf, pathOf, ratePerSecond, rowId } from './job.ts'
import {
  countMatching,
  countRunning,
  findRecovery,
  insertRecovery,
  loadRecoveries,
  type RecoveryState,
  recoveryStates,
  steerRecovery,
} from './recovery-store.ts'
import { type Route, route } from './route.ts'
import { dateTime, id, named, nullable } from './views.ts'

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

const rateDefault = 100

const kind: JobKind<RecoveryState> = {
  one: 'recovery',
  many: 'recoveries',
  view: RecoveryView,
  over: 'recovery_over',
  find: findRecovery,
  load: loadRecoveries,
  steer: steerRecovery,
  steps: [
    {
      ...{ verb: 'pause', from: ['running'], to: 'paused' },
      summary: 'Send no more of it for now; what is on its way goes on',
    },
    {
      ...{ verb: 'resume', from: ['paused'], to: 'running' },
      summary: 'Go on with a paused recovery',
    },
    {
      ...{ verb: 'cancel', from: ['running', 'paused'], to: 'cancelled' },
      summary: 'End a recovery; what of it waits for a try is dead again',
    },
  ],
}

export const recoveryRoutes = (deps: AdminDeps): readonly Route[] => [
  ...jobRoutes(deps, kind),
  createRoute(deps),
]

const createRoute = (deps: AdminDeps): Route =>
  route({
    method: 'POST',
    path: pathOf(kind),
    operation: 'createRecovery',
    summary: 'Send dead messages of a destination again, each as a new delivery; or count them',
    access: 'admin',
    body: Type.Object(
      {
        destinationId: rowId,
        ...deadFilter,
        ratePerSecond: ratePerSecond(rateDefault),
        dryRun: Type.Optional(Type.Boolean({ description: 'Only count what matches.' })),
      },
      { additionalProperties: false },
    ),
    answers: {
      200: {
        description: 'What would go out again.',
        schema: Type.Object({ dryRun: Type.Literal(true), matched: Type.Integer({ minimum: 0 }) }),
      },
      201: oneOf(kind),
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
        await auditJob(tx, kind, { actor, id: made, name: destination.name, action: 'requested' })
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
