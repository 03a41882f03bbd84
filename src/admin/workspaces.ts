// Routes of workspaces, and how the other routes find theirs.
import Type from 'typebox'
import { edit } from '../control/edit.ts'
import { WorkspaceCreate, WorkspacePatch } from '../control/input.ts'
import type { Problem } from '../control/problem.ts'
import { readState, type State } from '../control/state.ts'
import { removeWorkspace, saveWorkspace } from '../control/workspace.ts'
import { created, gone, notFound, ok, refusal } from './answer.ts'
import type { AdminDeps } from './deps.ts'
import { type Route, route } from './route.ts'
import { idParams, WorkspaceView, workspaceView } from './views.ts'

const path = '/admin/v1/workspaces'
const one = { description: 'The workspace.', schema: WorkspaceView }

export const workspaceRoutes = (deps: AdminDeps): readonly Route[] => [
  route({
    method: 'GET',
    path,
    operation: 'listWorkspaces',
    summary: 'All workspaces',
    access: 'viewer',
    answers: {
      200: {
        description: 'The workspaces.',
        schema: Type.Object({ workspaces: Type.Array(WorkspaceView) }),
      },
    },
    handle: async () => {
      const { workspaces } = await readState(deps.pool)
      return ok({ workspaces: [...workspaces.values()].map(workspaceView) })
    },
  }),
  route({
    method: 'POST',
    path,
    operation: 'createWorkspace',
    summary: 'Create a workspace',
    access: 'admin',
    body: WorkspaceCreate,
    answers: { 201: one },
    handle: ({ body, actor }) =>
      edit(deps.pool, optionsOf(deps, actor), async (editing) => {
        const draft = { regionalAccess: false, grandfathered: false, ...body }
        const saved = await saveWorkspace(editing, { draft, current: null, path: '' })
        return saved.action === 'refused'
          ? refusal(saved.problems)
          : created(workspaceView(saved.entity))
      }),
  }),
  route({
    method: 'GET',
    path: `${path}/:id`,
    operation: 'getWorkspace',
    summary: 'One workspace',
    access: 'viewer',
    params: idParams,
    answers: { 200: one },
    handle: async ({ params }) => {
      const workspace = (await readState(deps.pool)).workspaces.get(params.id)
      return workspace ? ok(workspaceView(workspace)) : notFound(`workspace ${params.id}`)
    },
  }),
  ...changeRoutes(deps),
]

const changeRoutes = (deps: AdminDeps): readonly Route[] => [
  route({
    method: 'PATCH',
    path: `${path}/:id`,
    operation: 'changeWorkspace',
    summary: 'Change the fields given',
    access: 'admin',
    params: idParams,
    body: WorkspacePatch,
    answers: { 200: one },
    handle: ({ params, body, actor }) =>
      edit(deps.pool, optionsOf(deps, actor), async (editing) => {
        const current = editing.state.workspaces.get(params.id)
        if (!current) return notFound(`workspace ${params.id}`)
        const saved = await saveWorkspace(editing, {
          draft: { ...current, ...body },
          current,
          path: '',
        })
        return saved.action === 'refused'
          ? refusal(saved.problems)
          : ok(workspaceView(saved.entity))
      }),
  }),
  route({
    method: 'DELETE',
    path: `${path}/:id`,
    operation: 'deleteWorkspace',
    summary: 'Delete an empty workspace',
    access: 'admin',
    params: idParams,
    answers: { 204: { description: 'It is gone.' } },
    handle: ({ params, actor }) =>
      edit(deps.pool, optionsOf(deps, actor), async (editing) => {
        const current = editing.state.workspaces.get(params.id)
        if (!current) return notFound(`workspace ${params.id}`)
        const problems = await removeWorkspace(editing, current)
        return problems.length > 0 ? refusal(problems) : gone
      }),
  }),
]

export const optionsOf = (deps: AdminDeps, actor: { readonly name: string }) => ({
  actor: actor.name,
  addresses: deps.addresses,
  keyring: deps.keyring,
})

export const workspaceQuery = Type.Object(
  { workspaceId: Type.Optional(Type.Integer({ minimum: 1, maximum: 2_147_483_647 })) },
  { additionalProperties: false },
)

type Wish = { readonly workspaceId?: number }

/** The workspace named, or the only one there is. */
export const workspaceOf = (
  state: State,
  { workspaceId }: Wish,
): { readonly id: number } | { readonly problems: readonly Problem[] } => {
  const path = '/workspaceId'
  if (workspaceId !== undefined)
    return state.workspaces.has(workspaceId)
      ? { id: workspaceId }
      : {
          problems: [
            { code: 'workspace_unknown', path, message: `there is no workspace ${workspaceId}` },
          ],
        }
  const [only, another] = [...state.workspaces.keys()]
  return only !== undefined && another === undefined
    ? { id: only }
    : {
        problems: [
          {
            code: 'workspace_required',
            path,
            message: `there are ${state.workspaces.size} workspaces: name one by workspaceId`,
          },
        ],
      }
}
