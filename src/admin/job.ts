// What routes of jobs for one destination have in common: replays and recoveries are listed, shown and steered alike.
import Type, { type TSchema } from 'typebox'
import { type AuditEntry, insertAudit } from '../control/audit.ts'
import type { Sql } from '../postgres/sql.ts'
import { type errorStatus, failure, notFound, ok } from './answer.ts'
import type { AdminDeps } from './deps.ts'
import type { Page, Steering } from './job-store.ts'
import { type Actor, type Route, route } from './route.ts'
import { idParams } from './views.ts'

export const rowId = Type.Integer({ minimum: 1, maximum: 2_147_483_647 })

export const ratePerSecond = (rateDefault: number) =>
  Type.Optional(
    Type.Number({ minimum: 0.01, maximum: 100_000, description: `${rateDefault} when absent.` }),
  )

export type JobKind<S extends string> = {
  /** One of them and many, as they stand in sentences, paths and operations. */
  readonly one: AuditEntry['kind']
  readonly many: string
  readonly view: TSchema
  readonly over: keyof typeof errorStatus
  find(sql: Sql, id: number): Promise<{ readonly state: S } | null>
  load(sql: Sql, page: Page): Promise<readonly unknown[]>
  steer(sql: Sql, steering: Steering<S>): Promise<boolean>
  readonly steps: readonly Step<S>[]
}

export type Step<S extends string> = {
  readonly verb: 'pause' | 'resume' | 'cancel'
  readonly from: readonly S[]
  readonly to: S
  readonly summary: string
}

export const pathOf = ({ many }: { readonly many: string }): string => `/admin/v1/${many}`

const titleOf = (text: string): string => `${text.slice(0, 1).toUpperCase()}${text.slice(1)}`

export const jobRoutes = <S extends string>(
  deps: AdminDeps,
  kind: JobKind<S>,
): readonly Route[] => [
  route({
    method: 'GET',
    path: pathOf(kind),
    operation: `list${titleOf(kind.many)}`,
    summary: `${titleOf(kind.many)}, newest first`,
    access: 'viewer',
    query: Type.Object(
      {
        destinationId: Type.Optional(rowId),
        before: Type.Optional(rowId),
        limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 100 })),
      },
      { additionalProperties: false },
    ),
    answers: {
      200: {
        description: `The ${kind.many}.`,
        schema: Type.Object({ [kind.many]: Type.Array(kind.view) }),
      },
    },
    handle: async ({ query: { destinationId = null, before = null, limit = 20 } }) =>
      ok({ [kind.many]: await kind.load(deps.pool, { destinationId, before, limit }) }),
  }),
  route({
    method: 'GET',
    path: `${pathOf(kind)}/:id`,
    operation: `get${titleOf(kind.one)}`,
    summary: `How a ${kind.one} goes`,
    access: 'viewer',
    params: idParams,
    answers: { 200: oneOf(kind) },
    handle: async ({ params }) => {
      const found = await kind.find(deps.pool, params.id)
      return found ? ok(found) : notFound(`${kind.one} ${params.id}`)
    },
  }),
  ...kind.steps.map((step) => steerRoute(deps, kind, step)),
]

export const oneOf = ({ one, view }: Pick<JobKind<string>, 'one' | 'view'>) => ({
  description: `The ${one}.`,
  schema: view,
})

const steerRoute = <S extends string>(
  deps: AdminDeps,
  kind: JobKind<S>,
  { verb, from, to, summary }: Step<S>,
): Route =>
  route({
    method: 'POST',
    path: `${pathOf(kind)}/:id/${verb}`,
    operation: `${verb}${titleOf(kind.one)}`,
    summary,
    access: 'admin',
    params: idParams,
    answers: { 200: oneOf(kind) },
    handle: async ({ params: { id }, actor }) => {
      const name = `${kind.one} ${id}`
      const current = await kind.find(deps.pool, id)
      if (!current) return notFound(name)
      const isSteered = await deps.pool.transaction(async (tx) => {
        if (!(await kind.steer(tx, { id, from, to, at: deps.clock() }))) return false
        const changes = { state: { from: current.state, to } }
        await auditJob(tx, kind, { actor, id, name, action: 'changed', changes })
        return true
      })
      const after = await kind.find(deps.pool, id)
      // Twice is once: who cancels what is cancelled has what they want.
      return isSteered || after?.state === to
        ? ok(after)
        : failure(kind.over, `${name} is ${after?.state}: it cannot ${verb}`)
    },
  })

type Entry = Pick<AuditEntry, 'name' | 'action'> & {
  readonly actor: Actor
  readonly id: number
  readonly changes?: AuditEntry['changes']
}

export const auditJob = (
  tx: Sql,
  { one: kind }: Pick<JobKind<string>, 'one'>,
  { actor, id: entityId, name, action, changes = {} }: Entry,
): Promise<void> => insertAudit(tx, [{ actor: actor.name, action, kind, entityId, name, changes }])
