// Routes of sources.
import Type from 'typebox'
import { edit } from '../control/edit.ts'
import { SourceCreate, SourcePatch } from '../control/input.ts'
import { removeSource, saveSource } from '../control/source.ts'
import { settingsOf } from '../control/source-settings.ts'
import { readState } from '../control/state.ts'
import { created, gone, notFound, ok, refusal } from './answer.ts'
import type { AdminDeps } from './deps.ts'
import { type Route, route } from './route.ts'
import { idParams, SavedSourceView, SourceView, sourceView } from './views.ts'
import { optionsOf, workspaceOf, workspaceQuery } from './workspaces.ts'

const path = '/admin/v1/sources'
const one = { description: 'The source.', schema: SourceView }
const saved = { description: 'The source as saved.', schema: SavedSourceView }

export const sourceRoutes = (deps: AdminDeps): readonly Route[] => [
  route({
    method: 'GET',
    path,
    operation: 'listSources',
    summary: 'Sources of one workspace, or of all',
    access: 'viewer',
    query: workspaceQuery,
    answers: {
      200: {
        description: 'The sources.',
        schema: Type.Object({ sources: Type.Array(SourceView) }),
      },
    },
    handle: async ({ query: { workspaceId } }) => {
      const { sources } = await readState(deps.pool)
      const wanted = [...sources.values()].filter(
        (source) => workspaceId === undefined || source.workspaceId === workspaceId,
      )
      return ok({ sources: wanted.map(sourceView) })
    },
  }),
  route({
    method: 'GET',
    path: `${path}/:id`,
    operation: 'getSource',
    summary: 'One source',
    access: 'viewer',
    params: idParams,
    answers: { 200: one },
    handle: async ({ params }) => {
      const source = (await readState(deps.pool)).sources.get(params.id)
      return source ? ok(sourceView(source)) : notFound(`source ${params.id}`)
    },
  }),
  ...changeRoutes(deps),
  deleteRoute(deps),
]

const changeRoutes = (deps: AdminDeps): readonly Route[] => [
  route({
    method: 'POST',
    path,
    operation: 'createSource',
    summary: 'Create a source; its secret key is shown in this answer only',
    access: 'admin',
    body: SourceCreate,
    answers: { 201: saved },
    handle: ({ body, actor }) =>
      edit(deps.pool, optionsOf(deps, actor), async (editing) => {
        const workspace = workspaceOf(editing.state, body)
        if ('problems' in workspace) return refusal(workspace.problems)
        const result = await saveSource(editing, {
          draft: {
            ...body,
            workspaceId: workspace.id,
            enabled: body.enabled ?? true,
            settings: settingsOf(body),
          },
          current: null,
          path: '',
        })
        return result.action === 'refused'
          ? refusal(result.problems)
          : created(sourceView(result.entity))
      }),
  }),
  route({
    method: 'PATCH',
    path: `${path}/:id`,
    operation: 'changeSource',
    summary: 'Change the fields given; a new secret key replaces the old at once',
    access: 'admin',
    params: idParams,
    body: SourcePatch,
    answers: { 200: saved },
    handle: ({ params, body, actor }) =>
      edit(deps.pool, optionsOf(deps, actor), async (editing) => {
        const current = editing.state.sources.get(params.id)
        if (!current) return notFound(`source ${params.id}`)
        const { workspaceId, name, class: sourceClass, enabled } = current
        const result = await saveSource(editing, {
          draft: {
            ...{ workspaceId, name, class: sourceClass, enabled },
            ...body,
            settings: settingsOf(body),
          },
          current,
          path: '',
        })
        return result.action === 'refused'
          ? refusal(result.problems)
          : ok(sourceView(result.entity))
      }),
  }),
]

const deleteRoute = (deps: AdminDeps): Route =>
  route({
    method: 'DELETE',
    path: `${path}/:id`,
    operation: 'deleteSource',
    summary: 'Delete a source; its write key is refused from then on',
    access: 'admin',
    params: idParams,
    answers: { 204: { description: 'It is gone.' } },
    handle: ({ params, actor }) =>
      edit(deps.pool, optionsOf(deps, actor), async (editing) => {
        const current = editing.state.sources.get(params.id)
        if (!current) return notFound(`source ${params.id}`)
        await removeSource(editing, current)
        return gone
      }),
  })
