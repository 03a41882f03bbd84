// How the admin API shows imports.
import Type from 'typebox'
import { oneOf } from '../control/schema.ts'
import { type Import, importFormats, importStates } from '../import/store.ts'
import { dateTime, id, named, nullable } from './views.ts'

const amount = (description: string) => Type.Integer({ minimum: 0, description })

export const RejectionView = named('ImportRejection', {
  line: Type.Integer({ minimum: 1 }),
  index: amount('Of the call within its line, where that holds a batch.'),
  code: Type.String(),
  reason: Type.String(),
})

const properties = {
  id,
  sourceId: id,
  name: Type.String(),
  actor: Type.String(),
  format: oneOf(importFormats),
  dryRun: Type.Boolean({ description: 'Everything is judged and nothing is appended.' }),
  state: oneOf(importStates),
  bytes: nullable(amount('Of the content after decompression, where that is known.')),
  place: amount('The byte of the content that comes next.'),
  line: Type.Integer({ minimum: 1, description: 'The line that comes next.' }),
  accepted: amount('Calls that were taken.'),
  rejected: amount('Calls and lines that were not.'),
  filtered: amount("Calls that the source's tracking plan kept from the log."),
  suppressed: amount('Calls of users who asked to be forgotten after them.'),
  untimed: amount(
    'Of those taken, the ones without a time that can be read, or with one more than five minutes ahead or before 1970: they count as of now.',
  ),
  createdAt: dateTime,
  updatedAt: dateTime,
  endedAt: nullable(dateTime),
}

export const ImportView = named('Import', properties)

const RecentView = named('ImportChunk', {
  place: amount('Where it began.'),
  line: Type.Integer({ minimum: 1 }),
  until: amount('Where it ended.'),
  digest: Type.String({ description: 'SHA-256 of its bytes, in hex.' }),
  rejected: Type.Array(RejectionView),
  untimed: Type.Optional(amount('Of the whole import, up to where it ended.')),
})

export const MadeImportView = named('MadeImport', {
  ...properties,
  recent: Type.Array(RecentView, {
    description: 'The last two chunks, for who did not hear what became of them.',
  }),
})

export const viewOf = (found: Import) => ({
  id: found.id,
  sourceId: found.sourceId,
  name: found.name,
  actor: found.actor,
  format: found.format,
  dryRun: found.dryRun,
  state: found.state,
  bytes: found.bytes,
  place: found.place,
  line: found.line,
  accepted: found.accepted,
  rejected: found.rejected,
  filtered: found.filtered,
  suppressed: found.suppressed,
  untimed: found.untimed,
  createdAt: found.createdAt,
  updatedAt: found.updatedAt,
  endedAt: found.endedAt,
})

export const madeViewOf = (found: Import) => ({ ...viewOf(found), recent: found.recent })
