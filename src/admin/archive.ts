// The route that shows how the archive stands.
import Type from 'typebox'
import { loadArchiveStatus } from '../archive/status.ts'
import { ok } from './answer.ts'
import type { AdminDeps } from './deps.ts'
import { type Route, route } from './route.ts'
import { dateTime, named, nullable } from './views.ts'

const count = Type.Integer({ minimum: 0 })

const ArchiveView = named('Archive', {
  partitions: Type.Array(
    Type.Object({
      topic: Type.String(),
      partition: count,
      segments: count,
      entries: count,
      bytes: count,
      start: Type.Integer({ minimum: 0, description: 'The first offset archived.' }),
      next: Type.Integer({ minimum: 0, description: 'The next offset to be archived.' }),
      receivedFrom: nullable(dateTime),
      receivedTo: nullable(dateTime),
      lag: nullable(Type.Integer({ description: 'Entries of the log in no segment yet.' })),
      headroom: nullable(
        Type.Integer({
          description: 'Archived entries the log still has; below 1, retention takes others.',
        }),
      ),
      seenAt: nullable(dateTime),
      trouble: nullable(Type.String({ description: 'What went wrong and is not made good.' })),
      troubleAt: nullable(dateTime),
    }),
  ),
})

export const archiveRoutes = (deps: AdminDeps): readonly Route[] => [
  route({
    method: 'GET',
    path: '/admin/v1/archive',
    operation: 'showArchive',
    summary: 'How the archive stands, by partition; empty where there is none',
    access: 'viewer',
    answers: { 200: { description: 'By topic and partition.', schema: ArchiveView } },
    handle: async () => {
      const partitions = await loadArchiveStatus(deps.pool)
      return ok({
        partitions: partitions.map(({ start, next, logStart, logEnd, ...rest }) => ({
          ...rest,
          start: Number(start),
          next: Number(next),
          lag: logEnd === null ? null : Math.max(0, Number(logEnd - next)),
          headroom: logStart === null ? null : Number(next - logStart),
        })),
      })
    },
  }),
]
