// The route that shows what is known of one user.
import Type from 'typebox'
import { AnyObject } from '../control/schema.ts'
import { readState } from '../control/state.ts'
import { notFound, ok, refusal } from './answer.ts'
import type { AdminDeps } from './deps.ts'
import { type Route, route } from './route.ts'
import { findUser } from './store.ts'
import { dateTime, id, named, nullable } from './views.ts'
import { workspaceOf, workspaceQuery } from './workspaces.ts'

const UserView = named('User', {
  userId: Type.String(),
  workspaceId: id,
  traits: AnyObject,
  computedTraits: { ...AnyObject, description: 'Values by property key.' },
  anonymousIds: Type.Array(Type.String(), { description: 'At most 100.' }),
  memberships: Type.Array(
    Type.Object({
      audienceId: id,
      name: Type.String(),
      key: Type.String(),
      enteredAt: nullable(dateTime),
    }),
  ),
})

export const userRoutes = (deps: AdminDeps): readonly Route[] => [
  route({
    method: 'GET',
    path: '/admin/v1/users/:userId',
    operation: 'getUser',
    summary: 'Traits and memberships of one user',
    access: 'viewer',
    params: Type.Object({ userId: Type.String({ minLength: 1 }) }),
    query: workspaceQuery,
    answers: { 200: { description: 'The user.', schema: UserView } },
    handle: async ({ params: { userId }, query }) => {
      const state = await readState(deps.pool)
      const workspace = workspaceOf(state, query)
      if ('problems' in workspace) return refusal(workspace.problems)
      // Postgres holds no NUL, so there can be no such user.
      const user = userId.includes('\0')
        ? null
        : await findUser(deps.pool, { workspaceId: workspace.id, userId })
      if (!user) return notFound('user with this id')
      const held = user.memberships.flatMap((row) => {
        const audience = state.audiences.get(row.audienceId)
        return audience ? [{ ...row, audience }] : []
      })
      const memberships = held
        .filter(({ audience }) => audience.kind === 'audience')
        .map(({ audienceId, enteredAt, audience: { name, key } }) => ({
          ...{ audienceId, name, key, enteredAt },
        }))
      const computedTraits = Object.fromEntries(
        held
          .filter(({ audience }) => audience.kind === 'trait')
          .map(({ audience, value }) => [audience.key, JSON.parse(value ?? 'null')]),
      )
      const { traits, anonymousIds } = user
      const workspaceId = workspace.id
      return ok({ userId, workspaceId, traits, computedTraits, anonymousIds, memberships })
    },
  }),
]
