// Routes of replays: a past span of the log sent again to one destination, counted, watched and steered.
import type { Static } from 'typebox'
import type { Problem } from '../control/problem.ts'
import { readState, type State } from '../control/state.ts'
import type { Destination } from '../domain/configuration.ts'
import { nobodySuppressed } from '../domain/suppression.ts'
import { Fault } from '../fault.ts'
import { type Answer, created, failure, ok, refusal } from './answer.ts'
import { type AdminDeps, adminLimits } from './deps.ts'
import { readSpan, type Span } from './instant.ts'
import { auditJob, type JobKind, jobRoutes, oneOf, pathOf } from './job.ts'
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
} from './replay-views.ts'
import { type Route, route } from './route.ts'

const kind: JobKind<ReplayState> = {
  one: 'replay',
  many: 'replays',
  view: ReplayView,
  over: 'replay_over',
  find: findReplay,
  load: loadReplays,
  steer: steerReplay,
  steps: [
    {
      ...{ verb: 'pause', from: ['running'], to: 'paused' },
      summary: 'Read no further for now; what was sent on its way goes on',
    },
    {
      ...{ verb: 'resume', from: ['paused'], to: 'running' },
      summary: 'Go on with a paused replay',
    },
    {
      ...{ verb: 'cancel', from: ['running', 'paused', 'draining'], to: 'cancelled' },
      summary: 'End a replay; what of it was not delivered is given up',
    },
  ],
}

export const replayRoutes = (deps: AdminDeps): readonly Route[] => [
  ...jobRoutes(deps, kind),
  createRoute(deps),
]

const createRoute = (deps: AdminDeps): Route =>
  route({
    method: 'POST',
    path: pathOf(kind),
    operation: 'createReplay',
    summary: 'Send past calls again to one destination; or count them',
    access: 'admin',
    body: ReplayInput,
    answers: { 200: { description: 'What would be sent.', schema: CountView }, 201: oneOf(kind) },
    handle: async ({ body, actor }) => {
      const state = await readState(deps.pool)
      const wish = wishOf(body, { state, actor: actor.name, at: deps.clock() })
      if ('problems' in wish) return refusal(wish.problems)
      if (body.dryRun === true) return count(deps, wish, body.cursor)
      const { destination, ...row } = wish
      const made = await deps.pool.transaction(async (tx) => {
        const replayId = await insertReplay(tx, row)
        if (typeof replayId === 'number')
          await auditJob(tx, kind, {
            ...{ actor, id: replayId, name: destination.name, action: 'requested' },
          })
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
  const { reasons = null } = body
  if (span.since === null && reasons === null) {
    const message = 'since is needed, or reasons'
    return { problems: [{ code: 'field_missing', path: '/since', message }] }
  }
  const { by = 'receivedAt', ratePerSecond = rateDefault } = body
  const since = span.since ?? new Date(0)
  const until = span.until ?? at
  const misplaced = misplacedIn(span, { by, at })
  if (misplaced) return { problems: [misplaced] }
  const sourceIds = body.sourceIds ?? [...destination.sourceIds]
  if (sourceIds.length === 0) return { problems: [withoutSource(destination)] }
  const strange = sourceIds.findIndex(
    (sourceId) => state.sources.get(sourceId)?.workspaceId !== destination.workspaceId,
  )
  if (strange >= 0)
    return { problems: [unknown('source', sourceIds[strange] ?? 0, `/sourceIds/${strange}`)] }
  const { types = null, events = null, userIds = null, anonymousIds = null } = body
  const filter = { by, since, until, sourceIds, types, events, userIds, anonymousIds, reasons }
  const { id: destinationId, workspaceId } = destination
  return { ...filter, workspaceId, destinationId, actor, ratePerSecond, at, destination }
}

type Reading = { readonly by: 'receivedAt' | 'timestamp'; readonly at: Date }

/** A span that nothing can be in. Only a call's own time may lie ahead. */
const misplacedIn = ({ since, until }: Span, { by, at }: Reading): Problem | null => {
  if (since !== null && until !== null && since >= until)
    return { code: 'field_invalid', path: '/until', message: 'until must be after since' }
  if (since !== null && since >= at && (until === null || by === 'receivedAt')) {
    const message = `since lies ahead: it is ${at.toISOString()} now`
    return { code: 'field_invalid', path: '/since', message }
  }
  return null
}

const withoutSource = ({ name }: Destination): Problem => ({
  code: 'field_missing',
  path: '/sourceIds',
  message: `"${name}" takes from no source: name those whose calls it is to get, by sourceIds or --source`,
})

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
    { history: source, codecs, suppressions, pool: deps.pool },
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
        reasons: wish.reasons && new Set(wish.reasons),
      },
      destination: wish.destination,
      at: wish.at,
      before,
      msMax: replayCountMsMax,
    },
  ).catch(unreadable)
  if ('refused' in counted) return counted.refused
  return ok(countView(counted))
}
