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
      const memberships = user.memberships.flatMap(({ audienceId, enteredAt }) => {
        const audience = state.audiences.get(audienceId)
        return audience ? [{ audienceId, name: audience.name, key: audience.key, enteredAt }] : []
      })
      return ok({ userId, workspaceId: workspace.id, ...user, memberships })
    },
  }),
]
