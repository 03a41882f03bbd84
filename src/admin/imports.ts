// Routes of imports: made or gone on with, listed, looked at and cancelled.
import { randomUUID } from 'node:crypto'
import Type from 'typebox'
import { insertAudit } from '../control/audit.ts'
import { isText } from '../control/name.ts'
import type { Problem } from '../control/problem.ts'
import { AnyObject, oneOf } from '../control/schema.ts'
import type { Source } from '../domain/configuration.ts'
import type { JsonObject } from '../domain/message.ts'
import { identityOf, keyOf } from '../import/identity.ts'
import { importLimits } from '../import/limits.ts'
import { compileMapping } from '../import/mapping.ts'
import {
  cancelImport,
  findImport,
  importFormats,
  importStates,
  insertImport,
  loadImports,
} from '../import/store.ts'
import { created, failure, notFound, ok, refusal } from './answer.ts'
import type { AdminDeps } from './deps.ts'
import { chunkRoutes } from './import-chunks.ts'
import { ImportView, MadeImportView, madeViewOf, viewOf } from './import-view.ts'
import { type Route, route } from './route.ts'
import { idParams } from './views.ts'

const path = '/admin/v1/imports'

const rowId = Type.Integer({ minimum: 1, maximum: 2_147_483_647 })

export const importRoutes = (deps: AdminDeps): readonly Route[] => [
  route({
    method: 'GET',
    path,
    operation: 'listImports',
    summary: 'Imports, newest first',
    access: 'viewer',
    query: Type.Object(
      {
        sourceId: Type.Optional(rowId),
        state: Type.Optional(oneOf(importStates)),
        before: Type.Optional(rowId),
        limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 100 })),
      },
      { additionalProperties: false },
    ),
    answers: {
      200: {
        description: 'The imports.',
        schema: Type.Object({ imports: Type.Array(ImportView) }),
      },
    },
    handle: async ({ query }) => {
      const { sourceId = null, state = null, before = null, limit = 20 } = query
      const imports = await loadImports(deps.pool, { sourceId, state, before, limit })
      return ok({ imports: imports.map(viewOf) })
    },
  }),
  route({
    method: 'GET',
    path: `${path}/:id`,
    operation: 'getImport',
    summary: 'How an import goes',
    access: 'viewer',
    params: idParams,
    answers: { 200: { description: 'The import.', schema: MadeImportView } },
    handle: async ({ params }) => {
      const found = await findImport(deps.pool, params.id)
      return found ? ok(madeViewOf(found)) : notFound(`import ${params.id}`)
    },
  }),
  createRoute(deps),
  cancelRoute(deps),
  ...chunkRoutes(deps),
]

const ImportInput = Type.Object(
  {
    sourceId: Type.Optional(rowId),
    writeKey: Type.Optional(
      Type.String({ maxLength: 1_000, description: 'Names the source where sourceId does not.' }),
    ),
    name: Type.String({ minLength: 1, maxLength: 1_000, description: 'For people: a file name.' }),
    digest: Type.Optional(
      Type.String({
        pattern: '^[0-9a-f]{64}$',
        description:
          'SHA-256 of the content in hex. With it, an import of the same content goes on instead of beginning anew.',
      }),
    ),
    bytes: Type.Optional(Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER })),
    format: Type.Optional(oneOf(importFormats)),
    mapping: Type.Optional(AnyObject),
    columns: Type.Optional(
      Type.Array(Type.String({ maxLength: 1_000 }), {
        minItems: 1,
        maxItems: importLimits.columnsMax,
        description: 'Of csv and tsv: what the first row says.',
      }),
    ),
    dryRun: Type.Optional(Type.Boolean({ description: 'Judge everything, append nothing.' })),
    again: Type.Optional(
      Type.Boolean({ description: 'Begin anew, whatever was imported of this content before.' }),
    ),
  },
  { additionalProperties: false },
)

type Wish = Type.Static<typeof ImportInput>

const createRoute = (deps: AdminDeps): Route =>
  route({
    method: 'POST',
    path,
    operation: 'createImport',
    summary: 'Begin an import of past calls, or go on with the one of the same content',
    access: 'admin',
    body: ImportInput,
    answers: {
      200: {
        description: 'The import of the same content, as far as it has come.',
        schema: MadeImportView,
      },
      201: { description: 'A new import.', schema: MadeImportView },
    },
    handle: async ({ body, actor }) => {
      const source = sourceOf(deps, body)
      const problems = [...(source ? [] : [unknownSource(body)]), ...problemsOf(body)]
      if (!source || problems.length > 0) return refusal(problems)
      const made = await deps.pool.transaction(async (tx) => {
        const found = await insertImport(tx, {
          ...newOf(source, body),
          actor: actor.name,
          at: deps.clock(),
        })
        if (found.isNew && !found.dryRun)
          await insertAudit(tx, [
            {
              actor: actor.name,
              action: 'requested',
              kind: 'import',
              entityId: found.id,
              name: `import ${found.id}`,
              changes: {},
            },
          ])
        return found
      })
      return made.isNew ? created(madeViewOf(made)) : ok(madeViewOf(made))
    },
  })

const sourceOf = ({ live }: AdminDeps, { sourceId, writeKey }: Wish): Source | undefined => {
  const { sources, sourceByWriteKey } = live.now()
  if (sourceId !== undefined) return sources.get(sourceId)
  return writeKey === undefined ? undefined : sourceByWriteKey.get(writeKey)
}

/** Without the key: what is refused may be logged. */
const unknownSource = ({ sourceId, writeKey }: Wish): Problem =>
  sourceId === undefined && writeKey === undefined
    ? {
        code: 'field_missing',
        path: '/sourceId',
        message: 'name the source by sourceId or writeKey',
      }
    : {
        code: 'source_unknown',
        path: sourceId === undefined ? '/writeKey' : '/sourceId',
        message:
          sourceId === undefined
            ? 'no source has this write key'
            : `there is no source ${sourceId}`,
      }

const problemsOf = ({ name, format = 'ndjson', mapping, columns }: Wish): readonly Problem[] => {
  const told: Problem[] = []
  const tell = (path: string, message: string) =>
    void told.push({ code: 'mapping_invalid', path, message })
  if (!isText(name))
    told.push({ code: 'name_invalid', path: '/name', message: 'a name has no control characters' })
  if (format === 'ndjson') {
    if (mapping !== undefined) tell('/mapping', 'a mapping is for csv and tsv')
    if (columns !== undefined) tell('/columns', 'columns are of csv and tsv')
    return told
  }
  if (mapping === undefined)
    tell('/mapping', 'csv and tsv need a mapping: which column becomes what')
  if (columns === undefined) tell('/columns', 'say what the columns are: the first row')
  if (mapping === undefined || columns === undefined) return told
  const compiled = compileMapping(mapping, columns)
  if ('problems' in compiled)
    for (const { path: at, message } of compiled.problems) tell(`/mapping${at}`, message)
  return told
}

const newOf = (source: Source, body: Wish) => {
  const { format = 'ndjson', mapping = null, columns = null, dryRun = false } = body
  const isOwn = body.digest === undefined || body.again === true || dryRun
  const identity = isOwn ? randomUUID() : identityOf(body.digest ?? '', { format, mapping })
  return {
    sourceId: source.id,
    identity,
    key: isOwn ? randomUUID() : keyOf(source.id, identity),
    name: body.name,
    format,
    mapping: mapping as JsonObject | null,
    columns,
    dryRun,
    bytes: body.bytes ?? null,
  }
}

const cancelRoute = (deps: AdminDeps): Route =>
  route({
    method: 'POST',
    path: `${path}/:id/cancel`,
    operation: 'cancelImport',
    summary: 'End an import; what was imported stays',
    access: 'admin',
    params: idParams,
    answers: { 200: { description: 'The import.', schema: MadeImportView } },
    handle: async ({ params, actor }) => {
      const isCancelled = await deps.pool.transaction(async (tx) => {
        if (!(await cancelImport(tx, params.id, deps.clock()))) return false
        await insertAudit(tx, [
          {
            actor: actor.name,
            action: 'changed',
            kind: 'import',
            entityId: params.id,
            name: `import ${params.id}`,
            changes: { state: { from: 'running', to: 'cancelled' } },
          },
        ])
        return true
      })
      const after = await findImport(deps.pool, params.id)
      if (!after) return notFound(`import ${params.id}`)
      return isCancelled || after.state === 'cancelled'
        ? ok(madeViewOf(after))
        : failure('import_over', `import ${params.id} is ${after.state}: it cannot be cancelled`)
    },
  })
