// Routes of destinations.
import Type from 'typebox'
import { removeDestination, saveDestination } from '../control/destination.ts'
import { destinationDraft, withSecret } from '../control/destination-draft.ts'
import { edit } from '../control/edit.ts'
import { DestinationCreate, DestinationPatch } from '../control/input.ts'
import { readState } from '../control/state.ts'
import { created, gone, notFound, ok, refusal } from './answer.ts'
import type { AdminDeps } from './deps.ts'
import { type Route, route } from './route.ts'
import { DestinationView, destinationView, idParams, SavedDestinationView } from './views.ts'
import { optionsOf, workspaceOf, workspaceQuery } from './workspaces.ts'

const path = '/admin/v1/destinations'
const one = { description: 'The destination.', schema: DestinationView }
const savedOne = { description: 'The destination.', schema: SavedDestinationView }

export const destinationRoutes = (deps: AdminDeps): readonly Route[] => [
  route({
    method: 'GET',
    path,
    operation: 'listDestinations',
    summary: 'Destinations of one workspace, or of all',
    access: 'viewer',
    query: workspaceQuery,
    answers: {
      200: {
        description: 'The destinations.',
        schema: Type.Object({ destinations: Type.Array(DestinationView) }),
      },
    },
    handle: async ({ query: { workspaceId } }) => {
      const { destinations } = await readState(deps.pool)
      const wanted = [...destinations.values()].filter(
        (destination) => workspaceId === undefined || destination.workspaceId === workspaceId,
      )
      return ok({ destinations: wanted.map((destination) => destinationView(destination)) })
    },
  }),
  route({
    method: 'GET',
    path: `${path}/:id`,
    operation: 'getDestination',
    summary: 'One destination',
    access: 'viewer',
    params: idParams,
    answers: { 200: one },
    handle: async ({ params }) => {
      const destination = (await readState(deps.pool)).destinations.get(params.id)
      return destination ? ok(destinationView(destination)) : notFound(`destination ${params.id}`)
    },
  }),
  ...changeRoutes(deps),
  deleteRoute(deps),
]

const changeRoutes = (deps: AdminDeps): readonly Route[] => [
  route({
    method: 'POST',
    path,
    operation: 'createDestination',
    summary: 'Create a destination with one to five webhooks',
    access: 'admin',
    body: DestinationCreate,
    answers: { 201: savedOne },
    handle: ({ body, actor }) =>
      edit(deps.pool, optionsOf(deps, actor), async (editing) => {
        const workspace = workspaceOf(editing.state, body)
        if ('problems' in workspace) return refusal(workspace.problems)
        const { name, sourceIds = [] } = body
        const base = { workspaceId: workspace.id, name, sourceIds }
        const { given, generated } = withSecret(body)
        const draft = destinationDraft(base, given, null)
        const saved = await saveDestination(editing, { draft, current: null, path: '' })
        return saved.action === 'refused'
          ? refusal(saved.problems)
          : created({ ...destinationView(saved.entity), ...generated })
      }),
  }),
  route({
    method: 'PATCH',
    path: `${path}/:id`,
    operation: 'changeDestination',
    summary: 'Change the fields given; lists are replaced whole',
    access: 'admin',
    params: idParams,
    body: DestinationPatch,
    answers: { 200: savedOne },
    handle: ({ params, body, actor }) =>
      edit(deps.pool, optionsOf(deps, actor), async (editing) => {
        const current = editing.state.destinations.get(params.id)
        if (!current) return notFound(`destination ${params.id}`)
        const { name = current.name, sourceIds = [...current.sourceIds] } = body
        const base = { workspaceId: current.workspaceId, name, sourceIds }
        const { given, generated } = withSecret(body)
        const draft = destinationDraft(base, given, current)
        const saved = await saveDestination(editing, { draft, current, path: '' })
        return saved.action === 'refused'
          ? refusal(saved.problems)
          : ok({ ...destinationView(saved.entity), ...generated })
      }),
  }),
]

const deleteRoute = (deps: AdminDeps): Route =>
  route({
    method: 'DELETE',
    path: `${path}/:id`,
    operation: 'deleteDestination',
    summary: 'Delete a destination; what is parked for it is no longer tried',
    access: 'admin',
    params: idParams,
    answers: { 204: { description: 'It is gone.' } },
    handle: ({ params, actor }) =>
      edit(deps.pool, optionsOf(deps, actor), async (editing) => {
        const current = editing.state.destinations.get(params.id)
        if (!current) return notFound(`destination ${params.id}`)
        await removeDestination(editing, current)
        return gone
      }),
  })
