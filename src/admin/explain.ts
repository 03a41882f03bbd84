// The route that says why a user is in an audience, or is not, and when time alone changes that.
import Type from 'typebox'
import {
  factsOf,
  findLeaves,
  readFolded,
  readMembership,
  readUser,
  readWorked,
  type UserState,
} from '../audience/look.ts'
import { readState } from '../control/state.ts'
import { explain } from '../domain/condition/explain.ts'
import { parseCondition } from '../domain/condition/parse.ts'
import type { Audience } from '../domain/configuration.ts'
import type { IdentityKind } from '../domain/identity.ts'
import type { Sql } from '../postgres/sql.ts'
import { type Answer, failure, notFound, ok, refusal } from './answer.ts'
import { ofKind } from './audiences.ts'
import type { AdminDeps } from './deps.ts'
import { ExplanationView, explainedView, turnView } from './explain-view.ts'
import { isProblem, readInstant } from './instant.ts'
import { type Route, route } from './route.ts'
import { idParams } from './views.ts'

export const explainRoutes = (deps: AdminDeps): readonly Route[] => [
  route({
    method: 'GET',
    path: '/admin/v1/audiences/:id/explain',
    operation: 'explainAudience',
    summary: 'Why one user is in the audience or is not, as of now or of a later instant',
    access: 'viewer',
    params: idParams,
    query: Type.Object(
      {
        userId: Type.Optional(Type.String({ minLength: 1 })),
        anonymousId: Type.Optional(Type.String({ minLength: 1 })),
        at: Type.Optional(
          Type.String({
            description:
              'An instant in ISO 8601, not before the last call received; what will be then if no call arrives. Now when absent.',
          }),
        ),
      },
      { additionalProperties: false },
    ),
    answers: {
      200: { description: 'The condition, and what is behind it.', schema: ExplanationView },
    },
    handle: async ({ params, query }) => {
      const audience = ofKind((await readState(deps.pool)).audiences, 'audience', params.id)
      if (!audience) return notFound(`audience ${params.id}`)
      const named = namedBy(query)
      const at = readInstant(query.at, 'at')
      if (isProblem(at)) return refusal([at])
      if (named === null)
        return refusal([
          {
            code: 'field_missing',
            path: '/userId',
            message: 'name one user by userId or anonymousId',
          },
        ])
      // One snapshot: the user, the leaves and what was folded belong together.
      return deps.pool.transaction(
        (tx) =>
          answer(tx, { audience, named, at: at?.getTime() ?? null, now: deps.clock().getTime() }),
        { isolation: 'repeatable read' },
      )
    },
  }),
]

type Named = { readonly kind: IdentityKind; readonly value: string }

/** `null` unless it is just one. */
const namedBy = (query: {
  readonly userId?: string
  readonly anonymousId?: string
}): Named | null => {
  const { userId, anonymousId } = query
  if ((userId === undefined) === (anonymousId === undefined)) return null
  return userId === undefined
    ? { kind: 'anonymous', value: anonymousId as string }
    : { kind: 'user', value: userId }
}

type Asked = {
  readonly audience: Audience
  readonly named: Named
  readonly at: number | null
  readonly now: number
}

const answer = async (tx: Sql, { audience, named, at: wanted, now }: Asked): Promise<Answer> => {
  const { workspaceId } = audience
  const worked = await readWorked(tx, audience.id)
  if (worked?.state !== 'live') return backfilling(audience)
  // Postgres holds no NUL, so there can be no such user.
  const user = named.value.includes('\0') ? null : await readUser(tx, { workspaceId, ...named })
  if (user === null) return notFound('user with this id')
  const folded = await readFolded(tx)
  const at = wanted ?? Math.max(now, folded)
  if (at < folded) return tooEarly(folded)
  const parsed = parseCondition(worked.condition, { timezone: worked.timezone })
  const explained = parsed.ok
    ? explain({
        json: worked.condition,
        condition: parsed.condition,
        find: await findLeaves(tx, workspaceId),
        facts: factsOf(user),
        at,
      })
    : null
  if (explained === null) return backfilling(audience)
  const held = await readMembership(tx, { audienceId: audience.id, userKey: user.key })
  return ok({
    audienceId: audience.id,
    userId: user.userId,
    at: new Date(at),
    foldedUntil: new Date(folded),
    member: explained.holds,
    ...turnView(explained.turns),
    recorded: recordedOf(user, audience),
    synced: held?.synced ?? false,
    enteredAt: held?.enteredAt ?? null,
    where: explainedView(explained),
  })
}

const recordedOf = ({ members }: UserState, { id }: Audience): boolean => members.includes(id)

export const backfilling = ({ id }: Audience): Answer =>
  failure(
    'audience_backfilling',
    `audience ${id} is still being worked out from past calls: ask again when its state is "live"`,
  )

const tooEarly = (folded: number): Answer => {
  const first = new Date(folded).toISOString()
  const message = `calls up to ${first} are in what is known of users, and cannot be left out again: ask for ${first} or later`
  return refusal([{ code: 'field_invalid', path: '/at', message }])
}
