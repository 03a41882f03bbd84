// How the admin API shows a condition explained: its tree, and the facts behind each comparison.
import Type from 'typebox'
import type { Bounds, Explained, Fact, Turn } from '../domain/condition/explain.ts'
import { quantifiers } from '../domain/condition/users.ts'
import { dateTime, id, named, nullable } from './views.ts'

export const turn = {
  changesAt: nullable({
    ...dateTime,
    description: 'When time alone changes the answer if no call arrives before; null for never.',
  }),
  changesExactly: Type.Boolean({ description: 'false: not before changesAt, and maybe never.' }),
}

const node = {
  type: Type.String({ description: 'all, any, not, or the kind of comparison.' }),
  holds: Type.Boolean(),
  ...turn,
}

export const FactView = Type.Object({
  name: Type.String({ description: '"trait", or what is made of events, such as "count".' }),
  value: Type.Unknown({ description: 'null for a missing value.' }),
  orMore: Type.Boolean({ description: 'A count that is this or more.' }),
  windowFrom: nullable({ ...dateTime, description: 'The first instant looked at.' }),
  windowUntil: nullable({ ...dateTime, description: 'The first instant no longer looked at.' }),
  capped: Type.Boolean({ description: 'Some values may have been left out to keep it bounded.' }),
})

const NodeView = Type.Object({
  ...node,
  of: Type.Optional(
    Type.Array(Type.Unknown(), { description: 'What it is made of, each in this same form.' }),
  ),
  says: Type.Optional(Type.String({ description: 'The comparison in the text form.' })),
  facts: Type.Optional(Type.Array(FactView)),
  takes: Type.Optional(
    nullable(Type.String({ description: 'What would make it hold; null when it does.' })),
  ),
})

export const ExplanationView = named('Explanation', {
  audienceId: id,
  userId: nullable(Type.String({ description: 'Of the profile; null while it has none.' })),
  at: dateTime,
  foldedUntil: { ...dateTime, description: 'The newest call known; at is not before it.' },
  member: Type.Boolean({ description: 'As of at.' }),
  ...turn,
  quantifier: nullable(
    Type.Union(
      quantifiers.map((each) => Type.Literal(each)),
      {
        description:
          "Of an audience of accounts: where is what each of an account's users is asked, and member what the last sync found.",
      },
    ),
  ),
  recorded: Type.Boolean({
    description: 'As last evaluated: what time alone changed since is seen by the next sync.',
  }),
  synced: Type.Boolean({ description: 'What destinations were last told.' }),
  enteredAt: nullable(dateTime),
  where: NodeView,
})

const dateOf = (ms: number | null): Date | null => (ms === null ? null : new Date(ms))

export const turnView = ({ at, isExact }: Turn) => ({
  changesAt: at === Number.POSITIVE_INFINITY ? null : new Date(at),
  changesExactly: isExact,
})

export const explainedView = (explained: Explained): object => {
  const base = {
    type: explained.type,
    holds: explained.holds,
    ...turnView(explained.turns),
  }
  if ('of' in explained) return { ...base, of: explained.of.map(explainedView) }
  const { says, facts, takes } = explained
  return { ...base, says, facts: facts.map(factView), takes }
}

export const factView = ({ name, value, isFloor, window, isCapped }: Fact) => ({
  name,
  value: value ?? null,
  orMore: isFloor,
  ...windowView(window),
  capped: isCapped,
})

const windowView = (window: Bounds | null) => ({
  windowFrom: dateOf(window?.from ?? null),
  windowUntil: dateOf(window?.until ?? null),
})
