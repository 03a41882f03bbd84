// A deletion request as the API shows it: what of it is done in each store, and who is told.
import Type from 'typebox'
import { erases, requestKinds, requestStates } from '../erase/request.ts'
import type { DeletionRow } from './deletion-store.ts'
import { dateTime, id, named, nullable } from './views.ts'

const oneOf = (texts: readonly string[]) => Type.Union(texts.map((text) => Type.Literal(text)))

const StoreView = Type.Object({
  state: oneOf(['not_needed', 'pending', 'running', 'erased']),
  rows: nullable(Type.Integer({ description: 'What was erased there, where that is counted.' })),
})

export const DeletionView = named('Deletion', {
  id,
  workspaceId: id,
  kind: oneOf(requestKinds),
  userId: nullable(Type.String({ description: 'The only one; null once the request is over.' })),
  anonymousId: nullable(Type.String()),
  userIds: Type.Array(Type.String(), {
    description: 'The first 100; none once the request is over.',
  }),
  anonymousIds: Type.Array(Type.String()),
  ids: Type.Integer({ description: 'How many were asked for.' }),
  idsFound: Type.Integer({ description: 'Other ids of the same profiles.' }),
  origin: oneOf(['call', 'api']),
  sourceId: nullable(Type.Integer({ description: 'Whose secret key the call came with.' })),
  state: oneOf(requestStates),
  reason: nullable(Type.String({ description: 'Why it failed.' })),
  createdAt: dateTime,
  startedAt: nullable(dateTime),
  erasedAt: nullable(dateTime),
  finishedAt: nullable(dateTime),
  stores: Type.Record(Type.String(), StoreView),
  destinations: Type.Array(
    Type.Object({
      sourceId: id,
      destinationId: id,
      notices: Type.Integer(),
      state: oneOf(['pending', 'sent']),
    }),
  ),
})

/** `profile` is the projector's; the rest is swept after it. */
const storeNames = [
  'profile',
  'parked',
  'bodies',
  'deadLetters',
  'attempts',
  'outbox',
  'debugger',
  'replays',
] as const

export const deletionView = (row: DeletionRow) => {
  const { userIds, anonymousIds, stores, told, pending, step, reached, found, ...rest } = row
  const single = rest.ids === 1 || (userIds.length <= 1 && anonymousIds.length <= 1)
  return {
    ...rest,
    erasedAt: erases(rest.kind) ? rest.erasedAt : null,
    userId: single ? (userIds[0] ?? null) : null,
    anonymousId: single ? (anonymousIds[0] ?? null) : null,
    userIds,
    anonymousIds,
    idsFound: found,
    stores: Object.fromEntries(
      storeNames.map((name) => [name, { state: stateOf(row, name), rows: stores[name] ?? null }]),
    ),
    // What is in the log is delivered like any other message; the delivery views show how.
    destinations: told.map((each) => ({
      ...each,
      state: pending[each.destinationId] === undefined ? 'sent' : 'pending',
    })),
  }
}

const stateOf = ({ kind, step, state, ids, found, reached }: DeletionRow, name: string) => {
  if (!erases(kind) || state === 'failed') return 'not_needed'
  if (step === 'done') return 'erased'
  if (name === 'profile') {
    if (step === 'erasing' || step === 'waiting') return 'erased'
    return step === 'ordered' && reached < ids + found ? 'running' : 'pending'
  }
  return step === 'erasing' || step === 'waiting' ? 'running' : 'pending'
}
