// Saving a destination: its webhooks, its secret, and the sources it takes calls from.
import type { Destination } from '../domain/configuration.ts'
import { changesBetween, type Fields, hidden } from './changes.ts'
import type { DestinationDraft } from './destination-draft.ts'
import { deleteDestination, insertDestination, updateDestination } from './destination-store.ts'
import { formatDuration, parseDuration } from './duration.ts'
import { audit, type Editing, refused, type Saved } from './edit.ts'
import { filterOf, filtersProblems } from './filter.ts'
import { nameProblems } from './name.ts'
import { at, type Problem } from './problem.ts'
import { secretsProblems } from './secrets-problem.ts'
import type { State } from './state.ts'
import { webhooksProblems } from './webhook.ts'
import { optionsProblems, summaryOf } from './webhook-options.ts'

type Wish = {
  readonly draft: DestinationDraft
  /** What is changed; `null` creates. */
  readonly current: Destination | null
  readonly path: string
}

export const saveDestination = async (
  editing: Editing,
  wish: Wish,
): Promise<Saved<Destination>> => {
  const { state, tx, keyring } = editing
  const { draft, current } = wish
  const problems = problemsOf(editing, wish)
  if (problems.length > 0) return refused(problems)
  const { historicalAfter, ...rest } = draft
  const wanted = {
    ...rest,
    sourceIds: new Set([...draft.sourceIds].sort((a, b) => a - b)),
    historicalAfterMs: parseDuration(historicalAfter) ?? 0,
    filters: draft.filters.map(filterOf),
  }
  const changes = changesBetween(
    current && fieldsOf(current, state),
    fieldsOf({ ...wanted, id: 0 }, state),
  )
  if (current && Object.keys(changes).length === 0)
    return { action: 'unchanged', entity: current, changes }
  const entity = { ...wanted, id: current?.id ?? (await insertDestination(tx, wanted, keyring)) }
  if (current) await updateDestination(tx, entity, keyring)
  state.destinations.set(entity.id, entity)
  const action = current ? 'changed' : 'created'
  await audit(editing, {
    action,
    kind: 'destination',
    entityId: entity.id,
    name: entity.name,
    changes,
  })
  return { action, entity, changes }
}

const fieldsOf = (destination: Destination, state: State): Fields => ({
  name: { is: destination.name },
  type: { is: destination.type },
  enabled: { is: destination.enabled },
  sources: {
    is: [...destination.sourceIds]
      .sort((a, b) => a - b)
      .map((id) => state.sources.get(id)?.name ?? id),
  },
  order: { is: destination.order },
  payload: { is: destination.payload },
  replayOnHeal: { is: destination.replayOnHeal },
  signatures: { is: destination.signatures },
  sharedSecret: {
    is: destination.sharedSecret,
    shown: destination.sharedSecret === null ? null : hidden,
  },
  nextSharedSecret: {
    is: destination.nextSharedSecret,
    shown: shownNext(destination.nextSharedSecret),
  },
  historical: { is: destination.historical },
  historicalAfter: { is: formatDuration(destination.historicalAfterMs) },
  filters: { is: destination.filters },
  webhooks: { is: destination.webhooks, shown: destination.webhooks.map(summaryOf) },
})

const shownNext = (next: Destination['nextSharedSecret']) =>
  next && { secret: hidden, activateAt: new Date(next.activateAt).toISOString() }

const problemsOf = (editing: Editing, { draft, current, path }: Wish): readonly Problem[] => {
  const others = [...editing.state.destinations.values()].filter(
    ({ workspaceId }) => workspaceId === draft.workspaceId,
  )
  const wish = { name: draft.name, id: current?.id ?? null, others, kind: 'destination' }
  return [
    ...nameProblems(wish, path),
    ...reservedProblems(draft, path),
    ...sourceProblems(editing.state, draft, at(path, 'sourceIds')),
    ...secretsProblems(editing, { draft, current, path }),
    ...historicalProblems(draft, at(path, 'historicalAfter')),
    ...webhooksProblems(draft.webhooks, editing, at(path, 'webhooks')),
    ...optionsProblems(draft.webhooks, at(path, 'webhooks')),
    ...filtersProblems(draft.filters, at(path, 'filters')),
  ]
}

/** In a call's integrations map this name means every destination. */
const reservedProblems = ({ name }: DestinationDraft, path: string): readonly Problem[] =>
  name === 'All'
    ? [
        {
          code: 'name_reserved',
          path: at(path, 'name'),
          message: '"All" stands for every destination in a call\'s integrations',
        },
      ]
    : []

const sourceProblems = (
  state: State,
  { sourceIds, workspaceId }: DestinationDraft,
  path: string,
): readonly Problem[] =>
  sourceIds.flatMap((id, index) =>
    state.sources.get(id)?.workspaceId === workspaceId
      ? []
      : [
          {
            code: 'source_unknown' as const,
            path: at(path, index),
            message: `the workspace has no source ${id}`,
          },
        ],
  )

const historicalAfterMsMax = 36_500 * 86_400_000

const historicalProblems = (
  { historicalAfter }: DestinationDraft,
  path: string,
): readonly Problem[] => {
  const ms = parseDuration(historicalAfter)
  return ms !== null && ms <= historicalAfterMsMax
    ? []
    : [
        {
          code: 'historical_after_invalid',
          path,
          message: `"${historicalAfter}" is no duration like "24h", "7d" or "1h30m"`,
        },
      ]
}

export const removeDestination = async (
  editing: Editing,
  destination: Destination,
): Promise<void> => {
  await deleteDestination(editing.tx, destination.id)
  const { id: entityId, name } = destination
  await audit(editing, { action: 'deleted', kind: 'destination', entityId, name, changes: {} })
}
