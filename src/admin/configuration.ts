// The route that applies a whole configuration file, as `millrace apply` does.
import Type from 'typebox'
import { applyFile } from '../control/apply.ts'
import { ConfigurationFile } from '../control/input.ts'
import { AnyObject } from '../control/schema.ts'
import { ok, refusal } from './answer.ts'
import type { AdminDeps } from './deps.ts'
import { type Route, route } from './route.ts'
import { named } from './views.ts'
import { optionsOf } from './workspaces.ts'

const AppliedView = named('Applied', {
  dryRun: Type.Boolean(),
  entities: Type.Array(
    named('AppliedEntity', {
      action: Type.Union([
        Type.Literal('created'),
        Type.Literal('changed'),
        Type.Literal('unchanged'),
      ]),
      kind: Type.Union([
        Type.Literal('workspace'),
        Type.Literal('source'),
        Type.Literal('destination'),
        Type.Literal('audience'),
      ]),
      workspace: Type.String(),
      name: Type.String(),
      changes: AnyObject,
      generated: Type.Object({
        writeKey: Type.Optional(Type.String()),
        secretKey: Type.Optional(Type.String()),
        sharedSecret: Type.Optional(Type.String()),
      }),
    }),
  ),
})

export const configurationRoutes = (deps: AdminDeps): readonly Route[] => [
  route({
    method: 'POST',
    path: '/admin/v1/apply',
    operation: 'apply',
    summary: 'Apply a configuration file whole; what it does not name is left alone',
    access: 'admin',
    query: Type.Object(
      { dryRun: Type.Optional(Type.Boolean({ description: 'Only show the difference.' })) },
      { additionalProperties: false },
    ),
    body: ConfigurationFile,
    yaml: true,
    answers: { 200: { description: 'What was done, entity by entity.', schema: AppliedView } },
    handle: async ({ query, body, actor }) => {
      const options = { ...optionsOf(deps, actor), dryRun: query.dryRun ?? false }
      const applied = await applyFile(deps.pool, body, options)
      if (!applied.ok) return refusal(applied.problems)
      return ok({ dryRun: applied.dryRun, entities: applied.entities })
    },
  }),
]
