// What the admin API takes and shows of replays.
import Type from 'typebox'
import type { Problem } from '../control/problem.ts'
import { callTypes, sentTypes } from '../domain/message.ts'
import { lengthOf, type Span } from '../domain/replay-span.ts'
import { deadReason } from './dead-reason.ts'
import { ratePerSecond, rowId } from './job.ts'
import { replayStates } from './replay-store.ts'
import { dateTime, id, named, nullable } from './views.ts'

const text = Type.String({ minLength: 1, maxLength: 1_000 })
const some = <T extends Type.TSchema>(items: T) =>
  Type.Array(items, { minItems: 1, maxItems: 1_000 })
const by = Type.Union([Type.Literal('receivedAt'), Type.Literal('timestamp')])
const callType = Type.Union(callTypes.map((type) => Type.Literal(type)))

export const rateDefault = 1_000

export const ReplayInput = Type.Object(
  {
    destinationId: rowId,
    since: Type.Optional(
      Type.String({ description: 'Needed but with reasons, with which all of the log is meant.' }),
    ),
    until: Type.Optional(Type.String({ description: 'Excluded; now when absent.' })),
    by: Type.Optional(by),
    sourceIds: Type.Optional({
      ...some(rowId),
      description: 'Of the same workspace; the destination’s own when absent.',
    }),
    types: Type.Optional(some(Type.Union(sentTypes.map((type) => Type.Literal(type))))),
    events: Type.Optional({ ...some(text), description: 'Names of track calls.' }),
    userIds: Type.Optional(some(text)),
    anonymousIds: Type.Optional(some(text)),
    reasons: Type.Optional({
      ...some(deadReason),
      description: 'Only calls that are dead at the destination for any of these.',
    }),
    ratePerSecond: ratePerSecond(rateDefault),
    dryRun: Type.Optional(Type.Boolean({ description: 'Only count what would be sent.' })),
    cursor: Type.Optional(
      Type.String({ maxLength: 65_536, description: 'Of a dry run that is to go on counting.' }),
    ),
  },
  { additionalProperties: false },
)

const amount = (description: string) => Type.Integer({ minimum: 0, description })

export const ReplayView = named('Replay', {
  id,
  workspaceId: id,
  destinationId: id,
  actor: Type.String(),
  state: Type.Union(replayStates.map((state) => Type.Literal(state))),
  isSettled: Type.Boolean({ description: 'Nothing of it is on its way any more.' }),
  trouble: nullable(Type.String({ description: 'Why it paused by itself.' })),
  by,
  since: dateTime,
  until: dateTime,
  sourceIds: Type.Array(id),
  types: nullable(Type.Array(callType)),
  events: nullable(Type.Array(Type.String())),
  userIds: nullable(Type.Array(Type.String())),
  anonymousIds: nullable(Type.Array(Type.String())),
  reasons: nullable(Type.Array(Type.String())),
  ratePerSecond: Type.Number(),
  total: nullable(amount('Offsets of the log to be read; null until it has started.')),
  read: amount('Of them, those read.'),
  selected: amount('Calls found that it is about.'),
  sent: amount('Of those, the ones sent on their way.'),
  historical: amount('Withheld: the destination takes no historical calls.'),
  filtered: amount('Withheld by a filter of the destination.'),
  unsendable: amount('Withheld: no message can be made of it.'),
  suppressed: amount('Left out: of users who were deleted or suppressed.'),
  duplicate: amount('Left out: repeats of a call that its client sent twice.'),
  expired: amount('Offsets the log did not have any more.'),
  waiting: amount('Of those sent, at most so many that were not tried yet.'),
  parked: amount('Of those sent, the ones that wait for another try.'),
  givenUp: amount('Of those sent, the ones that are dead or were cancelled.'),
  delivered: amount('Of those sent, the ones delivered.'),
  etaSeconds: nullable(Type.Number({ description: 'Until all is read, at the pace of late.' })),
  createdAt: dateTime,
  endedAt: nullable(dateTime),
})

export const CountView = Type.Object({
  dryRun: Type.Literal(true),
  complete: Type.Boolean({ description: 'Everything was read: the figures are exact.' }),
  cursor: nullable(Type.String({ description: 'Send it with the same body to go on.' })),
  total: amount('Offsets of the log to be read.'),
  read: amount('Of them, those read so far.'),
  selected: amount('Calls found.'),
  sendable: amount('Of them, those that would be sent, a client’s repeats among them.'),
  suppressed: amount('Left out: of users who were deleted or suppressed.'),
  historical: amount('Withheld: the destination takes no historical calls.'),
  filtered: amount('Withheld by a filter of the destination.'),
  unsendable: amount('Withheld: no message can be made of it.'),
})

const names = [
  'read',
  'selected',
  'sendable',
  'suppressed',
  'historical',
  'filtered',
  'unsendable',
] as const

/** Shaped as `Counted` of the replay stage. */
export type Counted = { readonly spans: readonly Span[] } & Readonly<
  Record<(typeof names)[number], number>
>

export const countView = (counted: Counted) => {
  const { spans, ...figures } = counted
  const total = lengthOf(spans)
  const complete = figures.read >= total
  const cursor = complete ? null : Buffer.from(JSON.stringify(counted)).toString('base64url')
  return { dryRun: true as const, complete, cursor, total, ...figures }
}

const isCount = (value: unknown): value is number =>
  Number.isSafeInteger(value) && Number(value) >= 0

const isSpan = (value: unknown): value is Span => {
  const { topic, partition, from, until } = (value ?? {}) as Record<string, unknown>
  return (
    (topic === 'calls' || topic === 'calls.import') &&
    [partition, from, until].every(isCount) &&
    Number(from) <= Number(until)
  )
}

export const readCountCursor = (text: string): Counted | Problem => {
  try {
    const value = JSON.parse(Buffer.from(text, 'base64url').toString('utf8')) as Counted
    if (value.spans.every(isSpan) && names.every((name) => isCount(value[name])))
      return {
        spans: value.spans,
        ...(Object.fromEntries(names.map((name) => [name, value[name]])) as Omit<Counted, 'spans'>),
      }
  } catch {
    // Not what we gave out.
  }
  const message = 'cursor must be what the dry run before gave'
  return { code: 'field_invalid', path: '/cursor', message }
}
