// The route of the live debugger: what happens to the calls of one source, as server-sent events.
import Type from 'typebox'
import { readState } from '../control/state.ts'
import { debuggerSteps } from '../debugger/debugger.ts'
import type { Entry } from '../debugger/entry.ts'
import { type Heard, openFeed } from '../debugger/feed.ts'
import { callTypes } from '../domain/message.ts'
import { failure, notFound } from './answer.ts'
import { type AdminDeps, adminLimits } from './deps.ts'
import { type Route, route } from './route.ts'
import { idParams } from './views.ts'

/** What a client waits before it resumes, unless it knows better. */
const retryMs = 2_000

const query = Type.Object(
  {
    step: Type.Optional(Type.Union(debuggerSteps.map((step) => Type.Literal(step)))),
    type: Type.Optional(
      Type.Union([...callTypes, 'unknown' as const].map((type) => Type.Literal(type))),
    ),
    event: Type.Optional(Type.String({ description: 'An event name as it is shown.' })),
  },
  { additionalProperties: false },
)

export const debuggerRoutes = (deps: AdminDeps): readonly Route[] => {
  const { pool, clock, logger } = deps
  const feed = openFeed({ pool, clock, logger })
  const { streamMsMax } = { ...adminLimits, ...deps.limits }
  return [
    route({
      method: 'GET',
      path: '/admin/v1/sources/:id/debugger',
      operation: 'watchSource',
      summary:
        'What happens to the calls of a source: its newest 500, then each as it comes, masked',
      access: 'viewer',
      params: idParams,
      query,
      resumes: true,
      answers: {
        200: {
          description:
            'Events "call" with an entry as JSON, and "skipped" with an amount; a comment every 15 s of silence.',
          contentType: 'text/event-stream',
        },
      },
      handle: async ({ params: { id }, query: wanted, lastEventId, signal }) => {
        if (!(await readState(pool)).sources.has(id)) return notFound(`source ${id}`)
        const ending = AbortSignal.any([signal, AbortSignal.timeout(streamMsMax)])
        const heard = await feed.follow({
          sourceId: id,
          after: idOf(lastEventId),
          signal: ending,
        })
        return heard === null
          ? failure('streams_too_many', 'too many watch already: close another debugger first')
          : { status: 200, contentType: 'text/event-stream', stream: events(deps, heard, wanted) }
      },
    }),
  ]
}

const idOf = (lastEventId: string | null): number | null =>
  lastEventId !== null && /^\d{1,15}\d?$/.test(lastEventId) ? Number(lastEventId) : null

type Wanted = { readonly step?: string; readonly type?: string; readonly event?: string }

async function* events(
  { logger }: Pick<AdminDeps, 'logger'>,
  feed: AsyncIterable<Heard>,
  wanted: Wanted,
): AsyncGenerator<string> {
  yield `retry: ${retryMs}\n\n`
  /** Passed over since the last event: the client need not hear of it again when it resumes. */
  let passed: number | null = null
  try {
    for await (const heard of feed) {
      switch (heard.type) {
        case 'entry':
          if (isWanted(heard.entry, wanted)) {
            passed = null
            yield `id: ${heard.id}\nevent: call\ndata: ${heard.entry}\n\n`
          } else passed = heard.id
          break
        case 'skipped':
          yield `event: skipped\ndata: {"skipped":${heard.amount}}\n\n`
          break
        case 'idle':
          yield passed === null ? ':\n\n' : `id: ${passed}\n\n`
          break
      }
    }
    if (passed !== null) yield `id: ${passed}\n\n`
  } catch (error) {
    // The client resumes where it was; that its answer had begun leaves no other way to tell it.
    logger.warn({ err: error }, 'debugger.broken')
  }
}

const isWanted = (text: string, { step, type, event }: Wanted): boolean => {
  if (step === undefined && type === undefined && event === undefined) return true
  const entry = JSON.parse(text) as Entry
  return (
    (step ?? entry.step) === entry.step &&
    (type ?? entry.type) === entry.type &&
    (event ?? entry.event) === entry.event
  )
}
