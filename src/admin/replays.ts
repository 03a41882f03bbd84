// Routes of replays: a past span of the log sent again to one destination, counted, watched and steered.
import Type, { type Static } from 'typebox'
import { insertAudit } from '../control/audit.ts'
import type { Problem } from '../control/problem.ts'
import { readState, type State } from '../control/state.ts'
import type { Destination } from '../domain/configuration.ts'
import { nobodySuppressed } from '../domain/suppression.ts'
import { Fault } from '../fault.ts'
import { type Answer, created, failure, notFound, ok, refusal } from './answer.ts'
import { type AdminDeps, adminLimits } from './deps.ts'
import { readSpan } from './instant.ts'
import {
  findReplay,
  insertReplay,
  loadReplays,
  type ReplayState,
  steerReplay,
  type Wish,
} from './replay-store.ts'
import {
  CountView,
  countView,
  ReplayInput,
  ReplayView,
  rateDefault,
  readCountCursor,
  rowId,
} from './replay-views.ts'
import { type Route, route } from './route.ts'
import { idParams } from './views.ts'

const path = '/admin/v1/replays'
const one = { description: 'The replay.', schema: ReplayView }

export const replayRoutes = (deps: AdminDeps): readonly Route[] => [
  route({
    method: 'GET',
    path,
    operation: 'listReplays',
    summary: 'Replays, newest first',
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
        description: 'The replays.',
        schema: Type.Object({ replays: Type.Array(ReplayView) }),
      },
    },
    handle: async ({ query: { destinationId = null, before = null, limit = 20 } }) =>
      ok({ replays: await loadReplays(deps.pool, { destinationId, before, limit }) }),
  }),
  route({
    method: 'GET',
    path: `${path}/:id`,
    operation: 'getReplay',
    summary: 'How a replay goes',
    access: 'viewer',
    params: idParams,
    answers: { 200: one },
    handle: async ({ params }) => {
      const found = await findReplay(deps.pool, params.id)
      return found ? ok(found) : notFound(`replay ${params.id}`)
    },
  }),
  createRoute(deps),
  steerRoute(deps, { verb: 'pause', from: ['running'], to: 'paused' }),
  steerRoute(deps, { verb: 'resume', from: ['paused'], to: 'running' }),
  steerRoute(deps, { verb: 'cancel', from: ['running', 'paused', 'draining'], to: 'cancelled' }),
]

const createRoute = (deps: AdminDeps): Route =>
  route({
    method: 'POST',
    path,
    operation: 'createReplay',
    summary: 'Send past calls again to one destination; or count them',
    access: 'admin',
    body: ReplayInput,
    answers: { 200: { description: 'What would be sent.', schema: CountView }, 201: one },
    handle: async ({ body, actor }) => {
      const state = await readState(deps.pool)
      const wish = wishOf(body, { state, actor: actor.name, at: deps.clock() })
      if ('problems' in wish) return refusal(wish.problems)
      if (body.dryRun === true) return count(deps, wish, body.cursor)
      const { destination, ...row } = wish
      const made = await deps.pool.transaction(async (tx) => {
        const replayId = await insertReplay(tx, row)
        if (typeof replayId === 'number')
          await insertAudit(tx, [
            {
              ...{ actor: actor.name, action: 'requested', kind: 'replay', changes: {} },
              ...{ entityId: replayId, name: destination.name },
            },
          ])
        return replayId
      })
      if (made === 'replays_too_many') return failure(made, 'too many replays are open: cancel one')
      if (made === 'replay_open')
        return failure(made, `a replay to "${destination.name}" is not over: wait, or cancel it`)
      return created(await findReplay(deps.pool, made))
    },
  })

type Asked = Wish & { readonly destination: Destination }
type Asking = { readonly state: State; readonly actor: string; readonly at: Date }

const wishOf = (
  body: Static<typeof ReplayInput>,
  { state, actor, at }: Asking,
): Asked | { readonly problems: readonly Problem[] } => {
  const destination = state.destinations.get(body.destinationId)
  if (!destination)
    return { problems: [unknown('destination', body.destinationId, '/destinationId')] }
  const span = readSpan(body)
  if ('problems' in span) return span
  const since = span.since ?? at
  const until = span.until ?? at
  if (since >= until) {
    const message = 'until must be after since'
    return { problems: [{ code: 'field_invalid', path: '/until', message }] }
  }
  const sourceIds = body.sourceIds ?? [...destination.sourceIds]
  const strange = sourceIds.findIndex(
    (sourceId) => state.sources.get(sourceId)?.workspaceId !== destination.workspaceId,
  )
  if (strange >= 0)
    return { problems: [unknown('source', sourceIds[strange] ?? 0, `/sourceIds/${strange}`)] }
  const { types = null, events = null, userIds = null, anonymousIds = null } = body
  const { by = 'receivedAt', ratePerSecond = rateDefault } = body
  const filter = { by, since, until, sourceIds, types, events, userIds, anonymousIds }
  const { id: destinationId, workspaceId } = destination
  return { ...filter, workspaceId, destinationId, actor, ratePerSecond, at, destination }
}

const unknown = (what: 'destination' | 'source', id: number, at: string): Problem => ({
  code: `${what}_unknown`,
  path: at,
  message: `there is no ${what} ${id} in this workspace`,
})

/** What is wrong with the archive is for who asks to know: nothing is wrong with the service. */
const unreadable = (error: unknown): { readonly refused: Answer } => {
  if (!(error instanceof Fault) || !/^archive_/.test(error.code)) throw error
  const help = '"millrace archive check" names all that is wrong'
  return { refused: failure('not_ready', `${error.code}: ${error.message}; ${help}`) }
}

const count = async (deps: AdminDeps, wish: Asked, cursor?: string): Promise<Answer> => {
  const { countReplay, source, codecs, suppressions = nobodySuppressed } = deps
  if (!countReplay || !source || !codecs)
    return failure('not_ready', 'this process does not read the log: ask another one')
  const before = cursor === undefined ? null : readCountCursor(cursor)
  if (before && 'code' in before) return refusal([before])
  const { replayCountMsMax } = { ...adminLimits, ...deps.limits }
  const counted = await countReplay(
    { history: source, codecs, suppressions },
    {
      selection: {
        by: wish.by,
        from: wish.since.getTime(),
        until: wish.until.getTime(),
        sourceIds: new Set(wish.sourceIds),
        types: wish.types && new Set(wish.types),
        events: wish.events && new Set(wish.events),
        userIds: wish.userIds && new Set(wish.userIds),
        anonymousIds: wish.anonymousIds && new Set(wish.anonymousIds),
      },
      destination: wish.destination,
      before,
      msMax: replayCountMsMax,
    },
  ).catch(unreadable)
  if ('refused' in counted) return counted.refused
  return ok(countView(counted))
}

type Steer = {
  readonly verb: 'pause' | 'resume' | 'cancel'
  readonly from: readonly ReplayState[]
  readonly to: 'running' | 'paused' | 'cancelled'
}

const summaries = {
  pause: 'Read no further for now; what was sent on its way goes on',
  resume: 'Go on with a paused replay',
  cancel: 'End a replay; what of it was not delivered is given up',
} as const

const steerRoute = (deps: AdminDeps, { verb, from, to }: Steer): Route =>
  route({
    method: 'POST',
    path: `${path}/:id/${verb}`,
    operation: `${verb}Replay`,
    summary: summaries[verb],
    access: 'admin',
    params: idParams,
    answers: { 200: one },
    handle: async ({ params, actor }) => {
      const current = await findReplay(deps.pool, params.id)
      if (!current) return notFound(`replay ${params.id}`)
      const isSteered = await deps.pool.transaction(async (tx) => {
        if (!(await steerReplay(tx, { id: params.id, from, to, at: deps.clock() }))) return false
        const changes = { state: { from: current.state, to } }
        const entry = { action: 'changed', kind: 'replay', entityId: params.id, changes } as const
        await insertAudit(tx, [{ ...entry, actor: actor.name, name: `replay ${params.id}` }])
        return true
      })
      const after = await findReplay(deps.pool, params.id)
      // Twice is once: who cancels what is cancelled has what they want.
      return isSteered || after?.state === to
        ? ok(after)
        : failure('replay_over', `replay ${params.id} is ${after?.state}: it cannot ${verb}`)
    },
  })
