// The route that says what a user's value of a computed trait is made of, and when time alone changes it.
import Type from 'typebox'
import { factsOf, findLeaves, readMembership } from '../audience/look.ts'
import { explainMeasure } from '../domain/condition/explain-measure.ts'
import { parseDefinition } from '../domain/definition.ts'
import type { Json } from '../domain/message.ts'
import type { Sql } from '../postgres/sql.ts'
import { type Answer, ok } from './answer.ts'
import type { AdminDeps } from './deps.ts'
import { type About, backfilling, explaining, explainQuery } from './explain.ts'
import { FactView, factView, turn, turnView } from './explain-view.ts'
import { type Route, route } from './route.ts'
import { dateTime, id, idParams, named, nullable } from './views.ts'

const TraitExplanationView = named('TraitExplanation', {
  traitId: id,
  userId: nullable(Type.String({ description: 'Of the profile; null while it has none.' })),
  at: dateTime,
  foldedUntil: { ...dateTime, description: 'The newest call known; at is not before it.' },
  value: Type.Unknown({ description: 'As of at; null for none.' }),
  ...turn,
  recorded: Type.Unknown({
    description: 'As last evaluated: what time alone changed since is seen by the next sync.',
  }),
  synced: Type.Boolean({ description: 'Whether destinations were told of a value.' }),
  says: Type.String({ description: 'The measure in the text form.' }),
  facts: Type.Array(FactView),
})

export const explainTraitRoutes = (deps: AdminDeps): readonly Route[] => [
  route({
    method: 'GET',
    path: '/admin/v1/traits/:id/explain',
    operation: 'explainTrait',
    summary: 'What the value of one user is made of, as of now or of a later instant',
    access: 'viewer',
    params: idParams,
    query: explainQuery,
    answers: { 200: { description: 'The value.', schema: TraitExplanationView } },
    handle: ({ params, query }) =>
      explaining(deps, { kind: 'trait', id: params.id, query }, answer),
  }),
]

const answer = async (tx: Sql, about: About): Promise<Answer> => {
  const { audience: trait, worked, user, at, folded } = about
  const { condition: json, timezone } = worked
  const parsed = parseDefinition({ kind: 'trait', condition: json, timezone })
  const find = await findLeaves(tx, trait.workspaceId)
  const asked = { json, find, facts: factsOf(user), at }
  const found =
    parsed.ok && parsed.definition.type === 'value'
      ? explainMeasure({ ...asked, measure: parsed.definition.measure })
      : null
  if (found === null) return backfilling(trait)
  const held = await readMembership(tx, { audienceId: trait.id, userKey: user.key })
  const recorded = user.computed.get(trait.id)
  return ok({
    traitId: trait.id,
    userId: user.userId,
    at: new Date(at),
    foldedUntil: new Date(folded),
    value: found.value ?? null,
    ...turnView(found.turns),
    recorded: recorded === undefined ? null : (JSON.parse(recorded) as Json),
    synced: held?.synced ?? false,
    says: found.says,
    facts: found.facts.map(factView),
  })
}
