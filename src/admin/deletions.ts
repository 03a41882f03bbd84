// Routes of deletion requests: what was asked for, by calls and by operators, and asking for one.
import Type from 'typebox'
import { insertAudit } from '../control/audit.ts'
import { edit } from '../control/edit.ts'
import { requestDeletion } from '../erase/ask.ts'
import { requestKinds, requestLimits } from '../erase/request.ts'
import { type Answer, created, failure, notFound, ok, refusal } from './answer.ts'
import { idsOf, problemsOf } from './deletion-ids.ts'
import { findDeletion, loadDeletions } from './deletion-store.ts'
import { DeletionView, deletionView } from './deletion-view.ts'
import type { AdminDeps } from './deps.ts'
import { type Route, route } from './route.ts'
import { idParams } from './views.ts'
import { optionsOf, workspaceOf } from './workspaces.ts'

const path = '/admin/v1/deletions'

const rowId = Type.Integer({ minimum: 1, maximum: 2_147_483_647 })
const userText = Type.String({ minLength: 1, maxLength: requestLimits.idLengthMax })
const userTexts = Type.Array(userText, { maxItems: requestLimits.idsMax })

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
    handle: async ({ query: { workspaceId = null, before = null, limit = 100 } }) => {
      const rows = await loadDeletions(deps.pool, { workspaceId, before, limit })
      return ok({ deletions: rows.map(deletionView) })
    },
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
      return found ? ok(deletionView(found)) : notFound(`deletion request ${params.id}`)
    },
  }),
  createRoute(deps),
]

const Asked = Type.Object(
  {
    workspaceId: Type.Optional(rowId),
    kind: Type.Optional(
      Type.Union(
        requestKinds.map((kind) => Type.Literal(kind)),
        { description: 'delete_only when absent.' },
      ),
    ),
    userId: Type.Optional(userText),
    anonymousId: Type.Optional(userText),
    userIds: Type.Optional(userTexts),
    anonymousIds: Type.Optional(userTexts),
  },
  { additionalProperties: false },
)

const keyLengthMax = 255

const createRoute = (deps: AdminDeps): Route =>
  route({
    method: 'POST',
    path,
    operation: 'createDeletion',
    summary: 'Ask for users to be deleted, suppressed, both, or heard again',
    access: 'admin',
    body: Asked,
    idempotent: true,
    answers: { 201: { description: 'The request as received.', schema: DeletionView } },
    handle: async ({ body, actor, idempotencyKey: key }) => {
      if (key !== null && key.length > keyLengthMax)
        return failure('request_invalid', `Idempotency-Key is longer than ${keyLengthMax}`)
      return edit(deps.pool, optionsOf(deps, actor), async ({ tx, state }) => {
        const workspace = workspaceOf(state, body)
        const problems = [
          ...problemsOf(body),
          ...('problems' in workspace ? workspace.problems : []),
        ]
        if ('problems' in workspace || problems.length > 0) return refusal(problems)
        const asked = await requestDeletion(tx, {
          workspaceId: workspace.id,
          kind: body.kind ?? 'delete_only',
          ids: idsOf(body),
          createdAt: deps.clock(),
          idempotencyKey: key,
        })
        if (!('id' in asked)) return refusedOf(asked.outcome)
        // Without any user's id, which must not outlast the user.
        if (asked.outcome === 'made')
          await insertAudit(tx, [
            {
              actor: actor.name,
              action: 'requested',
              kind: 'deletion',
              entityId: asked.id,
              name: `deletion request ${asked.id}`,
              changes: {},
            },
          ])
        const row = await findDeletion(tx, asked.id)
        return row ? created(deletionView(row)) : notFound(`deletion request ${asked.id}`)
      })
    },
  })

const refusedOf = (outcome: 'differs' | 'suppressions_full'): Answer =>
  outcome === 'differs'
    ? failure(
        'idempotency_key_used',
        'this Idempotency-Key was used for another request: send a new key, or the body it was first sent with',
      )
    : failure(
        'suppressions_too_many',
        `no more than ${requestLimits.suppressionsMax} ids can be suppressed: unsuppress some`,
      )
