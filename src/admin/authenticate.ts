// Who is asking: a bearer token, found by its hash, and what its role may do.
import { findToken } from '../control/token.ts'
import { type Answer, failure } from './answer.ts'
import type { AdminDeps } from './deps.ts'
import type { Access, Actor } from './route.ts'

type Authenticated = { readonly actor: Actor } | { readonly refused: Answer }

export const authenticate = async (
  deps: AdminDeps,
  header: string | undefined,
  access: Access,
): Promise<Authenticated> => {
  const secret = /^Bearer +([\x21-\x7e]+) *$/i.exec(header ?? '')?.[1]
  if (secret === undefined)
    return refused('unauthorized', 'send a token as "Authorization: Bearer TOKEN"')
  const actor = await findToken(deps.pool, secret)
  if (!actor) return refused('unauthorized', 'the token is not known')
  if (access === 'admin' && actor.role !== 'admin')
    return refused('forbidden', 'the token is a viewer: this needs an admin')
  return { actor: { name: actor.name, role: actor.role } }
}

const refused = (code: 'unauthorized' | 'forbidden', message: string) => ({
  refused: failure(code, message),
})
