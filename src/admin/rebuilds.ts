// Routes of rebuilds: the projector's state folded anew from the log, watched, accepted and cancelled.
import Type from 'typebox'
import { insertAudit } from '../control/audit.ts'
import { AnyObject } from '../control/schema.ts'
import { created, failure, notFound, ok } from './answer.ts'
import type { AdminDeps } from './deps.ts'
import {
  acceptRebuild,
  cancelRebuild,
  findRebuild,
  loadRebuilds,
  type RebuildView,
  readProgress,
  rebuildStates,
  requestRebuild,
} from './rebuild-store.ts'
import { type Actor, type Route, route } from './route.ts'
import { dateTime, id, idParams, named, nullable } from './views.ts'

const path = '/admin/v1/rebuilds'

const count = (description: string) => Type.Integer({ minimum: 0, description })

const View = named('Rebuild', {
  id,
  state: Type.Union(rebuildStates.map((state) => Type.Literal(state))),
  actor: Type.String(),
  verifyOnly: Type.Boolean({ description: 'Only compared with the live state, never swapped in.' }),
  fromKept: Type.Boolean({ description: 'From what the log keeps, its beginning or not.' }),
  acceptsDifferences: Type.Boolean(),
  createdAt: dateTime,
  endedAt: nullable(dateTime),
  reason: nullable(Type.String({ description: 'What it waits for, or why it failed.' })),
  comparedAt: nullable(dateTime),
  users: nullable(count('Compared.')),
  differing: nullable(count('Of them, those that are not the same.')),
  differences: nullable(Type.Array(AnyObject, { description: 'The first of those.' })),
  progress: nullable(
    Type.Object(
      {
        folded: count('Log offsets behind it, of all partitions.'),
        live: count('The same of the live projector.'),
      },
      { description: 'While it is open.' },
    ),
  ),
})
const one = { description: 'The rebuild.', schema: View }

const optional = (description: string) => Type.Optional(Type.Boolean({ description }))

export const rebuildRoutes = (deps: AdminDeps): readonly Route[] => [
  route({
    method: 'GET',
    path,
    operation: 'listRebuilds',
    summary: 'Rebuilds of the projected state, newest first',
    access: 'viewer',
    answers: {
      200: { description: 'The last 20.', schema: Type.Object({ rebuilds: Type.Array(View) }) },
    },
    handle: async () => {
      const found = await loadRebuilds(deps.pool, 20)
      return ok({ rebuilds: await Promise.all(found.map((each) => withProgress(deps, each))) })
    },
  }),
  route({
    method: 'GET',
    path: `${path}/:id`,
    operation: 'getRebuild',
    summary: 'How a rebuild goes, and in what it differs from the live state',
    access: 'viewer',
    params: idParams,
    answers: { 200: one },
    handle: async ({ params }) => {
      const found = await findRebuild(deps.pool, params.id)
      return found ? ok(await withProgress(deps, found)) : notFound(`rebuild ${params.id}`)
    },
  }),
  createRoute(deps),
  steerRoute(deps, {
    verb: 'cancel',
    summary: 'End a rebuild; the live state stays as it is',
    steer: (rebuildId) => cancelRebuild(deps.pool, rebuildId, deps.clock()),
    wanted: ['cancelled'],
  }),
  steerRoute(deps, {
    verb: 'accept',
    summary: 'Swap in a rebuild that differs from the live state',
    steer: (rebuildId) => acceptRebuild(deps.pool, rebuildId),
    wanted: [],
  }),
]

const createRoute = (deps: AdminDeps): Route =>
  route({
    method: 'POST',
    path,
    operation: 'createRebuild',
    summary:
      'Fold the state of all users anew from the log, compare it with the live one, swap it in',
    access: 'admin',
    body: Type.Object(
      {
        verifyOnly: optional('Compare only.'),
        fromKept: optional(
          'Also where the log no longer has its beginning: older history is lost.',
        ),
        acceptDifferences: optional('Swap it in whatever differs.'),
      },
      { additionalProperties: false },
    ),
    bodyOptional: true,
    answers: { 201: one },
    handle: async ({ body, actor }) => {
      const { verifyOnly = false, fromKept = false, acceptDifferences = false } = body
      const wish = { verifyOnly, fromKept, acceptsDifferences: acceptDifferences }
      const made = await deps.pool.transaction(async (tx) => {
        const at = deps.clock()
        const rebuildId = await requestRebuild(tx, { ...wish, actor: actor.name, at })
        if (rebuildId !== null) await audit(tx, { actor, id: rebuildId, action: 'requested' })
        return rebuildId
      })
      return made === null
        ? failure('rebuild_open', 'another rebuild is open: wait for its end, or cancel it')
        : created(await viewOf(deps, made))
    },
  })

const viewOf = async (deps: AdminDeps, rebuildId: number) =>
  withProgress(deps, (await findRebuild(deps.pool, rebuildId)) as RebuildView)

/** A schema that is dropped just now is read no more. */
const withProgress = async (deps: AdminDeps, found: RebuildView) => ({
  ...found,
  progress:
    found.endedAt === null ? await readProgress(deps.pool, found.id).catch(() => null) : null,
})

type Steer = {
  readonly verb: 'cancel' | 'accept'
  readonly summary: string
  steer(id: number): Promise<boolean>
  /** Who finds it in one of these has what they want. */
  readonly wanted: readonly RebuildView['state'][]
}

const steerRoute = (deps: AdminDeps, { verb, summary, steer, wanted }: Steer): Route =>
  route({
    method: 'POST',
    path: `${path}/:id/${verb}`,
    operation: `${verb}Rebuild`,
    summary,
    access: 'admin',
    params: idParams,
    answers: { 200: one },
    handle: async ({ params, actor }) => {
      const before = await findRebuild(deps.pool, params.id)
      if (!before) return notFound(`rebuild ${params.id}`)
      const isSteered = await steer(params.id)
      const after = await viewOf(deps, params.id)
      if (isSteered) {
        const changes = { state: { from: before.state, to: after.state } }
        await audit(deps.pool, { actor, id: params.id, action: 'changed', changes })
      } else if (!wanted.includes(after.state))
        return failure('rebuild_over', `rebuild ${params.id} is ${after.state}: it cannot ${verb}`)
      return ok(after)
    },
  })

type Entry = Pick<Parameters<typeof insertAudit>[1][number], 'action'> & {
  readonly actor: Actor
  readonly id: number
  readonly changes?: Parameters<typeof insertAudit>[1][number]['changes']
}

const audit = (
  sql: Parameters<typeof insertAudit>[0],
  { actor, id: entityId, action, changes = {} }: Entry,
): Promise<void> => {
  const name = `rebuild ${entityId}`
  return insertAudit(sql, [{ actor: actor.name, action, kind: 'rebuild', entityId, name, changes }])
}
