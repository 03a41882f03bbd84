// Routes of destinations.
import Type, { type Static } from 'typebox'
import {
  type DestinationDraft,
  destinationDefaults,
  removeDestination,
  saveDestination,
} from '../control/destination.ts'
import { formatDuration } from '../control/duration.ts'
import { edit } from '../control/edit.ts'
import { DestinationCreate, DestinationPatch, type WebhookInput } from '../control/input.ts'
import { readState } from '../control/state.ts'
import type { Destination } from '../domain/configuration.ts'
import { created, gone, notFound, ok, refusal } from './answer.ts'
import type { AdminDeps } from './deps.ts'
import { type Route, route } from './route.ts'
import { DestinationView, destinationView, idParams } from './views.ts'
import { optionsOf, workspaceOf, workspaceQuery } from './workspaces.ts'

const path = '/admin/v1/destinations'
const one = { description: 'The destination.', schema: DestinationView }

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
    handle: async ({ query: { workspaceId }, actor }) => {
      const { destinations } = await readState(deps.pool)
      const wanted = [...destinations.values()].filter(
        (destination) => workspaceId === undefined || destination.workspaceId === workspaceId,
      )
      return ok({ destinations: wanted.map((destination) => destinationView(destination, actor)) })
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
    handle: async ({ params, actor }) => {
      const destination = (await readState(deps.pool)).destinations.get(params.id)
      return destination
        ? ok(destinationView(destination, actor))
        : notFound(`destination ${params.id}`)
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
    answers: { 201: one },
    handle: ({ body, actor }) =>
      edit(deps.pool, optionsOf(deps, actor), async (editing) => {
        const workspace = workspaceOf(editing.state, body)
        if ('problems' in workspace) return refusal(workspace.problems)
        const { webhooks, ...fields } = body
        const draft: DestinationDraft = {
          ...destinationDefaults,
          sourceIds: [],
          sharedSecret: null,
          ...fields,
          workspaceId: workspace.id,
          webhooks: webhooksOf(webhooks ?? []),
        }
        const saved = await saveDestination(editing, { draft, current: null, path: '' })
        return saved.action === 'refused'
          ? refusal(saved.problems)
          : created(destinationView(saved.entity, actor))
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
    answers: { 200: one },
    handle: ({ params, body, actor }) =>
      edit(deps.pool, optionsOf(deps, actor), async (editing) => {
        const current = editing.state.destinations.get(params.id)
        if (!current) return notFound(`destination ${params.id}`)
        const { webhooks, ...fields } = body
        const draft: DestinationDraft = {
          ...draftOf(current),
          ...fields,
          ...(webhooks ? { webhooks: webhooksOf(webhooks) } : {}),
        }
        const saved = await saveDestination(editing, { draft, current, path: '' })
        return saved.action === 'refused'
          ? refusal(saved.problems)
          : ok(destinationView(saved.entity, actor))
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

const draftOf = ({
  id: _,
  historicalAfterMs,
  sourceIds,
  ...rest
}: Destination): DestinationDraft => ({
  ...rest,
  sourceIds: [...sourceIds],
  historicalAfter: formatDuration(historicalAfterMs),
})

const webhooksOf = (webhooks: readonly Static<typeof WebhookInput>[]) =>
  webhooks.map(({ url, headers = {} }) => ({ url, headers }))
