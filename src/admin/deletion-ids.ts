// Whom a deletion request names, and what is wrong with it.
import type { Problem } from '../control/problem.ts'
import { type IdentityKind, isBlocked } from '../domain/identity.ts'
import { requestLimits } from '../erase/request.ts'

type Wish = {
  readonly userId?: string
  readonly anonymousId?: string
  readonly userIds?: readonly string[]
  readonly anonymousIds?: readonly string[]
}

type Named = { readonly kind: IdentityKind; readonly value: string; readonly path: string }

const namedIn = ({ userId, anonymousId, userIds = [], anonymousIds = [] }: Wish) => [
  ...(userId === undefined ? [] : [{ kind: 'user', value: userId, path: '/userId' } as const]),
  ...userIds.map((value, at): Named => ({ kind: 'user', value, path: `/userIds/${at}` })),
  ...(anonymousId === undefined
    ? []
    : [{ kind: 'anonymous', value: anonymousId, path: '/anonymousId' } as const]),
  ...anonymousIds.map(
    (value, at): Named => ({ kind: 'anonymous', value, path: `/anonymousIds/${at}` }),
  ),
]

/** Each once. */
export const idsOf = (
  wish: Wish,
): readonly { readonly kind: IdentityKind; readonly value: string }[] => [
  ...new Map(
    namedIn(wish).map(({ kind, value }) => [`${kind} ${value}`, { kind, value }] as const),
  ).values(),
]

const problemsMax = 100

export const problemsOf = (wish: Wish): readonly Problem[] => {
  const named = namedIn(wish)
  if (named.length === 0)
    return [
      {
        code: 'field_missing',
        path: '/userId',
        message: 'name the users by userId, anonymousId, userIds or anonymousIds',
      },
    ]
  if (named.length > requestLimits.idsMax)
    return [
      {
        code: 'field_invalid',
        path: '/userIds',
        message: `a request takes ${requestLimits.idsMax} ids: make several`,
      },
    ]
  return named
    .flatMap(({ value, path }): readonly Problem[] => {
      const why = whyNot(value)
      return why === null
        ? []
        : [{ code: 'field_invalid', path, message: `${path.slice(1)} ${why}` }]
    })
    .slice(0, problemsMax)
}

/** Collecting replaces what is not well formed, and Postgres holds no NUL. */
const whyNot = (value: string): string | null => {
  if (!value.isWellFormed() || value.includes('\0'))
    return 'holds a character that no stored id can hold'
  return isBlocked(value) ? 'is a value that names nobody, and has no profile' : null
}
