// Routes of deletion requests: what was asked for, by calls and by operators, and asking for one.
import Type from 'typebox'
import { insertAudit } from '../control/audit.ts'
import { edit } from '../control/edit.ts'
import type { Problem } from '../control/problem.ts'
import { created, notFound, ok, refusal } from './answer.ts'
import { findDeletion, insertDeletion, loadDeletions } from './deletion-store.ts'
import type { AdminDeps } from './deps.ts'
import { type Route, route } from './route.ts'
import { dateTime, id, idParams, named, nullable } from './views.ts'
import { optionsOf, workspaceOf } from './workspaces.ts'

const path = '/admin/v1/deletions'

const DeletionView = named('Deletion', {
  id,
  workspaceId: id,
  userId: nullable(Type.String()),
  anonymousId: nullable(Type.String()),
  origin: Type.Union([Type.Literal('call'), Type.Literal('api')]),
  sourceId: nullable(Type.Integer({ description: 'Whose secret key the call came with.' })),
  state: Type.Union([Type.Literal('received')]),
  createdAt: dateTime,
})

const rowId = Type.Integer({ minimum: 1, maximum: 2_147_483_647 })
const userText = Type.String({ minLength: 1, maxLength: 512 })

export const deletionRoutes = (deps: AdminDeps): readonly Route[] => [
  route({
    method: 'GET',
    path,
    operation: 'listDeletions',
    summary: 'Deletion requests of one workspace, or of all, newest first',
    access: 'viewer',
    query: Type.Object(
      {
        workspaceId: Type.Optional(rowId),
        before: Type.Optional(rowId),
        limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 500 })),
      },
      { additionalProperties: false },
    ),
    answers: {
      200: {
        description: 'The requests.',
        schema: Type.Object({ deletions: Type.Array(DeletionView) }),
      },
    },
    handle: async ({ query: { workspaceId = null, before = null, limit = 100 } }) =>
      ok({ deletions: await loadDeletions(deps.pool, { workspaceId, before, limit }) }),
  }),
  route({
    method: 'GET',
    path: `${path}/:id`,
    operation: 'getDeletion',
    summary: 'One deletion request',
    access: 'viewer',
    params: idParams,
    answers: { 200: { description: 'The request.', schema: DeletionView } },
    handle: async ({ params }) => {
      const found = await findDeletion(deps.pool, params.id)
      return found ? ok(found) : notFound(`deletion request ${params.id}`)
    },
  }),
  createRoute(deps),
]

const createRoute = (deps: AdminDeps): Route =>
  route({
    method: 'POST',
    path,
    operation: 'createDeletion',
    summary: 'Ask for a user to be deleted',
    access: 'admin',
    body: Type.Object(
      {
        workspaceId: Type.Optional(rowId),
        userId: Type.Optional(userText),
        anonymousId: Type.Optional(userText),
      },
      { additionalProperties: false },
    ),
    answers: { 201: { description: 'The request as received.', schema: DeletionView } },
    handle: ({ body, actor }) =>
      edit(deps.pool, optionsOf(deps, actor), async ({ tx, state }) => {
        const workspace = workspaceOf(state, body)
        const problems = [
          ...problemsOf(body),
          ...('problems' in workspace ? workspace.problems : []),
        ]
        if ('problems' in workspace || problems.length > 0) return refusal(problems)
        const made = await insertDeletion(tx, {
          workspaceId: workspace.id,
          userId: body.userId ?? null,
          anonymousId: body.anonymousId ?? null,
          createdAt: deps.clock(),
        })
        // Without the user's id, which must not outlast the user.
        await insertAudit(tx, [
          {
            actor: actor.name,
            action: 'requested',
            kind: 'deletion',
            entityId: made.id,
            name: `deletion request ${made.id}`,
            changes: {},
          },
        ])
        return created(made)
      }),
  })

type Wish = { readonly userId?: string; readonly anonymousId?: string }

const problemsOf = ({ userId, anonymousId }: Wish): readonly Problem[] => {
  if (userId === undefined && anonymousId === undefined)
    return [
      { code: 'field_missing', path: '/userId', message: 'name the user by userId or anonymousId' },
    ]
  return Object.entries({ userId, anonymousId }).flatMap(([field, value = '']) =>
    isStored(value)
      ? []
      : [
          {
            code: 'field_invalid' as const,
            path: `/${field}`,
            message: `${field} holds a character that no stored id can hold`,
          },
        ],
  )
}

/** Collecting replaces what is not well formed, and Postgres holds no NUL. */
const isStored = (text: string) => text.isWellFormed() && !text.includes('\0')
