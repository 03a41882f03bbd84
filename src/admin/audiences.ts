// Routes of audiences.
import Type from 'typebox'
import {
  audienceDefaults,
  optionsOfAudience,
  removeAudience,
  saveAudience,
} from '../control/audience.ts'
import { formatDuration } from '../control/duration.ts'
import { edit } from '../control/edit.ts'
import { AudienceCreate, AudiencePatch } from '../control/input.ts'
import { readState } from '../control/state.ts'
import type { Audience } from '../domain/configuration.ts'
import type { JsonObject } from '../domain/message.ts'
import { created, gone, notFound, ok, refusal } from './answer.ts'
import type { AdminDeps } from './deps.ts'
import { type Route, route } from './route.ts'
import { loadStandings } from './store.ts'
import { AudienceView, audienceView, idParams } from './views.ts'
import { optionsOf, workspaceOf, workspaceQuery } from './workspaces.ts'

const path = '/admin/v1/audiences'
const one = { description: 'The audience.', schema: AudienceView }

export const audienceRoutes = (deps: AdminDeps): readonly Route[] => [
  route({
    method: 'GET',
    path,
    operation: 'listAudiences',
    summary: 'Audiences of one workspace, or of all, with how many members each has',
    access: 'viewer',
    query: workspaceQuery,
    answers: {
      200: {
        description: 'The audiences.',
        schema: Type.Object({ audiences: Type.Array(AudienceView) }),
      },
    },
    handle: async ({ query: { workspaceId } }) => {
      const { audiences } = await readState(deps.pool)
      const wanted = [...audiences.values()].filter(
        (audience) => workspaceId === undefined || audience.workspaceId === workspaceId,
      )
      return ok({ audiences: await viewsOf(deps, wanted) })
    },
  }),
  route({
    method: 'GET',
    path: `${path}/:id`,
    operation: 'getAudience',
    summary: 'One audience, with how many members it has',
    access: 'viewer',
    params: idParams,
    answers: { 200: one },
    handle: async ({ params }) => {
      const audience = (await readState(deps.pool)).audiences.get(params.id)
      if (!audience) return notFound(`audience ${params.id}`)
      const [view] = await viewsOf(deps, [audience])
      return ok(view)
    },
  }),
  ...changeRoutes(deps),
  deleteRoute(deps),
]

const changeRoutes = (deps: AdminDeps): readonly Route[] => [
  route({
    method: 'POST',
    path,
    operation: 'createAudience',
    summary: 'Create an audience; its property key is fixed from then on',
    access: 'admin',
    body: AudienceCreate,
    answers: { 201: one },
    handle: async ({ body, actor }) => {
      const saved = await edit(deps.pool, optionsOf(deps, actor), async (editing) => {
        const workspace = workspaceOf(editing.state, body)
        if ('problems' in workspace) return { action: 'refused', ...workspace } as const
        const draft = {
          ...audienceDefaults,
          destinationIds: [],
          ...body,
          where: body.where as JsonObject,
          workspaceId: workspace.id,
        }
        return saveAudience(editing, { draft, current: null, path: '' })
      })
      if (saved.action === 'refused') return refusal(saved.problems)
      const [view] = await viewsOf(deps, [saved.entity])
      return created(view)
    },
  }),
  route({
    method: 'PATCH',
    path: `${path}/:id`,
    operation: 'changeAudience',
    summary: 'Change the fields given; a new name does not change the key',
    access: 'admin',
    params: idParams,
    body: AudiencePatch,
    answers: { 200: one },
    handle: async ({ params, body, actor }) => {
      const saved = await edit(deps.pool, optionsOf(deps, actor), async (editing) => {
        const current = editing.state.audiences.get(params.id)
        if (!current) return null
        const { where = current.condition, ...fields } = body
        const draft = {
          workspaceId: current.workspaceId,
          name: current.name,
          kind: current.kind,
          ...optionsOfAudience(current),
          destinationIds: current.destinationIds,
          syncEvery: formatDuration(current.syncEveryMs),
          ...fields,
          where: where as JsonObject,
        }
        return saveAudience(editing, { draft, current, path: '' })
      })
      if (saved === null) return notFound(`audience ${params.id}`)
      if (saved.action === 'refused') return refusal(saved.problems)
      const [view] = await viewsOf(deps, [saved.entity])
      return ok(view)
    },
  }),
]

const deleteRoute = (deps: AdminDeps): Route =>
  route({
    method: 'DELETE',
    path: `${path}/:id`,
    operation: 'deleteAudience',
    summary: 'Delete an audience; its property key is not given out again',
    access: 'admin',
    params: idParams,
    answers: { 204: { description: 'It is gone.' } },
    handle: ({ params, actor }) =>
      edit(deps.pool, optionsOf(deps, actor), async (editing) => {
        const current = editing.state.audiences.get(params.id)
        if (!current) return notFound(`audience ${params.id}`)
        await removeAudience(editing, current)
        return gone
      }),
  })

const viewsOf = async (deps: AdminDeps, audiences: readonly Audience[]) => {
  const ids = audiences.map(({ id }) => id)
  const standings = await loadStandings(deps.pool, ids)
  return audiences.map((audience) =>
    audienceView(
      audience,
      standings.get(audience.id) ?? { state: 'backfilling', members: 0, anonymousMembers: 0 },
    ),
  )
}
