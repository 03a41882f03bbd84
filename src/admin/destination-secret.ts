// The route that replaces a destination's shared secret, at a time its receiver can prepare for.
import { saveDestination } from '../control/destination.ts'
import { newSharedSecret, rotated } from '../control/destination-draft.ts'
import { parseDuration } from '../control/duration.ts'
import { edit } from '../control/edit.ts'
import { SecretRotation } from '../control/input.ts'
import type { Problem } from '../control/problem.ts'
import { notFound, ok, refusal } from './answer.ts'
import type { AdminDeps } from './deps.ts'
import { type Route, route } from './route.ts'
import { destinationView, idParams, SavedDestinationView } from './views.ts'
import { optionsOf } from './workspaces.ts'

export const destinationSecretRoutes = (deps: AdminDeps): readonly Route[] => [
  route({
    method: 'POST',
    path: '/admin/v1/destinations/:id/secret',
    operation: 'rotateSecret',
    summary:
      'Replace the shared secret from a time on; until then the one there is goes on signing',
    access: 'admin',
    params: idParams,
    body: SecretRotation,
    answers: { 200: { description: 'The destination.', schema: SavedDestinationView } },
    handle: ({ params, body, actor }) =>
      edit(deps.pool, optionsOf(deps, actor), async (editing) => {
        const current = editing.state.destinations.get(params.id)
        if (!current) return notFound(`destination ${params.id}`)
        const now = deps.clock().getTime()
        const activateAt = instantOf(body, now)
        if (typeof activateAt !== 'number') return refusal([activateAt])
        const secret = body.secret ?? newSharedSecret()
        const draft = rotated(current, { secret, activateAt, now })
        const saved = await saveDestination(editing, { draft, current, path: '' })
        if (saved.action === 'refused') return refusal(saved.problems.map(asOfRotation))
        const shown = body.secret === undefined ? { sharedSecret: secret } : {}
        return ok({ ...destinationView(saved.entity), ...shown })
      }),
  }),
]

const afterDefault = '24h'

type Asked = { readonly activateAt?: string; readonly after?: string }

const instantOf = ({ activateAt, after }: Asked, now: number): number | Problem => {
  const [path, ms] =
    activateAt === undefined
      ? ['/after', now + (parseDuration(after ?? afterDefault) ?? Number.NaN)]
      : ['/activateAt', after === undefined ? Date.parse(activateAt) : Number.NaN]
  if (Number.isFinite(ms) && Math.abs(ms) <= instantMsMax) return ms
  const message =
    'give either activateAt, a time in ISO 8601 like 2026-03-01T12:00:00Z, or after, a duration like "24h"'
  return { code: 'activate_at_invalid', path, message }
}

/** The last year that a time of four digits can name. */
const instantMsMax = Date.UTC(9_999, 11, 31)

/** The request knows one secret only, whichever of the two it became. */
const asOfRotation = (problem: Problem): Problem =>
  problem.code === 'shared_secret_invalid' || problem.code === 'encryption_key_missing'
    ? { ...problem, path: '/secret' }
    : problem
