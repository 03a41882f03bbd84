// The route that says why a user is in an audience, or is not, and when time alone changes that.
import Type, { type Static } from 'typebox'
import {
  factsOf,
  findLeaves,
  readFolded,
  readMembership,
  readUser,
  readWorked,
  type UserState,
  type Worked,
} from '../audience/look.ts'
import { readState } from '../control/state.ts'
import type { Condition } from '../domain/condition/condition.ts'
import { explain, type Turn } from '../domain/condition/explain.ts'
import { innerOf, type Quantifier } from '../domain/condition/users.ts'
import type { Audience } from '../domain/configuration.ts'
import { parseDefinition } from '../domain/definition.ts'
import type { IdentityKind } from '../domain/identity.ts'
import type { JsonObject } from '../domain/message.ts'
import type { Sql } from '../postgres/sql.ts'
import { type Answer, failure, notFound, ok, refusal } from './answer.ts'
import { ofKind } from './audiences.ts'
import type { AdminDeps } from './deps.ts'
import { ExplanationView, explainedView, turnView } from './explain-view.ts'
import { isProblem, readInstant } from './instant.ts'
import { type Route, route } from './route.ts'
import { idParams } from './views.ts'

export const explainQuery = Type.Object(
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
)

export const explainRoutes = (deps: AdminDeps): readonly Route[] => [
  route({
    method: 'GET',
    path: '/admin/v1/audiences/:id/explain',
    operation: 'explainAudience',
    summary: 'Why one user is in the audience or is not, as of now or of a later instant',
    access: 'viewer',
    params: idParams,
    query: explainQuery,
    answers: {
      200: { description: 'The condition, and what is behind it.', schema: ExplanationView },
    },
    handle: ({ params, query }) =>
      explaining(deps, { kind: 'audience', id: params.id, query }, answer),
  }),
]

const nouns = { audience: 'audience', trait: 'computed trait' } as const

type Wanted = {
  readonly kind: Audience['kind']
  readonly id: number
  readonly query: Static<typeof explainQuery>
}

/** One user and one audience or computed trait, as they are known. */
export type About = {
  readonly audience: Audience
  readonly worked: Worked
  readonly user: UserState
  /** Epoch ms: the instant asked for, and the newest call known, which is not after it. */
  readonly at: number
  readonly folded: number
}

/** Finds what is asked about, or says why it cannot. */
export const explaining = async (
  deps: AdminDeps,
  { kind, id, query }: Wanted,
  explained: (tx: Sql, about: About) => Promise<Answer>,
): Promise<Answer> => {
  const audience = ofKind((await readState(deps.pool)).audiences, kind, id)
  if (!audience) return notFound(`${nouns[kind]} ${id}`)
  const named = namedBy(query)
  const wanted = readInstant(query.at, 'at')
  if (isProblem(wanted)) return refusal([wanted])
  if (named === null)
    return refusal([
      {
        code: 'field_missing',
        path: '/userId',
        message: 'name one user by userId or anonymousId',
      },
    ])
  // One snapshot: the user, the leaves and what was folded belong together.
  const look = async (tx: Sql): Promise<Answer> => {
    const worked = await readWorked(tx, audience.id)
    if (worked?.state !== 'live') return backfilling(audience)
    // Postgres holds no NUL, so there can be no such user.
    const { workspaceId } = audience
    const user = named.value.includes('\0') ? null : await readUser(tx, { workspaceId, ...named })
    if (user === null) return notFound('user with this id')
    const folded = await readFolded(tx)
    const at = wanted?.getTime() ?? Math.max(deps.clock().getTime(), folded)
    return at < folded ? tooEarly(folded) : explained(tx, { audience, worked, user, at, folded })
  }
  return deps.pool.transaction(look, { isolation: 'repeatable read' })
}

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

const answer = async (tx: Sql, { audience, worked, user, at, folded }: About): Promise<Answer> => {
  const about = explainedPart(audience, worked)
  const facts = factsOf(user)
  const explained =
    about && explain({ ...about, find: await findLeaves(tx, audience.workspaceId), facts, at })
  if (!about || !explained) return backfilling(audience)
  const held = await readMembership(tx, { audienceId: audience.id, userKey: user.key })
  const recorded = held?.member ?? false
  const { quantifier } = about
  return ok({
    audienceId: audience.id,
    userId: user.userId,
    at: new Date(at),
    foldedUntil: new Date(folded),
    member: quantifier === null ? explained.holds : recorded,
    ...turnView(quantifier === null ? explained.turns : unknownTurn),
    quantifier,
    recorded,
    synced: held?.synced ?? false,
    enteredAt: held?.enteredAt ?? null,
    where: explainedView(explained),
  })
}

/** Whether an account passes hangs on its other users, too. */
const unknownTurn: Turn = { at: Number.POSITIVE_INFINITY, isExact: false }

type Part = {
  readonly json: JsonObject
  readonly condition: Condition
  /** `null` unless it is about accounts: then it is what each of their users is asked. */
  readonly quantifier: Quantifier | null
}

/** What is asked of the user alone. */
const explainedPart = ({ kind }: Audience, { condition: json, timezone }: Worked): Part | null => {
  const parsed = parseDefinition({ kind, condition: json, timezone })
  if (!parsed.ok) return null
  const { definition } = parsed
  switch (definition.type) {
    case 'membership':
      return { json, condition: definition.condition, quantifier: null }
    case 'account': {
      const { where, quantifier } = definition.users
      return { json: innerOf(json), condition: where, quantifier }
    }
    case 'value':
      return null
  }
}

export const backfilling = ({ kind, id }: Pick<Audience, 'kind' | 'id'>): Answer =>
  failure(
    'audience_backfilling',
    `${nouns[kind]} ${id} is still being worked out from past calls: ask again when its state is "live"`,
  )

const tooEarly = (folded: number): Answer => {
  const first = new Date(folded).toISOString()
  const message = `calls up to ${first} are in what is known of users, and cannot be left out again: ask for ${first} or later`
  return refusal([{ code: 'field_invalid', path: '/at', message }])
}
