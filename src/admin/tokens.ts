// Routes of the bearer tokens of this API, and of the log of what was done with them.
import Type from 'typebox'
import { insertAudit, loadAudit } from '../control/audit.ts'
import { edit } from '../control/edit.ts'
import { isText } from '../control/name.ts'
import { AnyObject } from '../control/schema.ts'
import { deleteToken, insertToken, loadTokens } from '../control/token.ts'
import { created, gone, notFound, ok, refusal } from './answer.ts'
import type { AdminDeps } from './deps.ts'
import { type Route, route } from './route.ts'
import { dateTime, id, idParams, named, nullable } from './views.ts'
import { optionsOf } from './workspaces.ts'

const path = '/admin/v1/tokens'
const role = Type.Union([Type.Literal('admin'), Type.Literal('viewer')])
const properties = { id, name: Type.String(), role, createdAt: dateTime }
const TokenView = named('Token', properties)
const NewTokenView = named('NewToken', {
  ...properties,
  token: Type.String({ description: 'Shown in this answer only.' }),
})

export const tokenRoutes = (deps: AdminDeps): readonly Route[] => [
  route({
    method: 'GET',
    path,
    operation: 'listTokens',
    summary: 'The tokens there are, without the tokens themselves',
    access: 'admin',
    answers: {
      200: { description: 'The tokens.', schema: Type.Object({ tokens: Type.Array(TokenView) }) },
    },
    handle: async () => ok({ tokens: await loadTokens(deps.pool) }),
  }),
  route({
    method: 'POST',
    path,
    operation: 'createToken',
    summary: 'Make a token: viewers read, admins do everything',
    access: 'admin',
    body: Type.Object(
      { name: Type.String({ minLength: 1, maxLength: 200 }), role },
      { additionalProperties: false },
    ),
    answers: { 201: { description: 'The token.', schema: NewTokenView } },
    handle: ({ body, actor }) =>
      edit(deps.pool, optionsOf(deps, actor), async ({ tx }) => {
        const name = '/name'
        if (!isText(body.name))
          return refusal([
            { code: 'name_invalid', path: name, message: 'a name has no control characters' },
          ])
        const made = await insertToken(tx, body)
        if (!made)
          return refusal([
            {
              code: 'name_taken',
              path: name,
              message: `there is already a token named "${body.name}"`,
            },
          ])
        await insertAudit(tx, [
          {
            actor: actor.name,
            action: 'created',
            kind: 'token',
            entityId: made.token.id,
            name: body.name,
            changes: { role: { to: body.role } },
          },
        ])
        return created({ ...made.token, token: made.secret })
      }),
  }),
  deleteRoute(deps),
]

const deleteRoute = (deps: AdminDeps): Route =>
  route({
    method: 'DELETE',
    path: `${path}/:id`,
    operation: 'deleteToken',
    summary: 'Delete a token; it is refused from then on',
    access: 'admin',
    params: idParams,
    answers: { 204: { description: 'It is gone.' } },
    handle: ({ params, actor }) =>
      edit(deps.pool, optionsOf(deps, actor), async ({ tx }) => {
        const tokens = await loadTokens(tx)
        const token = tokens.find((candidate) => candidate.id === params.id)
        if (!token) return notFound(`token ${params.id}`)
        if (token.role === 'admin' && tokens.filter((one) => one.role === 'admin').length === 1)
          return refusal([
            { code: 'last_admin_token', path: '', message: 'the last admin token cannot go' },
          ])
        await deleteToken(tx, params.id)
        await insertAudit(tx, [
          {
            actor: actor.name,
            action: 'deleted',
            kind: 'token',
            entityId: params.id,
            name: token.name,
            changes: {},
          },
        ])
        return gone
      }),
  })

const AuditView = named('AuditEntry', {
  id,
  at: dateTime,
  actor: Type.String({ description: 'The name of the token that acted.' }),
  action: Type.String(),
  kind: Type.String(),
  entityId: nullable(Type.Integer()),
  name: Type.String(),
  changes: AnyObject,
})

export const auditRoutes = (deps: AdminDeps): readonly Route[] => [
  route({
    method: 'GET',
    path: '/admin/v1/audit',
    operation: 'listAudit',
    summary: 'Who changed what, newest first',
    access: 'admin',
    query: Type.Object(
      {
        before: Type.Optional(Type.Integer({ minimum: 1, description: 'Entries below this id.' })),
        limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 500 })),
      },
      { additionalProperties: false },
    ),
    answers: {
      200: { description: 'The entries.', schema: Type.Object({ entries: Type.Array(AuditView) }) },
    },
    handle: async ({ query: { before = null, limit = 100 } }) =>
      ok({ entries: await loadAudit(deps.pool, { before, limit }) }),
  }),
]
