// Routes that run a sync now: answered when its messages are appended, or at once when nobody waits.
import { setTimeout as sleep } from 'node:timers/promises'
import Type from 'typebox'
import { insertAudit } from '../control/audit.ts'
import { readState } from '../control/state.ts'
import { type Answer, accepted, failure, notFound, ok, refusal } from './answer.ts'
import { ofKind } from './audiences.ts'
import { type AdminDeps, adminLimits, type SyncRun } from './deps.ts'
import { type Actor, type Route, route } from './route.ts'
import { dateTime, idParams, named, nullable } from './views.ts'

const SyncView = named('Sync', {
  id: Type.Integer({ minimum: 1 }),
  state: Type.Union([
    Type.Literal('requested'),
    Type.Literal('running'),
    Type.Literal('finished'),
    Type.Literal('failed'),
  ]),
  startedAt: nullable(dateTime),
  finishedAt: nullable(dateTime),
  emitted: Type.Integer({ minimum: 0, description: 'Messages decided so far.' }),
  reason: nullable(Type.String({ description: 'Why it failed.' })),
})

const syncView = ({ id, state, startedAt, finishedAt, emitted, reason }: SyncRun) => ({
  id,
  state,
  startedAt,
  finishedAt,
  emitted,
  reason: reason ?? null,
})

const waitQuery = Type.Object(
  {
    wait: Type.Optional(
      Type.Boolean({ description: 'false answers 202 at once; ask GET /admin/v1/syncs/{id}.' }),
    ),
  },
  { additionalProperties: false },
)

const allMembers = Type.Optional(
  Type.Boolean({
    description:
      'Every member is sent to every destination again, before what changed: for one that lost what it was told.',
  }),
)

const answers = {
  200: { description: 'Every message of the run is appended.', schema: SyncView },
  202: { description: 'The run goes on.', schema: SyncView },
}

export const syncRoutes = (deps: AdminDeps): readonly Route[] => [
  syncOneRoute(deps, { kind: 'audience', path: '/admin/v1/audiences', noun: 'audience' }),
  syncOneRoute(deps, { kind: 'trait', path: '/admin/v1/traits', noun: 'computed trait' }),
  route({
    method: 'POST',
    path: '/admin/v1/sync',
    operation: 'sync',
    summary: 'Sync the audiences and computed traits given, or all, now',
    access: 'admin',
    query: waitQuery,
    body: Type.Object(
      { audienceIds: Type.Optional(Type.Array(Type.Integer({ minimum: 1 }))), allMembers },
      { additionalProperties: false },
    ),
    bodyOptional: true,
    answers,
    handle: async ({ query, body, actor, signal }) => {
      const { audiences } = await readState(deps.pool)
      const audienceIds = body.audienceIds ?? [...audiences.keys()]
      const unknown = audienceIds.filter((id) => !audiences.has(id))
      if (unknown.length > 0 || audienceIds.length === 0)
        return refusal([
          {
            code: 'audience_unknown',
            path: '/audienceIds',
            message:
              unknown.length > 0
                ? `there is no audience ${unknown.join(', ')}`
                : 'there is no audience to sync',
          },
        ])
      const asking = { actor, signal, waits: query.wait ?? true }
      return runSync(deps, { audienceIds, allMembers: body.allMembers ?? false }, asking)
    },
  }),
  route({
    method: 'GET',
    path: '/admin/v1/syncs/:id',
    operation: 'getSync',
    summary: 'How a sync that was asked for goes',
    access: 'viewer',
    params: idParams,
    answers: { 200: { description: 'The run.', schema: SyncView } },
    handle: async ({ params }) => {
      const run = await deps.findSyncRun(deps.pool, params.id)
      return run ? ok(syncView(run)) : notFound(`sync ${params.id}`)
    },
  }),
]

type One = { readonly kind: 'audience' | 'trait'; readonly path: string; readonly noun: string }

const syncOneRoute = (deps: AdminDeps, { kind, path, noun }: One): Route =>
  route({
    method: 'POST',
    path: `${path}/:id/sync`,
    operation: kind === 'trait' ? 'syncTrait' : 'syncAudience',
    summary: `Sync one ${noun} now`,
    access: 'admin',
    params: idParams,
    query: waitQuery,
    body: Type.Object({ allMembers }, { additionalProperties: false }),
    bodyOptional: true,
    answers,
    handle: async ({ params, query, body, actor, signal }) => {
      const { audiences } = await readState(deps.pool)
      if (!ofKind(audiences, kind, params.id)) return notFound(`${noun} ${params.id}`)
      const asking = { actor, signal, waits: query.wait ?? true }
      const wish = { audienceIds: [params.id], allMembers: body.allMembers ?? false }
      return runSync(deps, wish, asking)
    },
  })

type Wish = { readonly audienceIds: readonly number[]; readonly allMembers: boolean }

type Asking = { readonly actor: Actor; readonly signal: AbortSignal; readonly waits: boolean }

const runSync = async (
  deps: AdminDeps,
  { audienceIds, allMembers }: Wish,
  { actor, signal, waits }: Asking,
): Promise<Answer> => {
  const id = await deps.pool.transaction(async (tx) => {
    await insertAudit(tx, [
      {
        actor: actor.name,
        action: 'requested',
        kind: 'sync',
        entityId: null,
        name: 'sync',
        changes: {
          audienceIds: { to: audienceIds },
          ...(allMembers ? { allMembers: { to: true } } : {}),
        },
      },
    ])
    return deps.requestSync(tx, { audienceIds, allMembers, at: deps.clock() })
  })
  const { syncPollMs, syncWaitMsMax } = { ...adminLimits, ...deps.limits }
  const endsAt = performance.now() + syncWaitMsMax
  for (;;) {
    const run = await deps.findSyncRun(deps.pool, id)
    if (!run) return failure('internal', `sync ${id} has vanished`)
    if (run.state === 'finished') return ok(syncView(run))
    // Who does not wait asks after the run, and learns there how it ended.
    if (!waits) return accepted(syncView(run))
    if (run.state === 'failed')
      return failure('sync_failed', `sync ${id} failed: ${run.reason ?? 'no reason is known'}`)
    if (performance.now() >= endsAt || signal.aborted) return accepted(syncView(run))
    await sleep(syncPollMs)
  }
}
