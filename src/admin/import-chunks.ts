// Routes that take an import's content: chunk by chunk with the exact place, or as one streamed upload.
import type { Readable } from 'node:stream'
import Type from 'typebox'
import { Fault } from '../fault.ts'
import { type Chunk, chunkProblem, type Taken } from '../import/chunk.ts'
import { ContentError } from '../import/content.ts'
import { importLimits } from '../import/limits.ts'
import { findImport, type Import } from '../import/store.ts'
import { type Answer, failure, notFound, ok } from './answer.ts'
import type { AdminDeps } from './deps.ts'
import { ImportView, RejectionView, viewOf } from './import-view.ts'
import { type Route, route } from './route.ts'
import { idParams } from './views.ts'

const path = '/admin/v1/imports/:id'

const TakenView = Type.Object({ import: ImportView, rejected: Type.Array(RejectionView) })

const whole = (minimum: number, description: string) =>
  Type.Integer({ minimum, maximum: Number.MAX_SAFE_INTEGER, description })

export const chunkRoutes = (deps: AdminDeps): readonly Route[] => [
  route({
    method: 'POST',
    path: `${path}/chunks`,
    operation: 'takeImportChunk',
    summary: 'The next chunk of an import: whole lines, durable when answered',
    access: 'admin',
    params: idParams,
    query: Type.Object(
      {
        place: whole(0, 'The byte of the content the chunk begins at, after decompression.'),
        line: whole(1, 'The line it begins at.'),
        skip: Type.Optional(whole(1, 'In place of a body: the bytes of a line that is too long.')),
        last: Type.Optional(Type.Boolean({ description: 'Nothing follows.' })),
      },
      { additionalProperties: false },
    ),
    raw: 'bytes',
    answers: {
      200: {
        description: 'It was taken, now or before; with every line of it that was rejected.',
        schema: TakenView,
      },
    },
    handle: async ({ params, query, body }) => {
      const found = await findImport(deps.pool, params.id)
      if (!found) return notFound(`import ${params.id}`)
      const { place, line, skip: skipped = 0, last: isLast = false } = query
      const bytes = Buffer.isBuffer(body) ? body : Buffer.alloc(0)
      const chunk = { place, line, bytes, skipped, isLast }
      const problem = chunkProblem(chunk)
      return problem === null
        ? guarded(() => take(deps, found, chunk))
        : failure('request_invalid', problem)
    },
  }),
  route({
    method: 'POST',
    path: `${path}/file`,
    operation: 'uploadImport',
    summary:
      'All of an import in one body, also gzip; what was imported of it before is passed over',
    access: 'admin',
    params: idParams,
    raw: 'stream',
    answers: {
      200: {
        description: `It was imported; with the first ${importLimits.answeredRejectedMax} lines of it that were rejected.`,
        schema: TakenView,
      },
    },
    handle: async ({ params, body }) => {
      const found = await findImport(deps.pool, params.id)
      if (!found) return notFound(`import ${params.id}`)
      if (found.state === 'cancelled') return over(found)
      if (!deps.imports) return unavailable
      const { imports } = deps
      return guarded(async () => answerOf(await imports.upload(found, body as unknown as Readable)))
    },
  }),
]

const unavailable = failure('not_ready', 'this process imports nothing')

const take = async ({ imports }: AdminDeps, found: Import, chunk: Chunk): Promise<Answer> =>
  imports ? answerOf(await imports.take(found, chunk)) : unavailable

const answerOf = (taken: Taken | 'busy'): Answer => {
  if (taken === 'busy')
    return failure('imports_busy', 'as much is being imported as may be at once')
  if ('taken' in taken) return ok({ import: viewOf(taken.taken), rejected: taken.rejected })
  const { now, refused } = taken
  if (refused === 'import_over') return over(now)
  return refused === 'source_unknown'
    ? failure('import_over', `the source of import ${now.id} was deleted`)
    : failure('import_moved', `import ${now.id} goes on at byte ${now.place}, line ${now.line}`)
}

const over = ({ id, state }: Import): Answer => failure('import_over', `import ${id} is ${state}`)

const guarded = async (work: () => Promise<Answer>): Promise<Answer> => {
  try {
    return await work()
  } catch (error) {
    if (error instanceof ContentError) return failure('request_invalid', error.message)
    if (error instanceof Fault && error.retriable)
      return failure('log_unavailable', 'the log did not take the calls: send them again')
    throw error
  }
}
