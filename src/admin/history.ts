// Routes that show how an audience or computed trait came to be: versions of its definition, and its sizes.
import Type from 'typebox'
import { loadVersions } from '../control/audience-version.ts'
import { AnyObject } from '../control/schema.ts'
import { readState } from '../control/state.ts'
import type { Audience } from '../domain/configuration.ts'
import type { Sql } from '../postgres/sql.ts'
import { notFound, ok } from './answer.ts'
import { ofKind } from './audiences.ts'
import type { AdminDeps } from './deps.ts'
import { type Route, route } from './route.ts'
import { dateTime, id, idParams, named } from './views.ts'

const count = Type.Integer({ minimum: 0 })

const VersionsView = named('Versions', {
  versions: Type.Array(
    Type.Object({
      version: id,
      at: dateTime,
      actor: Type.String({ description: 'The token that saved it.' }),
      definition: { ...AnyObject, description: 'All that was saved.' },
      changes: {
        ...AnyObject,
        description: 'By field, what is other than in the version before: from and to.',
      },
    }),
  ),
  more: Type.Boolean({ description: 'Whether there are older ones: ask with before.' }),
})

const SizesView = named('Sizes', {
  sizes: Type.Array(
    Type.Object({
      syncId: id,
      at: dateTime,
      members: { ...count, description: 'Those without a user id included.' },
      anonymousMembers: count,
    }),
  ),
  more: Type.Boolean({ description: 'Whether there are older ones: ask with before.' }),
})

const paged = (what: string) =>
  Type.Object(
    {
      before: Type.Optional(
        Type.Integer({
          minimum: 1,
          maximum: 2_147_483_647,
          description: `Only ${what}s before it.`,
        }),
      ),
      limit: Type.Optional(
        Type.Integer({ minimum: 1, maximum: 500, description: '50 when absent.' }),
      ),
    },
    { additionalProperties: false },
  )

const kinds = [
  { kind: 'audience', path: '/admin/v1/audiences', noun: 'audience', name: 'Audience' },
  { kind: 'trait', path: '/admin/v1/traits', noun: 'computed trait', name: 'Trait' },
] as const

export const historyRoutes = (deps: AdminDeps): readonly Route[] =>
  kinds.flatMap((each) => [versionRoute(deps, each), sizeRoute(deps, each)])

type One = (typeof kinds)[number]

const versionRoute = (deps: AdminDeps, { kind, path, noun, name }: One): Route =>
  route({
    method: 'GET',
    path: `${path}/:id/versions`,
    operation: `list${name}Versions`,
    summary: `Who saved which definition of the ${noun} and when, newest first`,
    access: 'viewer',
    params: idParams,
    query: paged('version'),
    answers: { 200: { description: 'The versions.', schema: VersionsView } },
    handle: async ({ params: { id: audienceId }, query: { before = null, limit = 50 } }) => {
      if (!(await knows(deps, kind, audienceId))) return notFound(`${noun} ${audienceId}`)
      const found = await loadVersions(deps.pool, { audienceId, before, limit: limit + 1 })
      return ok({ versions: found.slice(0, limit), more: found.length > limit })
    },
  })

const sizeRoute = (deps: AdminDeps, { kind, path, noun, name }: One): Route =>
  route({
    method: 'GET',
    path: `${path}/:id/sizes`,
    operation: `list${name}Sizes`,
    summary: `How many users the ${noun} had at the end of each sync, newest first`,
    access: 'viewer',
    params: idParams,
    query: paged('sync'),
    answers: { 200: { description: 'The sizes.', schema: SizesView } },
    handle: async ({ params: { id: audienceId }, query: { before = null, limit = 50 } }) => {
      if (!(await knows(deps, kind, audienceId))) return notFound(`${noun} ${audienceId}`)
      const found = await loadSizes(deps.pool, { audienceId, before, limit: limit + 1 })
      return ok({ sizes: found.slice(0, limit), more: found.length > limit })
    },
  })

const knows = async (deps: AdminDeps, kind: Audience['kind'], audienceId: number) =>
  ofKind((await readState(deps.pool)).audiences, kind, audienceId) !== null

type Page = { readonly audienceId: number; readonly before: number | null; readonly limit: number }

type Size = {
  readonly syncId: number
  readonly at: Date
  readonly members: number
  readonly anonymousMembers: number
}

const loadSizes = async (
  sql: Sql,
  { audienceId, before, limit }: Page,
): Promise<readonly Size[]> => {
  const { rows } = await sql.query<Size>(
    `select run_id::float8 as "syncId", at, members, anonymous as "anonymousMembers"
       from audience_size where audience_id = $1 and ($2::bigint is null or run_id < $2)
      order by run_id desc limit $3`,
    [audienceId, before, limit],
  )
  return rows
}
